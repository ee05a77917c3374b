"""Dependencies of jobs in replays: the tables of the kernels, and the same followed from Python.

Rule: jobs that depend on a rejected, killed or failed job are stranded. Failures are known before the run, except for
tasks that contend, so failed jobs have no followers in the tables.
"""

from __future__ import annotations

from heapq import heappop, heappush

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
    given, size = workload.dependencies, len(workload)
    if given is None:
        return {name: np.zeros(0, np.int64) for name in HELD}
    returns = workload.more.get("returns", np.zeros(size, np.int64))
    well = ~workload.overruns & (returns == 0) if ends_well is None else ends_well
    before, after = given.before[well[given.before]], given.after[well[given.before]]
    return {
        "unmet": np.bincount(given.after, minlength=size).astype(np.int64),
        "followers": after[np.lexsort((after, before))],
        "follower0": np.concatenate([[0], np.cumsum(np.bincount(before, minlength=size))]).astype(np.int64),
        "released": np.zeros(size, np.int64),
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
    """Dependencies of jobs, followed one job end at a time (for the Python loop)."""

    def __init__(self, workload: Workload) -> None:
        tables = dependency_tables(workload)
        self.unmet: list[int] = tables["unmet"].tolist()
        self._followers: list[int] = tables["followers"].tolist()
        self._first: list[int] = tables["follower0"].tolist()
        self._released: list[int] = []

    def job_ended(self, number: int, upcoming: int) -> None:
        """Record the end of job `number`; the submit times from job `upcoming` on have not come yet."""
        for follower in self._followers[self._first[number] : self._first[number + 1]] if self.unmet else ():
            self.unmet[follower] -= 1
            if not self.unmet[follower] and follower < upcoming:
                heappush(self._released, follower)

    def is_blocked(self, number: int) -> bool:
        """Return whether a job has an unmet dependency."""
        return bool(self.unmet) and self.unmet[number] > 0

    def pop_released(self) -> list[int]:
        """Remove and return the jobs that are submitted now because their last dependency was met, in row order."""
        return [heappop(self._released) for _ in range(len(self._released))]
