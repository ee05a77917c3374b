"""What every probe looks like.

Rule: a probe only reads. It says why it cannot, before it starts; once started it never raises for a
process that has gone, and what it could not read is None in its readings. Probes of files take the root
under which /proc and /sys are.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, TypeVar

from .tree import ProcessTree

Readings = TypeVar("Readings", covariant=True)
ROOT = Path("/")


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


def read_proc(path: str | Path, most: int = 8192) -> bytes | None:
    """Read up to `most` bytes of a file of /proc or /sys; None if it has gone or may not be looked at."""
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


def read_text(path: str | Path) -> str | None:
    """Read a small file of /proc or /sys as text without blanks at its ends; None as `read_proc` has it."""
    content = read_proc(path, 1 << 16)
    return None if content is None else content.decode(errors="replace").strip()


def read_number(path: str | Path) -> float | None:
    """Read a file that holds one number; None if it has gone, may not be looked at, or holds something else."""
    try:
        return float(int(read_text(path) or ""))
    except ValueError:
        return None
