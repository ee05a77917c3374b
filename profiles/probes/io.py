"""How much a job reads from and writes to storage.

Rule: a parent's counters take in those of the children that it waited for (taskstats in the kernel's wait),
so the sum over the processes that are still there never counts twice; what was reached is never given up
again.
"""

from __future__ import annotations

from .base import read_proc
from .tree import ProcessTree


class StorageIO:
    """Bytes read from and written to storage by the tree (/proc/PID/io, proc(5))."""

    def __init__(self) -> None:
        self._read = self._written = 0.0

    def available(self) -> str | None:
        """Return why I/O cannot be counted here, or None."""
        return None if _counters("self") else "this kernel has no /proc/PID/io"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on `tree`."""
        self._tree = tree

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read every process's counters once. O(processes)."""
        counters = [found for pid in self._tree.threads if (found := _counters(pid))]
        self._read = max(self._read, sum(read for read, _ in counters))
        self._written = max(self._written, sum(written for _, written in counters))

    def stop(self) -> tuple[float, float]:
        """Return (bytes read, bytes written)."""
        return self._read, self._written


def _counters(pid: int | str) -> tuple[float, float] | None:
    """Return (read_bytes, write_bytes) of a process, None if they may not be read."""
    content = read_proc(f"/proc/{pid}/io")
    if not content:
        return None
    fields = dict(line.split(b": ", 1) for line in content.splitlines() if b": " in line)
    try:
        return float(fields[b"read_bytes"]), float(fields[b"write_bytes"])
    except (KeyError, ValueError):
        return None
