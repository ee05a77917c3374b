"""The sampler: what a job's processes use while they run.

Rule: all samplers of a node share one allowance (see `pace`). Sums of time come from schedstat, in nanoseconds: time
on a core, and time waiting for one; a task's sums are banked when it has ended. Standard library only: the keeper
uses it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

from .pace import Pace

FIRST_S, LONGEST_S = 0.05, 1.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Sampler:
    """Samples of one job; `due` is when the next one should be taken (monotonic seconds).

    Args:
        pace: the node's.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._banked = [0, 0]
        self._last: dict[tuple[int, int], tuple[int, int]] = {}  # (process, task) -> ns on a core, ns waiting
        self._interval = FIRST_S
        self.due = float("inf")
        self.threads = self.tasks = self.memory_bytes = 0

    @property
    def started(self) -> bool:
        """Whether the job's own program runs, so that samples mean something."""
        return self.due != float("inf")

    def start(self) -> None:
        """Begin to sample."""
        self.due = max(time.monotonic() + FIRST_S, self._pace.begin())

    def end(self) -> None:
        """Leave what is left of the allowance to others."""
        self._pace.end()

    def sample(self, pids: Iterable[int]) -> None:
        """Read every task of `pids` once. O(tasks)."""
        now: dict[tuple[int, int], tuple[int, int]] = {}
        pages = 0
        for pid in pids:
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/statm") as file:
                    pages += int(file.read().split()[1])
                for task in os.listdir(f"/proc/{pid}/task"):
                    self._read(now, pid, int(task))
        last = self._last
        ran = sum(key in last and on > last[key][0] for key, (on, _) in now.items())
        self.threads, self.tasks = max(self.threads, ran), max(self.tasks, len(now))
        self.memory_bytes = max(self.memory_bytes, pages * PAGE_BYTES)
        for key, sums in last.items():
            if key not in now or now[key][0] < sums[0]:  # it has ended, or its number was given to another
                self._banked[0] += sums[0]
                self._banked[1] += sums[1]
        self._last = now
        self._interval = min(self._interval * 1.5, LONGEST_S)
        self.due = max(time.monotonic() + self._interval, self._pace.next())

    def last_words(self, pid: int) -> None:
        """Read a process that has ended but was not waited for: its main thread's sums are still there."""
        self._read(self._last, pid, pid)

    def usage(self) -> dict[str, float]:
        """Return what was seen; names that nothing was seen for are absent.

        on_core_seconds and waiting_seconds are sums over tasks; threads: most tasks that ran between two
        samples; tasks: most that there were; memory_bytes: most that was resident, all processes together.
        """
        on, waiting = (self._banked[i] + sum(sums[i] for sums in self._last.values()) for i in (0, 1))
        seen = {"on_core_seconds": on / 1e9, "waiting_seconds": waiting / 1e9} if on else {}
        counted = {"threads": self.threads, "tasks": self.tasks, "memory_bytes": self.memory_bytes}
        return seen | {name: float(value) for name, value in counted.items() if value}

    @staticmethod
    def _read(into: dict[tuple[int, int], tuple[int, int]], pid: int, task: int) -> None:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/task/{task}/schedstat") as file:
            on, waiting = file.read().split()[:2]
            into[pid, task] = int(on), int(waiting)
