"""Orders of the queue in Python.

Rule: that of `order_ranks.ORDERS`, but `random` differs from that of the kernels: it is drawn from the seed and the id
of each job, so that it stays the same from one plan to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from hashlib import blake2b

import numpy as np

from ..arrays import Array
from .interface import QueueView
from .order_ranks import CHANGING, static_keys
from .queued_job import QueuedJob


class Order:
    """An order of the queue; ties are broken by submission.

    Args:
        name: a key of `order_ranks.ORDERS`.
        seed: of the random order.
        began: the first submission of the trace, seconds; infinite: that of the first job that is shown.
    """

    def __init__(self, name: str, seed: int = 0, began: float = math.inf) -> None:
        self._name, self._seed, self._began = name, seed, began

    @property
    def steady(self) -> bool:
        """True if the order of two jobs does not change with time."""
        return self._name not in CHANGING

    def sorted(self, now: QueueView) -> list[QueuedJob]:
        """Return the waiting jobs, the first in the queue first. O(waiting jobs log waiting jobs)."""
        return self.arranged(now.waiting, now.submitted, now.time, now.columns)

    def behind(self, jobs: list[QueuedJob]) -> list[QueuedJob]:
        """Return the jobs behind a reservation in their order, which is that of the queue."""
        return jobs

    def arranged(
        self,
        waiting: Iterable[QueuedJob],
        submitted: Iterable[QueuedJob],
        time: float,
        columns: Callable[[], dict[str, Array]],
    ) -> list[QueuedJob]:
        """Return the same from parts of a snapshot."""
        jobs, name = [*waiting], self._name
        self._began = min([self._began, *(job.submit_time for job in submitted)])
        if name == "random":
            return sorted(jobs, key=lambda job: blake2b(f"{self._seed} {job.id}".encode(), digest_size=8).digest())
        if name in CHANGING:
            return sorted(jobs, key=lambda job: -_score(job, name, time))
        if name == "fcfs" or not jobs:
            return jobs
        of = columns()
        scores = static_keys(name, of["walltime"], of["size"], of["submit_time"] - self._began, self._seed)
        return [jobs[i] for i in np.argsort(scores, kind="stable").tolist()]


def _score(job: QueuedJob, order: str, now: float) -> float:
    """Return the score of a waiting job in an order that changes with time; the largest comes first."""
    wait = now - job.submit_time
    if job.walltime <= 0.0:
        return math.inf if wait > 0.0 else 0.0
    if order == "wfp3":
        ratio = wait / job.walltime
        return ratio * ratio * ratio * job.size
    return wait / (math.log2(max(job.size, 2)) * job.walltime)
