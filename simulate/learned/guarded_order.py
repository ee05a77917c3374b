"""A learned order with a net: where the model is not trusted, a baseline orders the queue.

Rule: everything but the order is exact EASY backfilling, so the model starts no job that does not fit and delays no
reservation. A decision is the baseline's if a waiting job, its wait, or the machine is unlike what the model was
trained on, if a score is no number, or if the model raises an exception or takes too long. Under both, a job that has
waited for longer than the bound goes first.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arrays import Array
from ..model.plan import Scored
from ..queue_policies.easy_policy import Backfilling
from ..queue_policies.learned_order import FEATURE_NAMES, LearnedOrder, LearnedQueue
from ..queue_policies.model_use import Doubt, ModelUse
from ..queue_policies.order import Order
from ..queue_policies.order_score import parts_of
from ..queue_policies.queued_job import QueuedJob
from ..replay.replay import Replayed, replay
from ..wording import count
from .model_calls import LIMIT, MACHINE, NO_SCORE, SIZE, WAIT, ModelCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..model.cluster import Cluster
    from ..model.workload import Workload
    from ..queue_policies.interface import QueueView

#: By how much a machine may differ from those of the training, as a factor.
SIZE_FACTOR = 2.0
#: Features that `Scored` names.
_NAMED = 3
_CLOSE = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class Seen:
    """The least and the most in training.

    Args:
        limit: of a job, seconds.
        share: of the machine that a job requests.
        wait: longest wait of a job, seconds; inf: a bound on waits takes care of it.
        processors: resources of the machines.
    """

    limit: tuple[float, float]
    share: tuple[float, float]
    wait: float
    processors: tuple[int, int]

    def doubt_of(self, job: QueuedJob, limit: float, processors: int) -> Doubt:
        """Return whether a job is unlike those of the training, and why."""
        share = job.size / processors
        if not self.limit[0] / _CLOSE <= limit <= self.limit[1] * _CLOSE:
            low, high = self.limit
            text = f"a waiting job has a limit of {limit:,.0f} s, in training {low:,.0f} to {high:,.0f} s"
            return Doubt(LIMIT, text)
        if not self.share[0] / _CLOSE <= share <= self.share[1] * _CLOSE:
            low, high = self.share
            text = f"a waiting job requests {share:.3g} of the machine, in training {low:.3g} to {high:.3g}"
            return Doubt(SIZE, text)
        return Doubt()

    def doubt_of_machine(self, processors: int) -> Doubt:
        """Return whether a machine is unlike those of the training, and why."""
        low, high = self.processors
        if low / SIZE_FACTOR <= processors <= high * SIZE_FACTOR:
            return Doubt()
        sizes = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        return Doubt(MACHINE, f"the machine has {count(processors, 'core')}, {sizes} in training")


@dataclass(frozen=True, slots=True)
class GuardedOrder:
    """A learned order with what it needs to be guarded.

    Args:
        order: the order.
        baseline: the order of the queue in its place, a key of `order_ranks.ORDERS`.
        seen: what it was trained on.
        digest: SHA-256 that names the model.
        is_proven: a verdict says that it beats the baseline on jobs that it has not seen.
    """

    order: LearnedOrder
    baseline: str
    seen: Seen
    digest: str
    is_proven: bool = False

    @property
    def baseline_spec(self) -> str:
        """The SPEC of the baseline."""
        return f"easy:order={self.baseline}"

    def replayed(self, seed: int) -> GuardedBackfilling:
        """Return the policy of a replay."""
        return GuardedBackfilling(GuardedQueue(self, seed))

    def planned(
        self, seed: int, run_times: Mapping[object, tuple[float, float]], clock: Callable[[], float] | None = None
    ) -> GuardedBackfilling:  # fmt: skip
        """Return the policy of a plan, which explains itself; see `GuardedQueue`."""
        return GuardedBackfilling(GuardedQueue(self, seed, run_times, clock, explains=True))

    def replays(self, jobs: Workload, cluster: Cluster, cores: int) -> tuple[Replayed, Replayed]:
        """Replay jobs under the order and under the baseline, on so many alike cores; `cluster` is not asked."""
        learned, baseline = (
            replay(jobs, cores, Backfilling(queue, fills=True))
            for queue in (LearnedQueue(self.order), Order(self.baseline))
        )
        return learned, baseline

    def most_of(self, cluster: Cluster) -> float:
        """Return the most cores of a job that the order has a say in."""
        return math.inf

    def jobs_compared(self, cluster: Cluster) -> int:
        """Return the most jobs of either kind in `replays`: any number."""
        return sys.maxsize

    def pace_of(self, nodes: Sequence[str], cluster: Cluster) -> float:
        """Return 1: the order takes nodes as alike."""
        return 1.0


class LateFirst:
    """An order of the queue in which a job that has waited for too long goes first.

    Args:
        order: of the others.
        longest: waits beyond are too long, seconds.
    """

    steady = False

    def __init__(self, order: Order, longest: float) -> None:
        self._order, self._longest = order, longest

    def sorted(self, now: QueueView) -> list[QueuedJob]:
        """Return the waiting jobs, the first in the queue first. O(waiting jobs log waiting jobs)."""
        jobs = self._order.sorted(now)
        late = [job for job in now.waiting if now.time - job.submit_time > self._longest]
        return [*late, *(job for job in jobs if now.time - job.submit_time <= self._longest)] if late else jobs

    def behind(self, jobs: list[QueuedJob]) -> list[QueuedJob]:
        """Return the jobs behind a reservation in their order, which is that of the queue."""
        return jobs


class GuardedQueue:
    """The queue under a guarded order.

    Args:
        model: the order.
        seed: of a random baseline.
        run_times: see `LearnedQueue`.
        clock: see `ModelCalls`.
        explains: keep how the first decision came about.
    """

    steady = False

    def __init__(
        self, model: GuardedOrder, seed: int = 0, run_times: Mapping[object, tuple[float, float]] | None = None,
        clock: Callable[[], float] | None = None, *, explains: bool = False,
    ) -> None:  # fmt: skip
        self._model, self._learned = model, LearnedQueue(model.order, run_times)
        self._baseline = LateFirst(Order(model.baseline, seed), model.order.max_wait)
        self._explains, self._is_trusted, self.calls = explains, False, ModelCalls(clock)
        self._unlike = dict[int, Doubt]()  # job -> why it is unlike those of the training
        #: How the first decision came about, by number of the job, and why it is the baseline's.
        self.scored: dict[int, Scored] = {}
        self.first_doubt = Doubt()
        self.model_use = ModelUse(model.baseline_spec, run_times=model.order.run_times)

    def sorted(self, now: QueueView) -> list[QueuedJob]:
        """Return the waiting jobs, the first in the queue first. O(waiting jobs log waiting jobs)."""
        for job in now.submitted:
            limit = job.limit if job.predicted and not math.isnan(job.limit) else job.walltime
            if doubt := self._model.seen.doubt_of(job, limit, now.machine.processors):
                self._unlike[job.number] = doubt
                self.model_use.note_job(doubt, now.time)
        doubt = self._doubt(now)
        scores = self.calls.ask(lambda: self._scores(now, wanted=self._explains or not doubt))
        doubt = doubt or self.calls.doubt
        if not doubt and scores is not None:
            behind = self._learned.fill_scores(now.waiting).values()
            if not (scores < math.inf).all() or not all(score < math.inf for score in behind):
                doubt = NO_SCORE
        learned = [] if doubt or scores is None else self._learned.arranged(now, scores)
        baseline = self._baseline.sorted(now) if doubt or self._explains else []
        if now.waiting:
            self.model_use.note(doubt, now.time)
        self._is_trusted = not doubt
        if self._explains:
            self._explains, self.first_doubt = False, doubt if now.waiting else Doubt()
            by_job = {} if scores is None else dict(zip(now.waiting, scores.tolist(), strict=True))
            self._explain(now, learned or baseline, baseline, by_job, doubt.text)
        return learned or baseline

    def behind(self, jobs: list[QueuedJob]) -> list[QueuedJob]:
        """Return the jobs behind a reservation in their order: that of the model, if it is trusted."""
        return self._learned.behind(jobs) if self._is_trusted else jobs

    def _scores(self, now: QueueView, *, wanted: bool) -> Array | None:
        """Take in what has ended and come, and return the scores, if they are wanted [waiting jobs]."""
        self._learned.learn(now)
        return self._learned.scores(now) if wanted else None

    def _doubt(self, now: QueueView) -> Doubt:
        """Return whether the model is not trusted now, and why."""
        if doubt := self._model.seen.doubt_of_machine(now.machine.processors):
            return doubt
        oldest = next(iter(now.waiting), None)
        if oldest is not None and now.time - oldest.submit_time > self._model.seen.wait * _CLOSE:
            wait, longest = now.time - oldest.submit_time, self._model.seen.wait
            return Doubt(WAIT, f"a job has waited for {wait:,.0f} s, in training at most {longest:,.0f} s")
        for job in now.waiting if self._unlike else ():
            if (of_job := self._unlike.get(job.number)) is not None:
                return of_job
        return Doubt()

    def _explain(
        self, now: QueueView, order: Sequence[QueuedJob], baseline: Sequence[QueuedJob],
        scores: Mapping[QueuedJob, float], doubt: str,
    ) -> None:  # fmt: skip
        if self._model.order.fill:  # what was learned is the order behind the first job
            scores, order = self._learned.fill_scores(order), [*order[:1], *self.behind([*order[1:]])]
        features = ModelCalls().ask(lambda: self._features(order, now)) or [()] * len(order)
        ranks = {job: rank for rank, job in enumerate(baseline, 1)}
        for rank, (job, named) in enumerate(zip(order, features, strict=True), 1):
            score = scores[job] if math.isfinite(scores.get(job, math.nan)) else None
            self.scored[job.number] = Scored(rank, score, named, self._model.baseline_spec, ranks[job], doubt=doubt)

    def _features(self, order: Sequence[QueuedJob], now: QueueView) -> list[tuple[tuple[str, float], ...]]:
        """Return the features that moved each job most against the other jobs, and by how much."""
        weights = self._model.order.fill or self._model.order.weights
        values = [self._learned.values(job, now) for job in order]
        means, features = [sum(column) / len(order) for column in zip(*values, strict=True)], []
        for row in values:
            parts = parts_of(weights, row, means)
            largest = sorted(range(len(parts)), key=lambda place: -abs(parts[place]))[:_NAMED]
            features.append(tuple((FEATURE_NAMES[place], parts[place]) for place in largest))
        return features


class GuardedBackfilling(Backfilling):
    """EASY backfilling with a guarded queue; `model_use`: how far the model decided."""

    queue: GuardedQueue

    def __init__(self, queue: GuardedQueue) -> None:
        super().__init__(queue, fills=True)
        self.model_use = queue.model_use
