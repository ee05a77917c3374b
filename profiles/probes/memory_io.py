"""How much memory a job holds at its peak.

Rule: the sum of resident sets; where several processes share pages, the proportional sets are read instead,
but only when the sum reaches a new height, since the kernel walks the page tables for them.
"""

from __future__ import annotations

import os

from .base import read_proc
from .tree import ProcessTree

NEW_HEIGHT = 1.05


class Memory:
    """Peak of the tree's resident memory, bytes."""

    def __init__(self) -> None:
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._peak = self._highest_sum = 0.0

    def available(self) -> str | None:
        """Return why resident sets cannot be read here, or None."""
        return None if read_proc("/proc/self/statm") else "there is no /proc/PID/statm here"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on `tree`."""
        self._tree = tree
        self.sample(now)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read every process's resident set once. O(processes)."""
        residents = {pid: self._resident(pid) for pid in self._tree.threads}
        total = sum(residents.values())
        if len(residents) == 1:
            self._peak = max(self._peak, total)
        elif total > NEW_HEIGHT * self._highest_sum:
            self._highest_sum = total
            self._peak = max(self._peak, sum(_proportional(pid, rss) for pid, rss in residents.items()))

    def stop(self) -> float:
        """Return the peak, bytes: over the samples: what came and went between two of them is not in it."""
        return self._peak

    def _resident(self, pid: int) -> float:
        content = read_proc(f"/proc/{pid}/statm")
        return float(content.split()[1]) * self._page if content else 0.0


def _proportional(pid: int, otherwise: float) -> float:
    """Return a process's proportional set size, bytes; its resident set where that may not be read."""
    content = read_proc(f"/proc/{pid}/smaps_rollup") or b""
    for line in content.splitlines():
        if line.startswith(b"Pss:"):
            return float(line.split()[1]) * 1024
    return otherwise
