"""Functions of time that change in steps: resources in use, jobs that wait.

Rule: a mean over an interval is the integral divided by its length, so that means over any columns keep the area.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .run import Jobs, MachineStates

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Steps:
    """`values[i]` from `times[i]` until `times[i + 1]`; 0 before the first time, the last value for good.

    Args:
        times: seconds, each later than the one before.
        values: one a time.
    """

    times: Array
    values: Array

    def mean_over(self, edges: Array) -> Array:
        """The mean between each two neighbouring edges, which ascend. O(steps + edges log steps)."""
        if not len(self.times):
            return np.zeros(len(edges) - 1)
        area = np.concatenate([[0.0], np.cumsum(self.values[:-1] * np.diff(self.times))])
        last = np.searchsorted(self.times, edges, "right") - 1
        until = area[last] + self.values[last] * (edges - self.times[last])
        return np.diff(np.where(last >= 0, until, 0.0)) / np.diff(edges)

    def extremes_over(self, edges: Array) -> tuple[Array, Array]:
        """The least and the greatest value between each two neighbouring edges. O(steps + edges log steps)."""
        values = np.concatenate([np.zeros(1, self.values.dtype), self.values, np.zeros(1, self.values.dtype)])
        first = np.searchsorted(self.times, edges[:-1], "right")
        after = np.maximum(np.searchsorted(self.times, edges[1:], "left") + 1, first + 1)
        bounds = np.stack([first, after], axis=1).ravel()
        low, high = (each.reduceat(values, bounds)[::2] for each in (np.minimum, np.maximum))
        return low, high


def changes(times: Array, by: Array) -> Steps:
    """The sum of all changes up to each time. O(n log n)."""
    at, place = np.unique(times, return_inverse=True)
    return Steps(at, np.cumsum(np.bincount(place, by, len(at)).round()).astype(np.int64))


def busy(jobs: Jobs) -> Steps:
    """Resources in use."""
    ran, held = jobs.ran, jobs.held
    return _between(jobs.start[ran], jobs.finish[ran], held[ran])


def waiting(jobs: Jobs) -> Steps:
    """Jobs that are in the queue; those that never began are not counted."""
    ran = jobs.ran
    return _between(jobs.submit[ran], jobs.start[ran], np.ones(np.count_nonzero(ran)))


def wanted(jobs: Jobs) -> Steps:
    """Resources that the jobs in the queue ask for."""
    ran = jobs.ran
    return _between(jobs.submit[ran], jobs.start[ran], jobs.size[ran])


def _between(begin: Array, end: Array, by: Array) -> Steps:
    return changes(np.concatenate([begin, end]), np.concatenate([by, -by]))


def states(found: MachineStates) -> list[Steps]:
    """Machines in each of STATES; of several rows at one time the last counts."""
    last = np.append(np.diff(found.time) > 0, True)[: len(found.time)]
    return [Steps(found.time[last], counts) for counts in found.counts[last].T]
