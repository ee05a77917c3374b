"""Profiles as Batsim 5 writes them in messages: a type, and fields that are named after it.

Rule: a profile that the other version cannot express is an error, not a guess. Batsim 4's `parallel_homogeneous_total`
sends com / n bytes between each pair; that of version 5 sends com / (n^2 - n), so the two are only the same without
bytes.
Source: the schema and the expected outputs of batprotocol, "Register profile".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..documents.document_errors import bad, inside
from ..documents.schema import listed, mapping, one_of, require, text
from .profiles import NAMES

Data = dict[str, Any]
_SPREAD, _EACH_VALUE = "DefinedAmountsSpreadUniformly", "DefinedAmountsUsedForEachValue"
_SPREADS = (_SPREAD, "defined_amount_spread_uniformly")
#: Type in protocol 5 -> name of each field there -> name of the field in a workload.
_FIELDS: dict[str, dict[str, str]] = {
    "DelayProfile": {"delay": "delay"},
    "ParallelTaskProfile": {"computation_vector": "cpu", "communication_matrix": "com"},
    "ParallelTaskHomogeneousProfile": {
        "computation_amount": "cpu", "communication_amount": "com", "generation_strategy": "generation_strategy",
    },
    "SequentialCompositionProfile": {"repetition_count": "repeat", "profile_ids": "seq"},
    "ParallelTaskOnStorageHomogeneousProfile": {
        "storage_name": "storage", "bytes_to_read": "bytes_to_read", "bytes_to_write": "bytes_to_write",
        "generation_strategy": "generation_strategy",
    },
    "ParallelTaskDataStagingBetweenStoragesProfile": {
        "bytes_to_transfer": "nb_bytes", "emitter_storage_name": "from", "receiver_storage_name": "to",
    },
    "TraceReplayProfile": {"trace_type": "trace_type", "filename": "filename"},
}  # fmt: skip
#: Fields with a default, by type in protocol 5; the others of `_FIELDS` must be there.
_DEFAULTS: dict[str, Data] = {
    "ParallelTaskProfile": {"cpu": [], "com": []},
    "ParallelTaskHomogeneousProfile": {"cpu": 0.0, "com": 0.0, "generation_strategy": _EACH_VALUE},
    "SequentialCompositionProfile": {"repeat": 1},
    "ParallelTaskOnStorageHomogeneousProfile": {
        "storage": "pfs", "bytes_to_read": 0.0, "bytes_to_write": 0.0, "generation_strategy": _EACH_VALUE,
    },
}  # fmt: skip
#: Names of types in workloads -> type in protocol 5.
_TYPES = {name: new for names in NAMES.values() for new in names if new in _FIELDS for name in names} | {
    "parallel_homogeneous_total": "ParallelTaskHomogeneousProfile", "msg_par_hg_tot": "ParallelTaskHomogeneousProfile",
    "usage_trace": "TraceReplayProfile", "smpi": "TraceReplayProfile",
}  # fmt: skip
_TOTALS = ("parallel_homogeneous_total", "msg_par_hg_tot")
_TRACES = {"usage_trace": "FractionalComputation", "usage": "FractionalComputation", "smpi": "SMPI"}


def full_id(workload: str, name: str) -> str:
    """Return the id of a profile in protocol 5, "WORKLOAD!NAME"; `name` may be one already."""
    return name if "!" in name else f"{workload}!{name}"


def profile_message(workload: str, name: str, profile: Mapping[str, Any]) -> Data:
    """Return a profile of a workload as protocol 5 writes it.

    Args:
        workload: name of its workload.
        name: its name there.
        profile: the mapping of the workload.

    Raises:
        ConfigError: protocol 5 has no such profile.
    """
    type_name = profile.get("type")
    kind = _TYPES.get(type_name) if isinstance(type_name, str) else None
    if kind is None:
        raise bad(
            f"profile {name!r:.60} has the type {type_name!r:.60}, which protocol 5 does not have", ", ".join(_FIELDS)
        )
    if type_name in _TOTALS and profile.get("com"):
        raise bad(f"profile {name!r:.60}: protocol 5 cannot say how it divides its bytes", f"{type_name} without com")
    repeat = {"repeat": profile["nb"]} if "nb" in profile else {}  # its older name
    values = {**_DEFAULTS.get(kind, {}), **repeat, **profile}
    values.update(_as_written(str(type_name), values, workload))
    fields = {field: values[batsim_key] for field, batsim_key in _FIELDS[kind].items() if batsim_key in values}
    return {"id": full_id(workload, name), "profile_type": kind, "profile": fields}


def _as_written(type_name: str, values: Data, workload: str) -> Data:
    """Return the values that are written in another way in protocol 5."""
    changed: Data = {}
    if type_name in _TOTALS or "generation_strategy" in values:
        spread = type_name in _TOTALS or values["generation_strategy"] in _SPREADS
        changed["generation_strategy"] = _SPREAD if spread else _EACH_VALUE
    if "seq" in values:
        changed["seq"] = [full_id(workload, name) for name in values["seq"]]
    trace = values.get("trace_type", type_name)
    if trace in _TRACES:
        changed["trace_type"] = _TRACES[trace]
    for key in ("trace", "trace_file"):
        if key in values:
            changed["filename"] = values[key]
    return changed


def read_profile(value: Any) -> tuple[str, str, Data]:
    """Return the workload, the name and the mapping of a profile of protocol 5. Raises ConfigError."""
    data = mapping(value)
    require(data, ("id", "profile_type", "profile"))
    workload, mark, name = inside("id", text, data["id"]).partition("!")
    if not (workload and mark and name):
        raise bad(f"found {data['id']!r:.60}", "WORKLOAD!NAME", key="id")
    kind = inside("profile_type", one_of, data["profile_type"], _FIELDS)
    fields = inside("profile", mapping, data["profile"])
    optional = _DEFAULTS.get(kind, {})
    inside(
        "profile", require, fields, [field for field, batsim_key in _FIELDS[kind].items() if batsim_key not in optional]
    )
    profile = {
        batsim_key: fields[field] for field, batsim_key in _FIELDS[kind].items() if fields.get(field) is not None
    }
    if "seq" in profile:
        profile["seq"] = inside("profile.profile_ids", listed(_local_name(workload), least=1), profile["seq"])
    profile = {**{key: part for key, part in optional.items() if part != []}, **profile}
    return workload, name, {"type": kind, **{key: part for key, part in profile.items() if part != []}}


def _local_name(workload: str) -> Callable[[Any], str]:
    def name(value: Any) -> str:
        home, mark, local_name = text(value).rpartition("!")
        if mark and home != workload:
            raise bad(f"profile {value!r:.60} is of another workload", f"profiles of {workload}")
        return local_name

    return name
