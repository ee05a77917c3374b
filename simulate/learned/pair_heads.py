"""Heads: the ways from the scores of networks to a pair of a job and a node.

Rule: whatever the head, only a pair that is allowed is chosen. A head says which rows its networks score and in which
order; what chooses among scored rows, at random in training and the best later, is a function of the caller.
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), section 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..errors import PolicyError
from .node_clusters import node_clusters
from .packed_pairs import PackedPairs
from .pair_network import JOB_COLUMNS, PAIR_COLUMNS

#: Chooses a row of each decision [decisions], from the number of the network that scores them and the rows.
Choose = Callable[[int, PackedPairs], Array]


@dataclass(frozen=True, slots=True)
class PairHead:
    """The head.

    Args:
        jobs_first: a first network scores the jobs that fit somewhere, a second one the nodes for the job; if not, one
            network scores all pairs at once.
        clusters: nodes are grouped into so many clusters of nodes that are alike now, and a job goes to the first node
            of a cluster that has room; 0: nodes are not grouped.
    """

    jobs_first: bool = False
    clusters: int = 0

    @property
    def inputs(self) -> tuple[int, ...]:
        """Return the number of columns of the rows of each network."""
        return (JOB_COLUMNS, len(PAIR_COLUMNS)) if self.jobs_first else (len(PAIR_COLUMNS),)

    def actions(self, mask: Array, jobs: Array, nodes: Array, choose: Choose) -> Array:
        """Return job x number of nodes + node for each decision [decisions]; see `PackedPairs.of`.

        Args:
            mask: bool [decisions, jobs x nodes], with a pair for each decision.
            jobs: what is seen of each job [decisions, jobs, columns].
            nodes: what is seen of each node [decisions, nodes, columns].
            choose: called for each network in turn.
        """
        pairs = PackedPairs.of(mask, jobs, nodes)
        if self.clusters:
            pairs = _clustered(pairs, nodes, self.clusters)
        if self.jobs_first:
            rows, by_job = pairs.by_job(nodes.shape[1])
            pairs, _ = by_job.taken(choose(0, rows))
        actions: Array = pairs.actions[choose(len(self.inputs) - 1, pairs)]
        return actions


#: Heads by the name that the file of a model has for them.
HEADS = {"squared": PairHead(), "double": PairHead(jobs_first=True), "clustered": PairHead(clusters=10)}


class PairChooser:
    """A head that takes the row with the largest score; it draws nothing.

    Args:
        head: the head.
        scores: of each network of the head: returns the score of each row [rows, columns] -> [rows].
    """

    def __init__(self, head: PairHead, scores: Sequence[Callable[[Array], Array]]) -> None:
        self._head, self._scores = head, tuple(scores)

    def actions(self, mask: Array, jobs: Array, nodes: Array) -> Array:
        """Return the action of each decision [decisions]; see `PairHead.actions`. O(allowed pairs).

        Raises PolicyError: a score is no number.
        """
        return self._head.actions(mask, jobs, nodes, self._best)

    def _best(self, number: int, rows: PackedPairs) -> Array:
        scores = self._scores[number](rows.rows)
        if not np.isfinite(scores).all():
            raise PolicyError("learned", "scores", "a score is no number", "finite scores")
        return rows.best(scores)

    def first_rows(self, mask: Array, jobs: Array, nodes: Array) -> tuple[Callable[[Array], Array], Array, Array]:
        """Return how the first network scores rows, its rows for one decision [rows, columns], and the job of each.

        Nodes are not grouped, so a clustered head sees each node and not the centre of its cluster.
        """
        pairs = PackedPairs.of(mask, jobs, nodes)
        of: Array = pairs.actions // nodes.shape[1]
        if self._head.jobs_first:
            rows, by_job = pairs.by_job(nodes.shape[1])
            return self._scores[0], rows.rows, of[by_job.first]
        return self._scores[0], pairs.rows, of


def _clustered(pairs: PackedPairs, nodes: Array, count: int) -> PackedPairs:
    """Return a pair for each job and cluster with room for it: the centre, and the first such node."""
    clusters, centres = node_clusters(nodes, count)
    decisions, width = pairs.decisions, nodes.shape[1]
    cluster = clusters[decisions, pairs.actions % width]
    jobs = pairs.actions // width
    _, first = np.unique((decisions * (jobs.max() + 1) + jobs) * count + cluster, return_index=True)
    rows = pairs.rows[first]
    rows[:, JOB_COLUMNS:] = centres[decisions[first], cluster[first]]
    return PackedPairs(rows, pairs.actions[first], np.searchsorted(decisions[first], np.arange(len(pairs.first))))
