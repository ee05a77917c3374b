"""Dependencies of jobs in replays: the tables of the kernels, and the same followed from Python.

Rule: jobs that depend on a rejected, killed or failed job are stranded. Failures are known before the run, except for
tasks that contend, so failed jobs have no followers in the tables.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

import numpy as np

from ..arrays import Array
from ..kernels.queue.tables import HELD
from ..model.workload import Workload


def dependency_tables(workload: Workload, ends_well: Array | None = None) -> dict[str, Array]:
    """Return the dependency tables of a kernel. O(jobs + dependencies log dependencies).

    Args:
        workload: the jobs.
        ends_well: [jobs], which jobs can succeed; None: those that end within their walltime and return success.
    """
    dependencies, size = workload.dependencies, len(workload)
    if dependencies is None:
        return {name: np.zeros(0, kind) for name, (kind, _) in HELD.items()}
    returns = workload.more.get("returns", np.zeros(size, np.int64))
    well = ~workload.overruns & (returns == 0) if ends_well is None else ends_well
    pairs = dependencies.pairs(well[dependencies.before] | dependencies.at_any_end)
    pairs = pairs.pairs(np.lexsort((pairs.after, pairs.before)))
    return {
        "unmet": np.bincount(dependencies.after, minlength=size).astype(np.int64),
        "followers": pairs.after,
        "follower0": np.concatenate([[0], np.cumsum(np.bincount(pairs.before, minlength=size))]).astype(np.int64),
        "delays": pairs.delays,
        "at_any_end": pairs.at_any_end.astype(np.int64),
        "eligible": np.full(size, -np.inf),
        "released": np.zeros(size, np.int64),
        "released_at": np.zeros(size),
        "released_place": np.zeros(size, np.int64),
        "given": np.zeros(size, np.int64),
    }


def stranded(unmet: Array, jobs: int) -> Array:
    """Return which jobs never ran because of an unmet dependency.

    Args:
        unmet: unmet dependencies of each job after the replay; empty if the workload has none.
        jobs: number of jobs.
    """
    return unmet > 0 if len(unmet) else np.zeros(jobs, bool)


class DependencyTracker:
    """Dependencies of jobs, followed one job end at a time (for policies in Python).

    Args:
        workload: the jobs.
        ends_well: see `dependency_tables`.
    """

    def __init__(self, workload: Workload, ends_well: Array | None = None) -> None:
        tables = dependency_tables(workload, ends_well)
        self.unmet: list[int] = tables["unmet"].tolist()
        columns = (tables[name].tolist() for name in ("followers", "delays", "at_any_end"))
        self._followers: list[tuple[int, float, int]] = list(zip(*columns, strict=True))
        self._first: list[int] = tables["follower0"].tolist()
        self._eligible: list[float] = tables["eligible"].tolist()
        self._released: list[tuple[float, int]] = []

    def job_ended(self, number: int, upcoming: int, now: float, *, well: bool = True) -> None:
        """Record the end of a job.

        Args:
            number: its row.
            upcoming: the first row whose submit time has not come yet.
            now: seconds.
            well: whether it ended by itself and with success.
        """
        for follower, delay, any_end in self._pairs(number):
            if well or any_end:
                self.unmet[follower] -= 1
                self._eligible[follower] = max(self._eligible[follower], now + delay)
                if not self.unmet[follower] and follower < upcoming:
                    heappush(self._released, (self._eligible[follower], follower))

    def _pairs(self, number: int) -> list[tuple[int, float, int]]:
        return self._followers[self._first[number] : self._first[number + 1]] if self.unmet else []

    def arrives(self, number: int, now: float) -> bool:
        """Return whether a job whose submit time has come is submitted now; otherwise it is released later, or never.

        Args:
            number: its row.
            now: seconds.
        """
        if not self.unmet:
            return True
        if not self.unmet[number] and self._eligible[number] > now:
            heappush(self._released, (self._eligible[number], number))
            return False
        return not self.unmet[number]

    def is_blocked(self, number: int) -> bool:
        """Return whether a job has an unmet dependency, or a delay that is not over."""
        return bool(self.unmet) and (self.unmet[number] > 0 or any(row == number for _, row in self._released))

    @property
    def next_time(self) -> float:
        """Time at which the next job is released, seconds; infinite if no delay is running."""
        return self._released[0][0] if self._released else inf

    def pop_released(self, now: float) -> list[int]:
        """Remove and return the jobs whose last dependency was met and whose delay is over, by time, then by row."""
        rows = []
        while self._released and self._released[0][0] <= now:
            rows.append(heappop(self._released)[1])
        return rows
