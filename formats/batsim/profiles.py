"""Profiles of Batsim workloads: parse each type into one frozen value, and read usage traces.

Rule: a profile says what is done on a number of resources; run times follow from the machine (see `runs`). Each type is
known by every name that it ever had. Its own fields are checked; further fields belong to the user and are kept. In a
usage trace each rank has a resource to itself, so a line of F flops takes F / speed whatever its usage, which only
decides how many cores of a host share the power.
Source: Batsim's documentation, "Workload", of versions 2.0 (`msg_par`), 4.2 (`parallel`) and 5 (`ptask`,
`ParallelTaskProfile`), and "Fractional computation trace replay".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ...simulate.model.programs import Even, Matrix, Part, Stage, Steps, Store, Wait
from ...simulate.model.workload import LONGEST
from ..documents.document_errors import bad, found, inside
from ..documents.files import decode, read_bytes
from ..documents.quantities import Convert, number, whole
from ..documents.schema import listed, mapping, one_of, text
from ..text import count

#: Largest number of flops in a line.
MOST = 1e30
TRACE_LINES = f"a line RANK m_usage USAGE FLOPS, with a usage from 0 to 1 and at most {MOST:g} flops"


def rank_names(path: Path) -> list[str]:
    """Return the file of each rank, as the trace names it. Raises ConfigError."""
    names = _lines(path)
    if not names:
        raise bad(f"{path} names no files", "one line with a file name for each rank")
    return names


def _lines(path: Path) -> list[str]:
    """Return the lines that are neither blank nor comments."""
    lines = map(str.strip, decode(read_bytes(path), str(path)).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _flops(path: Path, line: str) -> float:
    try:
        _, action, usage, flops = line.split()
        if action == "m_usage" and 0 <= float(usage) <= 1 and 0 <= float(flops) <= MOST:
            return float(flops)
    except ValueError:
        pass
    raise bad(f"{found(line)} in {path}", TRACE_LINES)


ALLOWED = "profiles that wait, compute, or send"


class Done(NamedTuple):
    """The work that is done, and the status that is returned then; 0 = success."""

    part: Part
    status: int = 0


class ProfileOrigin(Protocol):
    """The workload that a profile belongs to, in a folder with its other files."""

    folder: Path

    def done(self, profile: str, size: int) -> Done:
        """Return what another profile of the workload does on `size` resources. Raises ConfigError."""


#: Return what is done on a number of resources. Raises ConfigError: made for another size, or not simulated.
Work = Callable[[int, ProfileOrigin], Done]


class BatsimProfile(NamedTuple):
    """A profile of a workload.

    Args:
        type: the name of its type, as written in the file.
        work: what it does.
        returns: its exit status; 0 = success.
        written: the whole mapping, as in the file.
        sequence: the profiles that it runs one after the other; empty = it is not a sequence.
        repeat: how often the sequence runs.
        trace: the file that names its ranks; empty = it has no usage trace.
        waits: seconds, if waiting is all that it does.
        memory: bytes that each resource needs.
    """

    type: str
    work: Work
    returns: int = 0
    written: Mapping[str, Any] = {}
    sequence: tuple[str, ...] = ()
    repeat: int = 1
    trace: str = ""
    waits: float | None = None
    memory: float = 0.0


_seconds = number(0, LONGEST)
_amount = number(0, MOST)
_amounts = listed(_amount, least=1)
_status = whole(-(2**31), 2**31 - 1)
_STRATEGIES = {
    "defined_amount_used_for_each_value": False,
    "defined_amount_spread_uniformly": True,
    "DefinedAmountsUsedForEachValue": False,
    "DefinedAmountsSpreadUniformly": True,
}
_REQUIRED = object()
#: The work of a profile, and the further fields of `BatsimProfile`.
Parsed = tuple[Work, dict[str, Any]]


def parse_profile(value: Any) -> BatsimProfile:
    """Return the profile that a mapping describes. Raises ConfigError with the key."""
    if type(value) is dict and len(value) == 2 and value.get("type") == "delay":  # most profiles: nothing to look up
        seconds: Any = value.get("delay")
        if type(seconds) in (int, float) and 0 <= seconds <= LONGEST:
            return BatsimProfile("delay", partial(_wait, float(seconds)), 0, value, waits=float(seconds))
    data = mapping(value)
    type_ = inside("type", one_of, _field(data, "type", text), TYPES, ", ".join(types[0] for types in NAMES.values()))
    work, more = TYPES[type_](data)
    memory = _field(data, "memory_size", _amount, 0.0)
    return BatsimProfile(type_, work, _field(data, "ret", _status, 0), data, memory=memory, **more)


def _field(data: dict[str, Any], key: str, convert: Convert[Any], default: Any = _REQUIRED) -> Any:
    """Return the converted value of a field."""
    if key in data:
        return inside(key, convert, data[key])
    if default is _REQUIRED:
        raise bad("missing", f"required of the type {data['type']}" if "type" in data else "required", key=key)
    return default


def _spread(data: dict[str, Any]) -> bool:
    """Return whether amounts are divided among all resources, instead of being those of each."""
    return bool(_field(data, "generation_strategy", lambda value: _STRATEGIES[one_of(value, _STRATEGIES)], False))


def _moved(data: dict[str, Any], flops: float) -> float:
    """Return the bytes of memory that a resource moves while it computes."""
    volume: float = _field(data, "memory_volume", _amount, 0.0)
    if volume > 0 and not flops > 0:
        raise bad("no resource computes, and memory is moved while computing", "0, or with cpu", key="memory_volume")
    return volume


def _always(part: Part) -> Parsed:
    return lambda size, site: Done(part), {}


def _wait(seconds: float, size: int, site: ProfileOrigin) -> Done:
    return Done(Wait(seconds))


def _delay(data: dict[str, Any]) -> Parsed:
    seconds = _field(data, "delay", _seconds)
    return partial(_wait, seconds), {"waits": seconds}


def _parallel(data: dict[str, Any]) -> Parsed:
    cpu, com = _field(data, "cpu", _amounts, ()), _field(data, "com", _amounts, ())
    hosts, moved = len(cpu) or math.isqrt(len(com)), _moved(data, max(cpu, default=0.0))
    if com and len(com) != hosts**2:
        allowed = f"a square matrix of bytes, here {hosts} x {hosts}"
        raise bad(f"found {len(com)} amounts", allowed, key="com")

    def work(size: int, site: ProfileOrigin) -> Done:
        if hosts not in (0, size):
            raise bad(f"it needs {count(hosts, 'resource')}, but the job requests {size}", "the same number")
        return Done(Matrix(cpu, com if size > 1 else (), moved))  # SimGrid ignores the bytes of a task on one host

    return work, {}


def _homogeneous(data: dict[str, Any]) -> Parsed:
    if _spread(data):
        return _divided(data, lambda size: size * max(size - 1, 1))
    cpu, com = _field(data, "cpu", _amount), _field(data, "com", _amount)
    return _always(Even(cpu, com, _moved(data, cpu)))


def _total(data: dict[str, Any]) -> Parsed:
    """Batsim 4 divides the bytes by the number of resources, and sends that much between each pair."""
    return _divided(data, lambda size: size)


def _divided(data: dict[str, Any], parts: Callable[[int], int]) -> Parsed:
    """Divide flops and memory among the resources, and the bytes into as many parts; each pair sends one."""
    cpu, com = _field(data, "cpu", _amount), _field(data, "com", _amount)
    moved = _moved(data, cpu)
    return lambda size, site: Done(Even(cpu / size, com / parts(size), moved / size)), {}


def _composed(data: dict[str, Any]) -> Parsed:
    times = "nb" if "nb" in data and "repeat" not in data else "repeat"
    sequence, repeat = _field(data, "seq", listed(text, least=1)), _field(data, times, whole(1, 10**9), 1)

    def work(size: int, site: ProfileOrigin) -> Done:
        parts = list[Part]()
        for profile in sequence:
            part, status = site.done(profile, size)
            parts.append(part)
            if status:
                return Done(Steps(tuple(parts)), status)
        return Done(Steps(tuple(parts), repeat))

    return work, {"sequence": sequence, "repeat": repeat}


def _on_storage(data: dict[str, Any]) -> Parsed:
    storage, spread = _field(data, "storage", text, "pfs"), _spread(data)
    amounts = [_field(data, key, _amount, 0.0) for key in ("bytes_to_read", "bytes_to_write")]

    def work(size: int, site: ProfileOrigin) -> Done:
        shares = max(size, 1) if spread else 1
        return Done(Store(storage, *(amount / shares for amount in amounts)))

    return work, {}


def _staging(data: dict[str, Any]) -> Parsed:
    return _always(Stage(_field(data, "from", text), _field(data, "to", text), _field(data, "nb_bytes", _amount)))


def _usage(data: dict[str, Any], key: str = "trace") -> Parsed:
    trace = _field(data, key, text)

    def work(size: int, site: ProfileOrigin) -> Done:
        path = site.folder / trace
        ranks = [path.parent / rank for rank in rank_names(path)]
        flops = tuple(sum(_flops(rank, line) for line in _lines(rank)) for rank in ranks)
        if len(flops) > size:
            raise bad(
                f"its trace has {len(flops)} ranks, but the job requests {count(size, 'resource')}", "one for each rank"
            )
        return Done(Matrix(flops))

    return work, {"trace": trace}


def _smpi(data: dict[str, Any], key: str = "trace") -> Parsed:
    _field(data, key, text)
    return _refused("traces of MPI calls (SMPI) are not simulated")


def _replay(data: dict[str, Any]) -> Parsed:
    replays = {"usage": _usage, "FractionalComputation": _usage, "smpi": _smpi, "SMPI": _smpi}
    kind = inside("trace_type", one_of, _field(data, "trace_type", text), replays)
    return replays[kind](data, "trace_file" if "trace_file" in data else "filename")


def _message(data: dict[str, Any]) -> Parsed:
    return _refused("messages between a job and its scheduler are not simulated")


def _refused(problem: str) -> Parsed:
    def work(size: int, site: ProfileOrigin) -> Done:
        raise bad(problem, ALLOWED)

    return work, {}


#: Parser of a type -> all its names, that of version 5 among them.
NAMES: dict[Callable[[dict[str, Any]], Parsed], tuple[str, ...]] = {
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
#: Name of a type -> its parser.
TYPES = {type_: read for read, types in NAMES.items() for type_ in types}
