"""A learned order of the queue: a score of each waiting job that rests on ten features, see `order_score`.

Rule: the smallest score comes first, ties by submission; the kernel `queue.learned_score` computes the same. A job that
has waited for longer than `max_wait` goes before all others. The jobs behind the reservation may have an order of their
own, by the same features when the decision begins. It sees what a scheduler knows: a job's limit and size,
how long it has waited, and its expected run time: the prediction if run times are predicted, else the mean of its
user's last two jobs that ended. Users are never compared by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..arrays import Array
from .order_score import scores_of
from .queued_job import QueuedJob

if TYPE_CHECKING:
    from .interface import QueueView

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
#: FEATURES in words.
FEATURE_NAMES = (
    "limit", "size", "expected run time", "wait", "wait over limit", "wait over expected run time",
    "share of the machine", "fits now", "limit and size", "expected run time and wait over limit",
)  # fmt: skip
#: What the name of a model's file ends with.
MODEL_SUFFIX = ".pfmodel.json"
#: The user of a job whose user is not known, in traces.
UNKNOWN_USER = -1
#: The longest wait before a job goes first, seconds: two days.
MAX_WAIT_S = 172_800.0
_LEAST_S = 60.0
_NUMBER = attrgetter("number")


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
        weights: finite, see `order_score.score_of`.
        max_wait: seconds, above 0; inf: no bound.
        fill: the weights of the order behind the reservation; empty: it is the same order.
        run_times: what was known of them in its training, one of `known_run_times.RUNTIMES`; None: nothing says.
    """

    text: str
    weights: tuple[float, ...]
    max_wait: float = MAX_WAIT_S
    fill: tuple[float, ...] = ()
    run_times: str | None = None

    def __str__(self) -> str:
        return self.text


class Traits(NamedTuple):
    """The part of FEATURES that does not change while a job waits; times in seconds.

    Args:
        limit, size, run: the first three features.
        limit_floor, run_floor: the limit and the expected run time, at least a minute.
        resources: requested.
        width: the feature of limit and size.
    """

    limit: float
    size: float
    run: float
    limit_floor: float
    run_floor: float
    resources: int
    width: float


