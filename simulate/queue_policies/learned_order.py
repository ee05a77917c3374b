"""A learned order of the queue: a weighted sum of ten features of each waiting job.

Rule: the smallest sum comes first, ties by submission; the kernel `queue.learned_score` computes the same. A job that
has waited for longer than `max_wait` goes before all others. It sees what a scheduler knows: a job's limit and size,
how long it has waited, and its expected run time: the prediction if run times are predicted, else the mean of its
user's last two jobs that ended. Users are never compared by name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .interface import QueueView
    from .queued_job import QueuedJob

#: Version of FEATURES; another meaning, order or constant is another version.
FEATURE_SET = "queue/2"
#: What is weighed: w limit, p expected run time, t time waited (seconds), q size, P resources in all, F free ones.
FEATURES = (
    "log1p(w) / 10",
    "log2(q) / 10",
    "log1p(p) / 10",
    "log1p(t) / 10",
    "log1p(t / max(w, 60)) / 3",
    "log1p(t / max(p, 60)) / 3",
    "q / P",
    "1 if q <= F",
    "log1p(w) * log2(q) / 100",
    "log1p(p) / 10 * log1p(t / max(w, 60)) / 3",
)
#: What the name of a model's file ends with.
MODEL_SUFFIX = ".pfmodel.json"
#: The user of a job whose user is not known, in traces.
UNKNOWN_USER = -1
#: The longest wait before a job goes first, seconds: two days.
MAX_WAIT_S = 172_800.0
_LEAST_S = 60.0
_ROUND = 8193.0


@dataclass(frozen=True, slots=True)
class OrderFile:
    """A learned order that a SPEC names by its file, which is not read yet."""

    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class LearnedOrder:
    """A learned order.

    Args:
        text: its name in the SPEC of a policy, such as the path of its file.
        weights: of FEATURES, finite.
        max_wait: seconds, above 0; inf: no bound.
    """

    text: str
    weights: tuple[float, ...]
    max_wait: float = MAX_WAIT_S

    def __str__(self) -> str:
        return self.text


class LearnedQueue:
    """The queue under a learned order.

    Args:
        order: the order.
    """

    steady = False

    def __init__(self, order: LearnedOrder) -> None:
        self._order = order
        self._lately = dict[object, tuple[float, float]]()  # user -> the run times of the last two jobs
        self._times = dict[int, tuple[float, float]]()  # job -> its limit, and its expected run time as it came

    def sorted(self, now: QueueView) -> list[QueuedJob]:
        """Return the waiting jobs, the first in the queue first. O(waiting jobs log waiting jobs)."""
        for running in now.ended:
            if (user := running.job.user) not in (None, UNKNOWN_USER):
                run_time = now.time - running.start_time
                last, _ = self._lately.get(user, (run_time, run_time))
                self._lately[user] = run_time, last
            self._times.pop(running.job.number, None)
        for job in now.submitted:
            self._times[job.number] = self._times_of(job)
        return sorted(now.waiting, key=lambda job: self._key(job, now))

    def _key(self, job: QueuedJob, now: QueueView) -> float:
        wait = now.time - job.submit_time
        if wait > self._order.max_wait:
            return -math.inf
        limit, expected = self._times[job.number]
        values = features(job.size, limit, expected, wait, now.machine.processors, now.free)
        return sum_of(self._order.weights, values)

    def _times_of(self, job: QueuedJob) -> tuple[float, float]:
        """Return the limit and the expected run time of a job that is submitted now, seconds."""
        if job.predicted:
            return job.walltime if math.isnan(job.limit) else job.limit, job.walltime
        if not math.isnan(job.expected):
            return job.walltime, min(job.expected, job.walltime)
        last, before = self._lately.get(job.user, (math.inf, math.inf))
        return job.walltime, min(0.5 * (last + before), job.walltime)


def features(size: int, walltime: float, expected: float, wait: float, processors: int, free: int) -> tuple[float, ...]:
    """Return FEATURES of a waiting job.

    Args:
        size: its requested resources.
        walltime: its limit, seconds.
        expected: its expected run time, seconds, at most its limit.
        wait: seconds since its submission.
        processors: resources of the machine.
        free: those that are free.
    """
    limit, width, run = math.log1p(walltime) / 10.0, math.log2(size) / 10.0, math.log1p(expected) / 10.0
    patience = math.log1p(wait / max(walltime, _LEAST_S)) / 3.0
    return (
        limit, width, run, math.log1p(wait) / 10.0, patience, math.log1p(wait / max(expected, _LEAST_S)) / 3.0,
        size / processors, float(size <= free), limit * width, run * patience,
    )  # fmt: skip


def sum_of(weights: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Return the weighted sum, rounded to 40 bits (Veltkamp's splitting)."""
    total = 0.0
    for weight, value in zip(weights, values, strict=True):
        total += weight * value
    large = total * _ROUND
    return large - (large - total)
