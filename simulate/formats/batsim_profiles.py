"""What the jobs of a Batsim workload do: one frozen value for each kind of profile.

Rule: a profile's run is told where waiting or computing alone decides it, on resources that are alike and have no
network; what needs more than that is refused. Source: Batsim's documentation, "Workload".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from .batsim_traces import rank_flops
from .units import bad

NETWORK = "what resources send each other is not simulated in batch mode"
STORAGE = "what is moved to and from storage is not simulated in batch mode"
ALONE = "profiles that wait or compute: delay, or com 0"


class Run(NamedTuple):
    """What a profile's run is like.

    Args:
        seconds: how long it takes.
        computes: whether its resources draw what they draw when they compute; else they idle.
        status: what it returns; 0 = success.
    """

    seconds: float
    computes: bool = True
    status: int = 0


class Site(Protocol):
    """Where a profile runs."""

    def run(self, profile: str, size: int) -> Run:
        """The run of another profile of the workload on `size` resources. Raises ConfigError."""

    def computing(self, flops: float) -> float:
        """Seconds that one resource takes for so many flops. Raises ConfigError: nobody says how fast it is."""

    def file(self, path: str) -> Path:
        """A file of the workload."""


class Work(Protocol):
    """What a profile does."""

    def run(self, size: int, site: Site) -> Run:
        """How that goes on `size` resources. Raises ConfigError: it is made for another size, or needs a network."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Waits for some seconds, whatever the machine, and computes nothing."""

    delay: float

    def run(self, size: int, site: Site) -> Run:
        """See `Work`."""
        return Run(self.delay, computes=False)


@dataclass(frozen=True, slots=True)
class Parallel:
    """Computes `cpu[i]` flops on the i-th resource, and sends bytes from each row of `com` to each column."""

    cpu: tuple[float, ...] = ()
    com: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.com and len(self.com) != self._size**2:
            raise bad(f"{len(self.com)} amounts", f"a square of bytes, here {self._size} x {self._size}", key="com")

    @property
    def _size(self) -> int:
        return len(self.cpu) or math.isqrt(len(self.com))

    def run(self, size: int, site: Site) -> Run:
        """See `Work`."""
        if self._size not in (0, size):
            raise bad(f"it is made for {self._size} resources, and the job asks for {size}", "the same number")
        if any(self.com):
            raise bad(NETWORK, ALONE)
        return Run(site.computing(max(self.cpu, default=0.0)))


@dataclass(frozen=True, slots=True)
class Homogeneous:
    """Computes `cpu` flops on each resource, and sends `com` bytes between any two; or spreads these over all."""

    cpu: float = 0.0
    com: float = 0.0
    spread: bool = False

    def run(self, size: int, site: Site) -> Run:
        """See `Work`."""
        if self.com and size > 1:
            raise bad(NETWORK, ALONE)
        return Run(site.computing(self.cpu / size if self.spread else self.cpu))


@dataclass(frozen=True, slots=True)
class Composed:
    """A sequence of other profiles, `repeat` times; the first that fails ends it."""

    sequence: tuple[str, ...]
    repeat: int = 1

    def run(self, size: int, site: Site) -> Run:
        """See `Work`."""
        seconds, computes = 0.0, False
        for part in self.sequence:
            run = site.run(part, size)
            seconds, computes = seconds + run.seconds, computes or run.computes
            if run.status:
                return Run(seconds, computes, run.status)
        return Run(self.repeat * seconds, computes)


@dataclass(frozen=True, slots=True)
class UsageTrace:
    """Each rank, alone on a resource, computes what its own file says."""

    trace: str

    def run(self, size: int, site: Site) -> Run:
        """See `Work`."""
        ranks = rank_flops(site.file(self.trace))
        if len(ranks) > size:
            raise bad(f"its trace has {len(ranks)} ranks, and the job asks for {size} resources", "one for each rank")
        return Run(max(sum(map(site.computing, flops)) for flops in ranks))


@dataclass(frozen=True, slots=True)
class Storage:
    """Moves bytes between the job's resources and a storage, or between two storages."""

    bytes: float

    def run(self, size: int, site: Site) -> Run:
        """See `Work`."""
        if self.bytes:
            raise bad(STORAGE, ALONE)
        return Run(0.0, computes=False)


@dataclass(frozen=True, slots=True)
class Unheard:
    """Something that is outside of what is simulated; `why` says so."""

    why: str

    def run(self, size: int, site: Site) -> Run:
        """See `Work`."""
        raise bad(self.why, ALONE)


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of a workload.

    Args:
        type: the name of its type, as it is written.
        work: what it does.
        returns: what it returns in the end; 0 = success.
        written: all of it, as it is in the file.
    """

    type: str
    work: Work
    returns: int = 0
    written: Mapping[str, Any] = field(default_factory=dict, compare=False)
