"""Jobs that wait for others in a replay: as tables for kernels, and as they are followed one by one.

Rule: who waits for a job that is rejected, ended by its walltime, or not successful, can never run: it is stranded. Of
each job that is known before the run, unless how long it runs is not.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels.batch.tables import HELD
from ..workload import Workload

Array = npt.NDArray[Any]


def held(workload: Workload, ends_well: Array | None = None) -> dict[str, Array]:
    """The tables of a kernel. O(jobs + dependencies log dependencies).

    Args:
        ends_well: which jobs do, as far as is known before the run; None: see `ends_well`.
    """
    given, size = workload.dependencies, len(workload)
    if given is None:
        return {name: np.zeros(int(name == "released"), np.int64) for name in HELD}
    well = _ends_well(workload) if ends_well is None else ends_well
    before, after = given.before[well[given.before]], given.after[well[given.before]]
    return {
        "unmet": np.bincount(given.after, minlength=size).astype(np.int64),
        "followers": after[np.lexsort((after, before))],
        "follower0": np.concatenate([[0], np.cumsum(np.bincount(before, minlength=size))]).astype(np.int64),
        "released": np.zeros(size + 1, np.int64),
        "given": np.zeros(size, np.int64),
    }


def _ends_well(workload: Workload) -> Array:
    """Which jobs end by themselves, with success, once they run."""
    returns = workload.more.get("returns", np.zeros(len(workload), np.int64))
    return np.asarray(~(workload.run_time > workload.walltime) & (returns == 0))


def stranded(unmet: Array, jobs: int) -> Array:
    """Which of so many jobs never ran for want of others, when all is done."""
    return unmet > 0 if len(unmet) else np.zeros(jobs, bool)


class Held:
    """Who waits for whom, followed one by one."""

    def __init__(self, workload: Workload) -> None:
        tables = held(workload)
        self.unmet: list[int] = tables["unmet"].tolist()
        self._followers: list[int] = tables["followers"].tolist()
        self._first: list[int] = tables["follower0"].tolist()
        self._released: list[int] = []

    def ended(self, number: int, upcoming: int) -> None:
        """A job has ended; the submit times of jobs from `upcoming` on are still to come."""
        if not self.unmet:
            return
        for follower in self._followers[self._first[number] : self._first[number + 1]]:
            self.unmet[follower] -= 1
            if not self.unmet[follower] and follower < upcoming:
                heappush(self._released, follower)

    def waits(self, number: int) -> bool:
        """Whether a job cannot be submitted, though its submit time has come."""
        return bool(self.unmet) and self.unmet[number] > 0

    def released(self) -> list[int]:
        """Who waits no more and is submitted now, in the order of rows."""
        return [heappop(self._released) for _ in range(len(self._released))]
