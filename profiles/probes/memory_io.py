"""Peak memory of a job, and its bytes read from and written to storage.

Rule: memory is the sum of resident sets; with several processes, which may share pages, proportional sets are read
instead, but only when the sum reaches a new peak, because the kernel must walk the page tables for them. A parent's I/O
counters include those of the children that it waited for (taskstats), so the sum over living processes never counts
twice; a sum once reached is kept.
"""

from __future__ import annotations

import os

from .probe import Probe
from .process_tree import ProcessTree, read_proc

#: A sum above the highest one by this factor is a new peak.
NEW_PEAK = 1.05


class Memory(Probe):
    """Peak of the tree's resident memory, bytes."""

    def __init__(self) -> None:
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._peak = self._highest_sum = 0.0

    def available(self) -> str | None:
        """Return why resident sets cannot be read here, or None."""
        return None if read_proc("/proc/self/statm") else "there is no /proc/PID/statm here"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on `tree`, with a first reading."""
        super().start(tree, now)
        self.sample(now)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read every process's resident set once. O(processes)."""
        residents = {pid: self._resident(pid) for pid in self._tree.threads}
        total = sum(residents.values())
        if len(residents) == 1:
            self._peak = max(self._peak, total)
        elif total > NEW_PEAK * self._highest_sum:
            self._highest_sum = total
            self._peak = max(self._peak, sum(_proportional(pid, rss) for pid, rss in residents.items()))

    def stop(self) -> float:
        """Return the peak over the samples, bytes; peaks between two samples are missed."""
        return self._peak

    def _resident(self, pid: int) -> float:
        content = read_proc(f"/proc/{pid}/statm")
        return float(content.split()[1]) * self._page if content else 0.0


def _proportional(pid: int, otherwise: float) -> float:
    """Return a process's proportional set size, bytes, or `otherwise` if it cannot be read."""
    content = read_proc(f"/proc/{pid}/smaps_rollup") or b""
    for line in content.splitlines():
        if line.startswith(b"Pss:"):
            return float(line.split()[1]) * 1024
    return otherwise


class StorageIO(Probe):
    """Bytes read from and written to storage by the tree (/proc/PID/io, proc(5))."""

    def __init__(self) -> None:
        self._read = self._written = 0.0

    def available(self) -> str | None:
        """Return why I/O cannot be counted here, or None."""
        return None if _counters("self") else "this kernel has no /proc/PID/io"

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read every process's counters once. O(processes)."""
        counters = [amounts for pid in self._tree.threads if (amounts := _counters(pid))]
        self._read = max(self._read, sum(read for read, _ in counters))
        self._written = max(self._written, sum(written for _, written in counters))

    def stop(self) -> tuple[float, float]:
        """Return (bytes read, bytes written)."""
        return self._read, self._written


def _counters(pid: int | str) -> tuple[float, float] | None:
    """Return (read_bytes, write_bytes) of a process, None if they cannot be read."""
    content = read_proc(f"/proc/{pid}/io")
    if not content:
        return None
    fields = dict(line.split(b": ", 1) for line in content.splitlines() if b": " in line)
    try:
        return float(fields[b"read_bytes"]), float(fields[b"write_bytes"])
    except (KeyError, ValueError):
        return None
