"""A learned choice of jobs and nodes with a net: where the model is not trusted, EASY backfilling decides.

Rule: the mask is the nodes on which a job fits now, so the model starts nothing elsewhere. A decision is the baseline's
if a node is none of the training, if a waiting job is unlike those of the training or requests several nodes, if the
model raises an exception or takes too long, or if a job has waited for longer than the bound: it then goes first, with
a reservation that no other job delays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..model.cluster import comparable_speeds
from ..model.machine import machine_of
from ..model.plan import Scored
from ..queue_policies.easy_policy import Backfilling
from ..queue_policies.interface import Decision, QueueView, Start
from ..queue_policies.model_use import Doubt, ModelUse
from ..queue_policies.order import Order
from ..queue_policies.queued_job import QueuedJob
from ..replay.replay import Replayed, replay
from .guarded_order import LateFirst
from .model_calls import LIMIT, NODES, SIZE, WAIT, ModelCalls
from .pair_queue import NetworkPairQueue, Weighed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..model.cluster import Cluster
    from ..model.workload import Workload

_CLOSE = 1.0 + 1e-9
#: Jobs of either kind in a comparison at least; at most; and the nodes up to which there are as many.
_LEAST_COMPARED, _MOST_COMPARED, _NODES_COMPARED = 20, 50, 100


@dataclass(frozen=True, slots=True)
class SeenJobs:
    """The jobs of a training.

    Args:
        limit: the least and the most, seconds.
        size: the least and the most, cores.
        usual: the median of each column that the network sees, of pairs that were allowed.
    """

    limit: tuple[float, float]
    size: tuple[float, float]
    usual: tuple[float, ...]

    def doubt_of(self, job: QueuedJob) -> Doubt:
        """Return whether a job is unlike those of the training, and why."""
        for reason, word, value, unit, (low, high) in (
            (LIMIT, "has a limit of", job.walltime, " s", self.limit),
            (SIZE, "requests", float(job.size), " cores", self.size),
        ):
            if not low / _CLOSE <= value <= high * _CLOSE:
                text = f"a waiting job {word} {value:,.0f}{unit}, in training {low:,.0f} to {high:,.0f}{unit}"
                return Doubt(reason, text)
        return Doubt()


@dataclass(frozen=True, slots=True)
class GuardedPairs:
    """A learned choice of jobs and nodes with what it needs to be guarded.

    Args:
        make: returns the policy.
        baseline: the order of EASY backfilling in its place, a key of `order_ranks.ORDERS`.
        seen: the jobs that it was trained on.
        max_wait: a job that has waited for longer goes first, seconds.
        digest: SHA-256 that names the model.
        is_proven: a verdict says that it beats the baseline on jobs that it has not seen.
    """

    make: Callable[[], NetworkPairQueue]
    baseline: str
    seen: SeenJobs
    max_wait: float
    digest: str
    is_proven: bool = False

    @property
    def baseline_spec(self) -> str:
        """The SPEC of the baseline."""
        return f"easy:order={self.baseline}"

    def replayed(self, seed: int) -> GuardedPairQueue:
        """Return the policy of a replay."""
        return GuardedPairQueue(self, seed)

    def planned(
        self, seed: int, run_times: Mapping[object, tuple[float, float]], clock: Callable[[], float] | None = None
    ) -> GuardedPairQueue:  # fmt: skip
        """Return the policy of a plan, which explains itself; it asks no run times."""
        return GuardedPairQueue(self, seed, clock, explains=True)

    def replays(self, jobs: Workload, cluster: Cluster, cores: int) -> tuple[Replayed, Replayed]:
        """Replay jobs on the nodes under the model and under the baseline; `cores` are those of all nodes."""
        machine = machine_of(cluster)
        baseline = Backfilling(Order(self.baseline), fills=True)
        learned, other = (replay(jobs, machine, one, contention=True) for one in (GuardedPairQueue(self), baseline))
        return learned, other

    def most_of(self, cluster: Cluster) -> float:
        """Return the most cores of a job that the model has a say in: those of the largest node."""
        return max(node.type.cores for node in cluster.nodes)

    def jobs_compared(self, cluster: Cluster) -> int:
        """Return the most jobs of either kind in `replays`, which takes about 100 ns for jobs^2 x nodes."""
        return max(_LEAST_COMPARED, int(_MOST_COMPARED * math.sqrt(min(1.0, _NODES_COMPARED / len(cluster.nodes)))))

    def pace_of(self, nodes: Sequence[str], cluster: Cluster) -> float:
        """Return the speed of the slowest of some nodes as a factor on the slowest of all. O(nodes of the cluster)."""
        speeds = comparable_speeds(node.type for node in cluster.nodes)
        of_nodes = [speed for node, speed in zip(cluster.nodes, speeds, strict=True) if node.name in nodes]
        return min(of_nodes) / min(speeds) if of_nodes else 1.0


class GuardedPairQueue:
    """The queue under a guarded choice of jobs and nodes.

    Args:
        model: the model.
        seed: of a random baseline.
        clock: see `ModelCalls`.
        explains: keep how the first decision came about.
    """

    def __init__(
        self, model: GuardedPairs, seed: int = 0, clock: Callable[[], float] | None = None, *, explains: bool = False
    ) -> None:  # fmt: skip
        self._model, self._explains, self.calls = model, explains, ModelCalls(clock)
        self._pairs = self.calls.ask(model.make)
        self._order = LateFirst(Order(model.baseline, seed), model.max_wait)
        self._baseline = Backfilling(self._order, fills=True)
        self._unlike = dict[int, Doubt]()  # job -> why it is unlike those of the training
        #: How the first decision came about, by number of the job, and why it is the baseline's.
        self.scored: dict[int, Scored] = {}
        self.first_doubt = Doubt()
        self.model_use = ModelUse(model.baseline_spec)

    def decide(self, now: QueueView, /) -> Iterator[Decision]:
        """Yield the decisions of now."""
        pairs, doubt, starts = self._pairs, self._doubt(now), list[Start]()
        if pairs is not None and not doubt:  # all at once: a model that fails after some starts has made none
            starts = self.calls.ask(lambda: list(pairs.decide(now)), len) or starts
        doubt = doubt or self.calls.doubt
        if now.waiting:
            self.model_use.note(doubt, now.time)
        if self._explains:
            self._explains, self.first_doubt = False, doubt if now.waiting else Doubt()
            self._explain(now, doubt.text)
        yield from self._baseline.decide(now) if doubt else starts

    def _doubt(self, now: QueueView) -> Doubt:
        """Return whether the model is not trusted now, and why."""
        pairs = self._pairs
        if pairs is None:
            return self.calls.doubt
        for job in now.submitted:
            if doubt := self._model.seen.doubt_of(job) or _problem(SIZE, pairs.check_job, job, now):
                self._unlike[job.number] = doubt
                self.model_use.note_job(doubt, now.time)
        if doubt := _problem(NODES, pairs.check_nodes, now):
            return doubt
        oldest = next(iter(now.waiting), None)
        if oldest is not None and now.time - oldest.submit_time > self._model.max_wait * _CLOSE:
            wait, longest = now.time - oldest.submit_time, self._model.max_wait
            return Doubt(WAIT, f"a job has waited for {wait:,.0f} s, longer than {longest:,.0f} s")
        for job in now.waiting if self._unlike else ():
            if (of_job := self._unlike.get(job.number)) is not None:
                return of_job
        return Doubt()

    def _explain(self, now: QueueView, doubt: str) -> None:
        baseline = self._order.sorted(now)
        ranks = {job: rank for rank, job in enumerate(baseline, 1)}
        pairs, weighed = self._pairs, dict[QueuedJob, Weighed]()
        if pairs is not None and not _problem(NODES, pairs.check_nodes, now):
            weighed = ModelCalls().ask(lambda: pairs.weighed(now, self._model.seen.usual)) or weighed
        order = baseline if doubt else sorted(now.waiting, key=lambda job: weighed.get(job, Weighed.NONE).place)
        for rank, job in enumerate(order, 1):
            one, spec = weighed.get(job, Weighed.NONE), self._model.baseline_spec
            self.scored[job.number] = Scored(rank, one.score, one.features, spec, ranks[job], doubt=doubt)


def _problem(reason: str, check: Callable[..., object], *arguments: object) -> Doubt:
    """Return what a check refuses as a doubt; none: nothing."""
    try:
        check(*arguments)
    except ConfigError as error:
        return Doubt(reason, f"{error.key}: {error.problem}" if error.key else error.problem)
    return Doubt()
