"""The rows that are allowed in some decisions: pairs of a job and a node, or jobs; and a decision by their scores.

Rule: only allowed pairs are rows, so no forbidden one can be chosen; each decision has at least one. Rows are in the
order of decisions, then of jobs, then of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..arrays import Array
from .pair_network import JOB_COLUMNS, PAIR_COLUMNS


@dataclass(frozen=True, slots=True)
class PackedPairs:
    """Pairs.

    Args:
        rows: PAIR_COLUMNS of each, or the columns of its job, float32 [pairs, columns].
        actions: of each pair [pairs].
        first: the first pair of each decision [decisions].
    """

    rows: Array
    actions: Array
    first: Array

    @classmethod
    def of(cls, mask: Array, jobs: Array, nodes: Array) -> Self:
        """Return the allowed pairs of some decisions.

        Args:
            mask: bool [decisions, jobs x nodes].
            jobs: what is seen of each job [decisions, jobs, columns].
            nodes: what is seen of each node [decisions, nodes, columns].
        """
        decisions, actions = np.nonzero(mask)
        rows = np.empty((len(actions), len(PAIR_COLUMNS)), np.float32)
        rows[:, :JOB_COLUMNS] = jobs[decisions, actions // nodes.shape[1]]
        rows[:, JOB_COLUMNS:] = nodes[decisions, actions % nodes.shape[1]]
        return cls(rows, actions, np.searchsorted(decisions, np.arange(len(mask))))

    @classmethod
    def concatenated(cls, parts: Sequence[PackedPairs]) -> Self:
        """Return the pairs of several sets of decisions, one set after the other."""
        shifts = np.cumsum([0, *(len(part.actions) for part in parts)])
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.actions for part in parts]),
            np.concatenate([part.first + shift for part, shift in zip(parts, shifts, strict=False)]),
        )

    @property
    def counts(self) -> Array:
        """Number of pairs of each decision [decisions]."""
        return np.diff(self.first, append=len(self.actions))

    @property
    def decisions(self) -> Array:
        """Return the decision of each pair [pairs]."""
        return np.repeat(np.arange(len(self.first)), self.counts)

    def by_job(self, nodes: int) -> tuple[PackedPairs, PackedPairs]:
        """Return the jobs as rows, whose actions number them, and the pairs with a decision for each of these jobs.

        Args:
            nodes: number of nodes of the machine.
        """
        keys = np.stack([self.decisions, self.actions // nodes])
        first = np.flatnonzero(np.diff(keys, axis=1, prepend=-1).any(axis=0))
        jobs = PackedPairs(self.rows[first, :JOB_COLUMNS], np.arange(len(first)), np.searchsorted(first, self.first))
        return jobs, PackedPairs(self.rows, self.actions, first)

    def taken(self, decisions: Array) -> tuple[PackedPairs, Array]:
        """Return the pairs of some decisions, and their numbers here.

        Args:
            decisions: their numbers, in the wanted order.
        """
        counts = self.counts[decisions]
        first = np.cumsum(counts) - counts
        numbers = np.arange(counts.sum()) + np.repeat(self.first[decisions] - first, counts)
        return PackedPairs(self.rows[numbers], self.actions[numbers], first), numbers

    def log_shares(self, scores: Array) -> Array:
        """Return the logarithm of the probability of each pair in its decision, float64 [pairs]."""
        counts, scores = self.counts, scores.astype(np.float64)
        scores = scores - np.repeat(np.maximum.reduceat(scores, self.first), counts)
        totals = np.add.reduceat(np.exp(scores), self.first)
        shares: Array = scores - np.repeat(np.log(totals), counts)
        return shares

    def drawn(self, log_shares: Array, draws: Array) -> Array:
        """Return the pair that each decision draws [decisions].

        Args:
            log_shares: of `log_shares`.
            draws: from [0, 1) [decisions].
        """
        sums = np.cumsum(np.exp(log_shares))
        before = np.where(self.first > 0, sums[self.first - 1], 0.0)
        last = self.first + self.counts - 1
        pairs: Array = np.clip(np.searchsorted(sums, before + draws * (sums[last] - before), "right"), self.first, last)
        return pairs

    def best(self, scores: Array) -> Array:
        """Return the pair with the largest score of each decision, the first of equal ones [decisions]."""
        most = np.repeat(np.maximum.reduceat(scores, self.first), self.counts)
        numbers = np.flatnonzero(scores == most)
        pairs: Array = numbers[np.searchsorted(numbers, self.first)]
        return pairs
