"""The pairs that are allowed in some decisions, one row each, and what a decision does with their scores.

Rule: only allowed pairs are rows, so no forbidden one can be chosen; each decision has at least one. Rows are in the
order of decisions, then of actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ...simulate.arrays import Array
from ...simulate.learned.pair_network import PAIR_COLUMNS
from ..environments.pairs import PairEnvironment


@dataclass(frozen=True, slots=True)
class PackedPairs:
    """Pairs.

    Args:
        rows: PAIR_COLUMNS of each, float32 [pairs, columns].
        actions: of each pair [pairs].
        first: the first pair of each decision [decisions].
    """

    rows: Array
    actions: Array
    first: Array

    @classmethod
    def of(cls, world: PairEnvironment) -> Self:
        """Return the allowed pairs of the present decision of each copy."""
        copies, actions = np.nonzero(world.mask)
        rows = np.empty((len(actions), len(PAIR_COLUMNS)), np.float32)
        rows[:, :4] = world.jobs[copies, actions // world.node_count]
        rows[:, 4:] = world.nodes[copies, actions % world.node_count]
        return cls(rows, actions, np.searchsorted(copies, np.arange(world.copies)))

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
