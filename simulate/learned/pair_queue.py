"""A queue policy that starts each job on the node that is chosen with it, by networks or by a rule.

Rule: networks see what they saw in training, and are asked as then: while a decision is due, the pair of a visible job
and a node that they choose starts. It makes no reservation, so a large job may wait for long. A machine whose nodes
the training did not have, or a job that needs several nodes, is one error.
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..queue_policies.free_nodes import FreeNodes
from ..queue_policies.interface import QueueView, Start
from ..queue_policies.queued_job import QueuedJob
from ..wording import count
from .pair_heads import PairChooser
from .pair_network import JOB_COLUMNS, MOST_SEEN, PAIR_COLUMNS, PairSight

#: How "no" is seen, as in the kernel `pairs.placements`.
_NO = 1e-5
#: Digits to which nodes are compared with those of the training.
_DIGITS = 6
#: Columns that are named of a job's score.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Weighed:
    """The score of a waiting job.

    Args:
        score: minus the largest score of a pair of the job, so that the least goes first; None: it fits no node now.
        features: the columns that moved it most, and by how much: the score less that with the usual value of the
            column; below 0 moves the job to the front.
    """

    NONE: ClassVar[Weighed]

    score: float | None = None
    features: tuple[tuple[str, float], ...] = ()

    @property
    def place(self) -> float:
        """Return what jobs are sorted by, the least first."""
        return math.inf if self.score is None else self.score


Weighed.NONE = Weighed()


class Chooser(Protocol):
    """Chooses pairs."""

    def actions(self, mask: Array, jobs: Array, nodes: Array) -> Array:
        """Return the action of each decision [decisions]; see `PairHead.actions`."""
        ...


class PairQueue:
    """The policy.

    Args:
        name: its SPEC, for errors.
        chooser: chooses pairs.
        sight: what it sees.
        nodes: processors and speed of each node of the training.
    """

    only_starts = True

    def __init__(
        self, name: str, chooser: Chooser, sight: PairSight, nodes: Sequence[tuple[int, float]]
    ) -> None:  # fmt: skip
        self.spec, self._chooser, self._sight = name, chooser, sight
        self._trained = set(map(tuple, _seen(*np.array(nodes, np.float64).T).T.round(_DIGITS).tolist()))
        self._sizes: Array = np.zeros(0, np.int64)  # cores of each node
        self._kinds: Array | None = None  # what is seen of each node: processors, speed
        self._facts = dict[int, tuple[float, ...]]()  # of each job, see `_facts_of`
        self._restricted = dict[int, Array]()  # whether a job may run on each node, if not on all [nodes]

    def decide(self, snapshot: QueueView, /) -> Iterator[Start]:
        """Yield the starts of now. O(starts x visible jobs x nodes). Raises ConfigError, see the rule."""
        free = snapshot.free_nodes()
        self.check_nodes(snapshot)
        for job in snapshot.submitted:
            self.check_job(job, snapshot)
        waiting = list(snapshot.waiting)
        while waiting and self._is_due(waiting, free):
            start = self._best(waiting[: self._sight.rows], snapshot.time, free)
            if start is None:
                return
            job, node = start
            free.take(job, (node,))
            waiting.remove(job)
            yield Start(job, nodes=(node,))

    def check_nodes(self, snapshot: QueueView) -> None:
        """Raise ConfigError if the training had no such nodes."""
        if self._kinds is None:
            self._sizes = np.array([last - first + 1 for first, last in snapshot.machine.nodes])
            self._kinds = self._kinds_of(self._sizes, snapshot.free_nodes().speeds)

    def check_job(self, job: QueuedJob, snapshot: QueueView) -> None:
        """Raise ConfigError if the network cannot place a job."""
        largest = max((last - first + 1 for first, last in snapshot.machine.nodes), default=0)
        if job.nodes > 1 or job.size > largest:
            problem = f"it requests {count(job.size, 'core')}, on {count(max(job.nodes, 2), 'node')} or more"
            raise ConfigError(self.spec, f"job {job.id}", problem, f"jobs on one node, of at most {largest} cores")
        if not math.isfinite(job.walltime):
            raise ConfigError(self.spec, f"job {job.id}", "no requested time", "a requested time for each job")

    def _best(self, jobs: Sequence[QueuedJob], now: float, free: FreeNodes) -> tuple[QueuedJob, int] | None:
        """Return the job and the node that the networks choose; None: no job fits anywhere."""
        mask, traits, nodes = self._seen_of(jobs, now, free)
        if not mask.any():
            return None
        (action,) = self._chooser.actions(mask.reshape(1, -1), traits[None], nodes[None]).tolist()
        return jobs[action // len(nodes)], action % len(nodes)

    def _seen_of(self, jobs: Sequence[QueuedJob], now: float, free: FreeNodes) -> tuple[Array, Array, Array]:
        """Return where each job fits [jobs, nodes], and what is seen of jobs and nodes [jobs or nodes, columns]."""
        assert self._kinds is not None
        sizes, (processors, speeds) = self._sizes, self._kinds
        facts = np.array([self._facts_of(job, free) for job in jobs]).reshape(len(jobs), -1)
        submit, requested, size, cores, memory = facts.T
        mask: Array = (free.cores >= cores[:, None]) & (free.memory >= memory[:, None])
        for row, job in enumerate(jobs) if self._restricted or free.blocked else ():
            allowed = self._restricted.get(job.number, True)
            mask[row] &= allowed if not free.lacks(job) else False
        traits = np.empty((len(jobs), JOB_COLUMNS), np.float32)
        traits[:, 0] = np.minimum((now - submit) / self._sight.patience, MOST_SEEN)
        traits[:, 1], traits[:, 2] = requested, size
        traits[:, 3] = np.where(mask.any(axis=1), MOST_SEEN, _NO)
        nodes = np.stack([processors, np.minimum(free.cores / sizes, MOST_SEEN), speeds], axis=1)
        return mask, traits, nodes.astype(np.float32)

    def _facts_of(self, job: QueuedJob, free: FreeNodes) -> tuple[float, ...]:
        """Return what does not change while a job waits: when it came, what is seen of its time and size, its need."""
        need, facts = free.need(job), self._facts.get(job.number)
        if facts is None:
            size = min(job.size / int(self._sizes.max()), MOST_SEEN)
            requested = self._sight.requested(job.walltime)
            facts = job.submit_time, requested, size, float(need.cores), need.memory
            self._facts[job.number] = facts
            if need.allowed is not None:
                self._restricted[job.number] = need.allowed
        return facts

    def _is_due(self, waiting: Sequence[QueuedJob], free: FreeNodes) -> bool:
        if self._sight.due == "any":
            return True
        return max(job.size for job in waiting) <= int(free.cores.max())

    def _kinds_of(self, sizes: Array, speeds: Array | None) -> Array:
        """Return what is seen of each node [2, nodes]. Raises ConfigError: the training had no such node."""
        if not len(sizes):
            raise ConfigError(self.spec, "", "the machine has no nodes to choose among", "a cluster, and --contention")
        kinds = _seen(sizes.astype(np.float64), np.ones(len(sizes)) if speeds is None else speeds)
        for node, kind in enumerate(map(tuple, kinds.T.round(_DIGITS).tolist())):
            if kind not in self._trained:
                problem = f"node {node} has {count(int(sizes[node]), 'core')} and {kind[1]:.3g} of the largest speed"
                allowed = "nodes as in the training, relative to the largest and the fastest"
                raise ConfigError(self.spec, "", problem, allowed)
        return kinds


class NetworkPairQueue(PairQueue):
    """The policy with networks, which says what moved each job.

    Args:
        name: its SPEC, for errors.
        networks: choose pairs.
        sight: what they see.
        nodes: as of PairQueue.
    """

    def __init__(
        self, name: str, networks: PairChooser, sight: PairSight, nodes: Sequence[tuple[int, float]]
    ) -> None:  # fmt: skip
        super().__init__(name, networks, sight, nodes)
        self._networks = networks

    def weighed(self, snapshot: QueueView, usual: Sequence[float]) -> dict[QueuedJob, Weighed]:
        """Return the scores of the visible jobs that fit a node now.

        Args:
            snapshot: its nodes have passed `check_nodes`.
            usual: the usual value of each column.
        """
        jobs = list(snapshot.waiting)[: self._sight.rows]
        mask, traits, nodes = self._seen_of(jobs, snapshot.time, snapshot.free_nodes())
        if not mask.any():
            return {}
        score_of, rows, of = self._networks.first_rows(mask.reshape(1, -1), traits[None], nodes[None])
        columns = range(rows.shape[1])
        scores, best = score_of(rows), dict[int, int]()
        for row, job in enumerate(of.tolist()):
            if job not in best or scores[row] > scores[best[job]]:
                best[job] = row
        chosen = np.fromiter(best.values(), np.int64, len(best))
        changes = np.empty((len(chosen), len(columns)))
        for column in columns:
            changed = rows[chosen].copy()
            changed[:, column] = usual[column]
            changes[:, column] = score_of(changed) - scores[chosen]
        weighed = dict[QueuedJob, Weighed]()
        for place, (job, row) in enumerate(best.items()):
            largest = sorted(columns, key=lambda column: -abs(changes[place, column]))[:_NAMED]
            features = tuple((PAIR_COLUMNS[column], float(changes[place, column])) for column in largest)
            weighed[jobs[job]] = Weighed(float(-scores[row]), features)
        return weighed


def _seen(sizes: Array, speeds: Array) -> Array:
    """Return how processors and speeds of nodes are seen [2, nodes]."""
    return np.array([np.minimum(column / column.max(), MOST_SEEN) for column in (sizes, speeds)])
