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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ...simulate.model.programs import Even, Matrix, Part, Stage, Steps, Store, Wait
from ...simulate.model.workload import LONGEST
from ..files import decode, read_bytes
from ..schema import Convert, bad, found, inside, listed, mapping, nearest, number, text, whole

#: Largest number of flops in a line.
MOST = 1e30
TRACE_LINES = f"a line RANK m_usage USAGE FLOPS, with a usage from 0 to 1 and at most {MOST:g} flops"


def rank_flops(path: Path) -> list[list[float]]:
    """Return the flops of each line of each rank of a trace. O(lines). Raises ConfigError."""
    return [[_flops(rank, line) for line in _lines(rank)] for rank in map(path.parent.joinpath, rank_names(path))]


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
    words = line.split()
    try:
        _, action, usage, flops = words
        share, amount = float(usage), float(flops)
    except ValueError:
        raise bad(f"{found(line)} in {path}", TRACE_LINES) from None
    if action != "m_usage" or not 0 <= share <= 1 or not 0 <= amount <= MOST:
        raise bad(f"{found(line)} in {path}", TRACE_LINES)
    return amount


ALLOWED = "profiles that wait, compute, or send"


class Done(NamedTuple):
    """What is done, and the status that is returned then; 0 = success."""

    part: Part
    status: int = 0


class Site(Protocol):
    """The workload that a profile belongs to."""

    def done(self, profile: str, size: int) -> Done:
        """Return what another profile of the workload does on `size` resources. Raises ConfigError."""

    def file(self, path: str) -> Path:
        """Return a path that is relative to the workload."""


class Work(Protocol):
    """The work of a profile."""

    def on(self, size: int, site: Site) -> Done:
        """Return the work on `size` resources.

        Raises:
            ConfigError: the profile is made for another size, or is not simulated.
        """


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait for `delay` seconds on any machine, computing nothing."""

    delay: float

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        return Done(Wait(self.delay))


@dataclass(frozen=True, slots=True)
class Parallel:
    """Compute `cpu[i]` flops on resource i, and send bytes from each row of `com` to each column."""

    cpu: tuple[float, ...] = ()
    com: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.com and len(self.com) != self._size**2:
            raise bad(
                f"found {len(self.com)} amounts",
                f"a square matrix of bytes, here {self._size} x {self._size}",
                key="com",
            )

    @property
    def _size(self) -> int:
        return len(self.cpu) or math.isqrt(len(self.com))

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        if self._size not in (0, size):
            raise bad(f"it needs {self._size} resources, but the job requests {size}", "the same number")
        return Done(Matrix(self.cpu, self.com))


@dataclass(frozen=True, slots=True)
class Homogeneous:
    """Compute `cpu` flops on each resource and send `com` bytes between any two; `spread` divides both among all."""

    cpu: float = 0.0
    com: float = 0.0
    spread: bool = False

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        if not self.spread:
            return Done(Even(self.cpu, self.com))
        return Done(Even(self.cpu / size, self.com / (size * (size - 1)) if size > 1 else 0.0))


@dataclass(frozen=True, slots=True)
class Composed:
    """Run other profiles in sequence, `repeat` times; the first that fails ends the sequence."""

    sequence: tuple[str, ...]
    repeat: int = 1

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        parts = list[Part]()
        for profile in self.sequence:
            part, status = site.done(profile, size)
            parts.append(part)
            if status:
                return Done(Steps(tuple(parts)), status)
        return Done(Steps(tuple(parts), self.repeat))


@dataclass(frozen=True, slots=True)
class UsageTrace:
    """Compute what a file for each rank says, each rank alone on a resource."""

    trace: str

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        ranks = rank_flops(site.file(self.trace))
        if len(ranks) > size:
            raise bad(f"its trace has {len(ranks)} ranks, but the job requests {size} resources", "one for each rank")
        return Done(Matrix(tuple(map(sum, ranks))))


@dataclass(frozen=True, slots=True)
class OnStorage:
    """Read bytes from a storage and write bytes to it, on each resource or, with `spread`, by all together."""

    storage: str
    read: float
    write: float
    spread: bool = False

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        shares = max(size, 1) if self.spread else 1
        return Done(Store(self.storage, self.read / shares, self.write / shares))


@dataclass(frozen=True, slots=True)
class Staging:
    """Copy bytes from one storage to another."""

    source: str
    target: str
    bytes: float

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        return Done(Stage(self.source, self.target, self.bytes))


@dataclass(frozen=True, slots=True)
class NotSimulated:
    """Work that is not simulated; `why` gives the reason."""

    why: str

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        raise bad(self.why, ALLOWED)


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of a workload.

    Args:
        type: the name of its type, as written in the file.
        work: its work.
        returns: its exit status; 0 = success.
        written: the whole mapping, as in the file.
    """

    type: str
    work: Work
    returns: int = 0
    written: Mapping[str, Any] = field(default_factory=dict, compare=False)


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
    """Return the profile that a mapping describes. Raises ConfigError with the key."""
    data = mapping(value)
    type_ = _field(data, "type", text)
    if type_ not in TYPES:
        raise bad(found(type_) + nearest(type_, TYPES), ", ".join(types[0] for types in _NAMES.values()), key="type")
    return Profile(type_, TYPES[type_](data), _field(data, "ret", _status, 0), data)


def _field(data: dict[str, Any], key: str, convert: Convert[Any], default: Any = _REQUIRED) -> Any:
    """Return the converted value of a field."""
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
    return NotSimulated("traces of MPI calls (SMPI) are not simulated")


_REPLAYS = {"usage": _usage, "FractionalComputation": _usage, "smpi": _smpi, "SMPI": _smpi}


def _replay(data: dict[str, Any]) -> Work:
    kind = _field(data, "trace_type", text)
    if kind not in _REPLAYS:
        raise bad(found(kind), ", ".join(_REPLAYS), key="trace_type")
    return _REPLAYS[kind](data, "trace_file" if "trace_file" in data else "filename")


def _message(data: dict[str, Any]) -> Work:
    return NotSimulated("messages between a job and its scheduler are not simulated")


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
#: Name of a type -> its parser.
TYPES = {type_: read for read, types in _NAMES.items() for type_ in types}
