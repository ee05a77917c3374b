"""What every probe looks like.

Rule: a probe only reads. It says why it cannot, before it starts; once started it never raises for a
process that has gone. Counters (perf, LIKWID, resctrl, RAPL) are further probes behind this same protocol.
"""

from __future__ import annotations

import os
from typing import Protocol, TypeVar

from .tree import ProcessTree

Readings = TypeVar("Readings", covariant=True)


class Probe(Protocol[Readings]):
    """One source of readings about a process tree."""

    def available(self) -> str | None:
        """Return why this machine cannot be read this way, or None if it can."""
        ...

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on `tree` at `now` (seconds since the job began)."""
        ...

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read once; `last`: the root has ended and is kept as a zombie, so what it shows is final."""
        ...

    def stop(self) -> Readings:
        """Return what was seen from start to the last sample."""
        ...


def read_proc(path: str, most: int = 8192) -> bytes | None:
    """Read up to `most` bytes of a file of /proc; None if its process has gone or may not be looked at."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(handle, most)
    except OSError:
        return None
    finally:
        os.close(handle)
