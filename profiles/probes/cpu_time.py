"""Time that each thread of a job was on a core, and time that it waited for one.

Rule: /proc/PID/task/TID/schedstat where the kernel has it (nanoseconds on a core, nanoseconds waiting); else psutil,
which has steps of 10 ms and no waiting time.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator

from .probe import Probe
from .process_tree import ProcessTree, read_proc
from .thread_record import ThreadRecord

#: A thread with a smaller share of an interval than this was not at work in it.
AT_WORK = 0.10
#: Shorter intervals than this, seconds, are ignored for utilisation.
SHORTEST_STEP = 0.02


class _ThreadTimes(Probe):
    """Base of both sources: turns readings (tid, core time, waiting time) into records.

    `peak` is the number of threads at work at once (core time and waiting per elapsed time), reached in at least two
    intervals: one is no proof, as the kernel books a wait when it ends, maybe in a later interval.
    """

    def __init__(self) -> None:
        self._alive: dict[int, ThreadRecord] = {}
        self._records: list[ThreadRecord] = []
        self._previous = self._highest = self.peak = 0.0

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on `tree`; time used before `now` counts as used at the beginning."""
        self._tree, self._previous = tree, 0.0
        self.sample(now)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read every thread once. O(threads)."""
        tids, busy = set(), 0.0
        for tid, on_s, wait_s in self._read(self._tree):
            tids.add(tid)
            record = self._alive.get(tid)
            if record is None or on_s < record.on_s:
                busy += self._add(tid, on_s, wait_s, now)
            else:
                busy += _update(record, on_s, wait_s, now, last)
        if now - self._previous > SHORTEST_STEP:
            at_once = busy / (now - self._previous)
            self.peak = max(self.peak, min(at_once, self._highest))
            self._highest = max(self._highest, at_once)
        for tid in self._alive.keys() - tids:
            record = self._alive.pop(tid)
            record.gap_s = now - record.read_at
        self._previous = now

    def stop(self) -> list[ThreadRecord]:
        """Return a record of every thread that used a core."""
        return [record for record in self._records if record.on_s > 0]

    @abstractmethod
    def _read(self, tree: ProcessTree) -> Iterator[tuple[int, float, float]]:
        """Yield the id of each thread, its seconds on a core, and its seconds waiting for one."""

    def _add(self, tid: int, on_s: float, wait_s: float, now: float) -> float:
        """Add a thread that appeared since the last reading; return its time on or for a core."""
        begin = max(self._previous, now - on_s - wait_s)
        at_work = on_s > AT_WORK * (now - self._previous) > AT_WORK * SHORTEST_STEP
        record = ThreadRecord(begin, now, on_s, wait_s, readings=int(at_work), read_at=now)
        record.history.add(begin, 0.0, 0.0)
        record.history.add(now, on_s, wait_s)
        self._records.append(record)
        self._alive[tid] = record
        return min(on_s + wait_s, now - self._previous)


def _update(record: ThreadRecord, on_s: float, wait_s: float, now: float, last: bool) -> float:
    """Update a thread's record; return its time on or for a core since the last reading."""
    step, used, waited = now - record.read_at, on_s - record.on_s, wait_s - record.wait_s
    if step - waited > SHORTEST_STEP:
        record.steps.add(min(1.0, used / (step - waited)))
    if used > AT_WORK * step:
        record.end = now
        record.readings += not last  # exiting is not work
    record.on_s, record.wait_s, record.read_at = on_s, wait_s, now
    record.history.add(now, on_s, wait_s)
    return min(used + waited, step)  # a wait is booked when it ends, maybe an interval late


class Schedstat(_ThreadTimes):
    """Nanoseconds from schedstat, of every thread of the tree."""

    def available(self) -> str | None:
        """Return why schedstat cannot be read here, or None."""
        fields = (read_proc("/proc/self/schedstat") or b"").split()
        if len(fields) < 3:
            return "this kernel has no /proc/PID/schedstat"
        return None if int(fields[0]) else "this kernel does not fill /proc/PID/schedstat"

    def _read(self, tree: ProcessTree) -> Iterator[tuple[int, float, float]]:
        for pid, threads in tree.threads.items():
            for tid in threads:
                content = read_proc(f"/proc/{pid}/task/{tid}/schedstat")
                if content:
                    on, wait, _ = content.split(b" ", 2)
                    yield tid, int(on) * 1e-9, int(wait) * 1e-9


class PsutilTimes(_ThreadTimes):
    """User and system time from psutil; waiting is unknown and stays 0."""

    def available(self) -> str | None:
        """Return why psutil cannot be used here, or None."""
        try:
            import psutil

            psutil.Process(os.getpid()).threads()
        except Exception as problem:  # psutil's own errors, or ImportError
            return f"psutil cannot read threads here: {problem}"
        return None

    def _read(self, tree: ProcessTree) -> Iterator[tuple[int, float, float]]:
        import psutil

        try:
            root = psutil.Process(tree.root)
            processes = [root, *root.children(recursive=True)]
        except psutil.Error:
            return
        for process in processes:
            try:
                threads = process.threads()
            except psutil.Error:
                continue
            for thread in threads:
                yield thread.id, thread.user_time + thread.system_time, 0.0


def thread_times() -> Schedstat | PsutilTimes:
    """Return the best source of thread times on this machine."""
    schedstat = Schedstat()
    return schedstat if schedstat.available() is None else PsutilTimes()
