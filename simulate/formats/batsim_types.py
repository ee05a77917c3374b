"""Types of Batsim's profiles: from what a workload says of a profile to what it does.

Rule: each type is known by all the names it ever had, and its own fields are checked; what else a profile holds is its
user's. Source: Batsim's documentation, "Workload", of 2.0 (`msg_par`), 4.2 (`parallel`) and 5 (`ptask`,
`ParallelTaskProfile`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..workload import LONGEST
from .batsim_profiles import (
    Composed,
    Delay,
    Homogeneous,
    OnStorage,
    Parallel,
    Profile,
    Staging,
    Unheard,
    UsageTrace,
    Work,
)
from .shape import Convert, inside, listed, mapping, nearest, number, text, whole
from .units import bad, found

_seconds = number(0, LONGEST)
_amount = number(0, 1e30)
_amounts = listed(_amount, least=1)
_status = whole(-(2**31), 2**31 - 1)
_STRATEGIES = {
    "defined_amount_used_for_each_value": False,
    "defined_amount_spread_uniformly": True,
    "DefinedAmountsUsedForEachValue": False,
    "DefinedAmountsSpreadUniformly": True,
}
_REQUIRED = object()


def parse_profile(value: Any) -> Profile:
    """The profile that a mapping describes. Raises ConfigError with the key."""
    data = mapping(value)
    type_ = _field(data, "type", text)
    if type_ not in TYPES:
        raise bad(found(type_) + nearest(type_, TYPES), ", ".join(types[0] for types in _NAMES.values()), key="type")
    return Profile(type_, TYPES[type_](data), _field(data, "ret", _status, 0), data)


def _field(data: dict[str, Any], key: str, convert: Convert[Any], default: Any = _REQUIRED) -> Any:
    """The meaning of a field."""
    if key in data:
        return inside(key, convert, data[key])
    if default is _REQUIRED:
        raise bad("missing", f"required of the type {data['type']}" if "type" in data else "required", key=key)
    return default


def _strategy(value: Any) -> bool:
    if not isinstance(value, str) or value not in _STRATEGIES:
        raise bad(found(value), ", ".join(_STRATEGIES))
    return _STRATEGIES[value]


def _delay(data: dict[str, Any]) -> Work:
    return Delay(_field(data, "delay", _seconds))


def _parallel(data: dict[str, Any]) -> Work:
    return Parallel(_field(data, "cpu", _amounts, ()), _field(data, "com", _amounts, ()))


def _homogeneous(data: dict[str, Any]) -> Work:
    spread = _field(data, "generation_strategy", _strategy, False)
    return Homogeneous(_field(data, "cpu", _amount), _field(data, "com", _amount), spread)


def _total(data: dict[str, Any]) -> Work:
    return Homogeneous(_field(data, "cpu", _amount), _field(data, "com", _amount), spread=True)


def _composed(data: dict[str, Any]) -> Work:
    times = "nb" if "nb" in data and "repeat" not in data else "repeat"
    return Composed(_field(data, "seq", listed(text, least=1)), _field(data, times, whole(1, 10**9), 1))


def _on_storage(data: dict[str, Any]) -> Work:
    storage, spread = _field(data, "storage", text, "pfs"), _field(data, "generation_strategy", _strategy, False)
    return OnStorage(
        storage, _field(data, "bytes_to_read", _amount, 0.0), _field(data, "bytes_to_write", _amount, 0.0), spread
    )


def _staging(data: dict[str, Any]) -> Work:
    return Staging(_field(data, "from", text), _field(data, "to", text), _field(data, "nb_bytes", _amount))


def _usage(data: dict[str, Any], key: str = "trace") -> Work:
    return UsageTrace(_field(data, key, text))


def _smpi(data: dict[str, Any], key: str = "trace") -> Work:
    _field(data, key, text)
    return Unheard("traces of MPI calls (SMPI) are out of scope")


_REPLAYS = {"usage": _usage, "FractionalComputation": _usage, "smpi": _smpi, "SMPI": _smpi}


def _replay(data: dict[str, Any]) -> Work:
    kind = _field(data, "trace_type", text)
    if kind not in _REPLAYS:
        raise bad(found(kind), ", ".join(_REPLAYS), key="trace_type")
    return _REPLAYS[kind](data, "trace_file" if "trace_file" in data else "filename")


def _message(data: dict[str, Any]) -> Work:
    return Unheard("messages between a job and its scheduler are out of scope")


_NAMES: dict[Callable[[dict[str, Any]], Work], tuple[str, ...]] = {
    _delay: ("delay", "DelayProfile"),
    _parallel: ("parallel", "ptask", "ParallelTaskProfile", "msg_par"),
    _homogeneous: ("parallel_homogeneous", "ptask_homogeneous", "ParallelTaskHomogeneousProfile", "msg_par_hg"),
    _total: ("parallel_homogeneous_total", "msg_par_hg_tot"),
    _composed: ("composed", "sequential_composition", "SequentialCompositionProfile"),
    _on_storage: (
        "parallel_homogeneous_pfs", "ptask_on_storage_homogeneous", "ParallelTaskOnStorageHomogeneousProfile",
        "msg_par_hg_pfs",
    ),
    _staging: (
        "data_staging", "ptask_data_staging_between_storages", "ParallelTaskDataStagingBetweenStoragesProfile",
    ),
    _usage: ("usage_trace",),
    _smpi: ("smpi",),
    _replay: ("trace_replay", "TraceReplayProfile"),
    _message: ("send", "recv"),
}  # fmt: skip
#: Name of a type -> what reads its profiles.
TYPES = {type_: read for read, types in _NAMES.items() for type_ in types}
