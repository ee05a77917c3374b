"""What the jobs of a Batsim workload do: one frozen value for each kind of profile.

Rule: a profile says what is done on so many resources, whatever these are; how long that takes is not its matter.
Source: Batsim's documentation, "Workload".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..phases import Even, Matrix, Part, Stage, Steps, Store, Wait
from .batsim_traces import rank_flops
from .units import bad

ALLOWED = "profiles that wait, compute, or send"


class Done(NamedTuple):
    """What is done, and what is returned then; 0 = success."""

    part: Part
    status: int = 0


class Site(Protocol):
    """Where profiles are."""

    def done(self, profile: str, size: int) -> Done:
        """What another profile of the workload does on `size` resources. Raises ConfigError."""

    def file(self, path: str) -> Path:
        """A file of the workload."""


class Work(Protocol):
    """What a profile does."""

    def on(self, size: int, site: Site) -> Done:
        """That, on `size` resources. Raises ConfigError: it is made for another size, or not simulated."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Waits for some seconds, whatever the machine, and computes nothing."""

    delay: float

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        return Done(Wait(self.delay))


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

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        if self._size not in (0, size):
            raise bad(f"it is made for {self._size} resources, and the job asks for {size}", "the same number")
        return Done(Matrix(self.cpu, self.com))


@dataclass(frozen=True, slots=True)
class Homogeneous:
    """Computes `cpu` flops on each resource, and sends `com` bytes between any two; or spreads these over all."""

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
    """A sequence of other profiles, `repeat` times; the first that fails ends it."""

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
    """Each rank, alone on a resource, computes what its own file says."""

    trace: str

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        ranks = rank_flops(site.file(self.trace))
        if len(ranks) > size:
            raise bad(f"its trace has {len(ranks)} ranks, and the job asks for {size} resources", "one for each rank")
        return Done(Matrix(tuple(map(sum, ranks))))


@dataclass(frozen=True, slots=True)
class OnStorage:
    """Each resource reads bytes from a storage, and writes some to it; or all of them together do."""

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
    """Bytes go from one storage to another."""

    source: str
    target: str
    bytes: float

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        return Done(Stage(self.source, self.target, self.bytes))


@dataclass(frozen=True, slots=True)
class Unheard:
    """Something that is outside of what is simulated; `why` says so."""

    why: str

    def on(self, size: int, site: Site) -> Done:
        """See `Work`."""
        raise bad(self.why, ALLOWED)


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