class LearnedQueue:
    """The queue under a learned order.

    Args:
        order: the order.
        run_times: user -> the run times of their last two jobs that ended before, the last one first, seconds.
    """

    steady = False

    def __init__(self, order: LearnedOrder, run_times: Mapping[object, tuple[float, float]] | None = None) -> None:
        self._order, self._lately = order, dict(run_times or {})
        self._table = np.zeros((64, len(Traits._fields) + 1))  # traits and time of submission, by number of the job
        self._candidates = dict[int, tuple[float, int]]()  # by number: score behind a reservation, place by submission

    def sorted(self, now: QueueView) -> list[QueuedJob]:
        """Return the waiting jobs, the first in the queue first. O(waiting jobs log waiting jobs)."""
        self.learn(now)
        return self.arranged(now, self.scores(now))

    @staticmethod
    def arranged(now: QueueView, scores: Array) -> list[QueuedJob]:
        """Return the waiting jobs by their scores, ties by submission."""
        waiting, order = list(now.waiting), np.argsort(scores)
        ascending = scores[order]
        if (ascending[1:] == ascending[:-1]).any():  # a stable sort takes some times as long
            order = np.argsort(scores, kind="stable")
        return list(map(waiting.__getitem__, order.tolist()))

    def behind(self, jobs: list[QueuedJob]) -> list[QueuedJob]:
        """Return the jobs behind a reservation in their order, by the scores that `scores` found last."""
        return sorted(jobs, key=lambda job: self._candidates[job.number]) if self._order.fill else jobs

    def learn(self, now: QueueView) -> None:
        """Take in the jobs that ended and that were submitted since the last call."""
        for running in now.ended:
            if (user := running.job.user) not in (None, UNKNOWN_USER):
                run_time = now.time - running.start_time
                last, _ = self._lately.get(user, (run_time, run_time))
                self._lately[user] = run_time, last
        for job in now.submitted:  # a job's expected run time is that when it came
            if job.number >= len(self._table):
                self._table = np.concatenate([self._table, np.zeros((job.number + 1, self._table.shape[1]))])
            self._table[job.number] = (*traits(job.size, *self._times_of(job)), job.submit_time)

    def scores(self, now: QueueView) -> Array:
        """Return the score of each waiting job; the least comes first, -inf has waited too long [waiting jobs]."""
        rows, waits = self._rows(now)
        late = waits > self._order.max_wait
        if self._order.fill:
            scores = np.where(late, -math.inf, scores_of(self._order.fill, rows)).tolist()
            numbers = map(_NUMBER, now.waiting)
            self._candidates = dict(zip(numbers, zip(scores, range(len(scores)), strict=True), strict=True))
        queue_scores: Array = np.where(late, -math.inf, scores_of(self._order.weights, rows))
        return queue_scores

    def fill_scores(self, jobs: Iterable[QueuedJob]) -> dict[QueuedJob, float]:
        """Return the scores of jobs behind a reservation, if `scores` found them; the least comes first."""
        return {job: self._candidates[job.number][0] for job in jobs if job.number in self._candidates}

    def values(self, job: QueuedJob, now: QueueView) -> tuple[float, ...]:
        """Return FEATURES of a waiting job."""
        *own_traits, submit_time = self._table[job.number].tolist()
        return features(Traits(*own_traits), now.time - submit_time, now.machine.processors, now.free)

    def _rows(self, now: QueueView) -> tuple[Array, Array]:
        """Return FEATURES of each waiting job [waiting jobs, features], and how long it has waited, seconds."""
        numbers = np.fromiter(map(_NUMBER, now.waiting), np.int64, len(now.waiting))
        limit, width, run, limit_floor, run_floor, size, product, submit_time = self._table[numbers].T
        wait = now.time - submit_time
        patience = np.log1p(wait / limit_floor) / 3.0
        columns = (
            limit, width, run, np.log1p(wait) / 10.0, patience, np.log1p(wait / run_floor) / 3.0,
            size / now.machine.processors, size <= now.free, product, run * patience,
        )  # fmt: skip
        rows = np.empty((len(FEATURES), len(numbers)))
        for place, column in enumerate(columns):
            rows[place] = column
        return rows.T, wait

    def _times_of(self, job: QueuedJob) -> tuple[float, float]:
        """Return the limit and the expected run time of a job that is submitted now, seconds."""
        if job.predicted:
            return job.walltime if math.isnan(job.limit) else job.limit, job.walltime
        if not math.isnan(job.expected):
            return job.walltime, min(job.expected, job.walltime)
        last, before = self._lately.get(job.user, (math.inf, math.inf))
        return job.walltime, min(0.5 * (last + before), job.walltime)


def traits(size: int, walltime: float, expected: float) -> Traits:
    """Return the traits of a job.

    Args:
        size: its requested resources.
        walltime: its limit, seconds.
        expected: its expected run time, seconds, at most its limit.
    """
    limit, width, run = math.log1p(walltime) / 10.0, math.log2(size) / 10.0, math.log1p(expected) / 10.0
    return Traits(limit, width, run, max(walltime, _LEAST_S), max(expected, _LEAST_S), size, limit * width)


def features(job: Traits, wait: float, processors: int, free: int) -> tuple[float, ...]:
    """Return FEATURES of a waiting job.

    Args:
        job: its traits.
        wait: seconds since its submission.
        processors: resources of the machine.
        free: those that are free.
    """
    limit, width, run, limit_floor, run_floor, size, product = job
    patience = math.log1p(wait / limit_floor) / 3.0
    return (
        limit, width, run, math.log1p(wait) / 10.0, patience, math.log1p(wait / run_floor) / 3.0,
        size / processors, float(size <= free), product, run * patience,
    )  # fmt: skip
