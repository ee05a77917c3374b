"""The sampler: what a job's processes use while they run, within one CPU allowance per node.

Rule: all samplers of a node share an allowance in a file. A sample that took c seconds of CPU costs c / SHARE seconds
of rest for whichever sampler is next; up to CREDIT_S of unused rest are kept, so that jobs of a moment are sampled too.
Each sampler pays for its next sample in advance, so that none waits for another, and returns what it did not use.
Without the file, or while it is locked, each keeps to its own rest. Times come from schedstat, in nanoseconds on a core
and waiting for one; a task's sums are kept when it has ended. Standard library only, because the keeper imports this.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable

from .job_files import opened
from .processes import boot_id

#: Share of one core for sampling all jobs of a node; the rest of a node's 0.5 % is for hardware counters.
SHARE = 0.003
#: Assumed cost of the first sample, CPU seconds.
FIRST_COST_S = 0.0005
#: Seconds of unused rest that are kept, worth CREDIT_S * SHARE seconds of samples at once.
CREDIT_S = 10.0
#: What killed keepers paid and did not use is forgotten after so many seconds.
LONGEST_CREDIT_S = 60.0


class Pace:
    """One keeper's part of the allowance in the shared file `path`, which is created if missing."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._paid_s, self._spent_s = 0.0, time.process_time()

    def begin(self) -> float:
        """Pay for the first sample; return when it may be taken, monotonic seconds."""
        self._spent_s = time.process_time()
        return self._pay(FIRST_COST_S)

    def next(self) -> float:
        """Settle the last payment by the CPU time really used, and pay the same again.

        Return when the next sample may be taken, monotonic seconds.
        """
        spent_s = time.process_time()
        cost_s, self._spent_s = spent_s - self._spent_s, spent_s
        return self._pay(cost_s - self._paid_s + cost_s, cost_s)

    def end(self) -> None:
        """Return what was paid for a sample that will not be taken."""
        if self._paid_s:
            self._pay(-self._paid_s, 0.0)

    def _pay(self, cost_s: float, paid_s: float | None = None) -> float:
        self._paid_s = cost_s if paid_s is None else paid_s
        now = time.monotonic()
        with contextlib.suppress(OSError), opened(self._path, os.O_RDWR | os.O_CREAT) as fd:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            due = paid_from(os.pread(fd, 200, 0), cost_s, now)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{boot_id()} {due}\n".encode(), 0)
            return max(now, due)
        return now + max(0.0, cost_s) / SHARE


def paid_from(content: bytes, cost_s: float, now: float) -> float:
    """Return the time from which the next sample is paid for; if that is past, the rest since then is unused.

    Args:
        content: Content of the file: boot id and that time, as of before; another boot or unreadable: ignored.
        cost_s: CPU seconds to pay for; < 0: to return.
        now: Monotonic seconds.
    """
    before = now - CREDIT_S
    words = content.decode(errors="replace").split()
    if len(words) == 2 and words[0] == boot_id():
        with contextlib.suppress(ValueError):
            before = min(max(float(words[1]), before), now + LONGEST_CREDIT_S)
    return max(now - CREDIT_S, before + cost_s / SHARE)


FIRST_S, LONGEST_S = 0.05, 1.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Sampler:
    """Samples one job within the node's allowance; `due` is when to take the next sample, monotonic seconds."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._banked = [0, 0]
        self._last: dict[tuple[int, int], tuple[int, int]] = {}  # (process, task) -> ns on a core, ns waiting
        self._interval = FIRST_S
        self.due = float("inf")
        self.threads = self.tasks = self.memory_bytes = 0

    @property
    def started(self) -> bool:
        """True once the job's own program runs, so that samples are meaningful."""
        return self.due != float("inf")

    def start(self) -> None:
        """Begin to sample."""
        self.due = max(time.monotonic() + FIRST_S, self._pace.begin())

    def end(self) -> None:
        """Return the rest of the allowance to the other samplers."""
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
        running = sum(key in last and on > last[key][0] for key, (on, _) in now.items())
        self.threads, self.tasks = max(self.threads, running), max(self.tasks, len(now))
        self.memory_bytes = max(self.memory_bytes, pages * PAGE_BYTES)
        for key, sums in last.items():
            if key not in now or now[key][0] < sums[0]:  # it has ended, or its number belongs to another task
                self._banked[0] += sums[0]
                self._banked[1] += sums[1]
        self._last = now
        self._interval = min(self._interval * 1.5, LONGEST_S)
        self.due = max(time.monotonic() + self._interval, self._pace.next())

    def sample_ended(self, pid: int) -> None:
        """Sample a process that has ended but is not reaped yet: its main thread's sums are still there."""
        self._read(self._last, pid, pid)

    def usage(self) -> dict[str, float]:
        """Return what was observed; quantities without an observation are absent.

        on_core_seconds and waiting_seconds are sums over tasks; threads is the largest number of tasks that ran between
        two samples, tasks the largest number of tasks, memory_bytes the largest resident size of all processes
        together.
        """
        on, waiting = (self._banked[i] + sum(sums[i] for sums in self._last.values()) for i in (0, 1))
        times = {"on_core_seconds": on / 1e9, "waiting_seconds": waiting / 1e9} if on else {}
        maxima = {"threads": self.threads, "tasks": self.tasks, "memory_bytes": self.memory_bytes}
        return times | {name: float(value) for name, value in maxima.items() if value}

    @staticmethod
    def _read(into: dict[tuple[int, int], tuple[int, int]], pid: int, task: int) -> None:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/task/{task}/schedstat") as file:
            on, waiting = file.read().split()[:2]
            into[pid, task] = int(on), int(waiting)
