"""Adaptive conformal bounds: intervals that are corrected by outcomes, for each group of jobs.

Rule: a bound is a quantile of the latest scores of a group; a score says how far beyond a prediction the truth was, as
a logarithm. The quantile moves after each score, so that the promised share of the scores lies within, and is higher or
lower by the share of the group's scores that were beyond its bounds so far. Each batch of jobs counts once, and the
next one may be unlike all others. So the first of a job's groups that has enough batches for the quantile gives the
bound.
Source: Gibbs and Candes, "Adaptive conformal inference under distribution shift" (NeurIPS 2021); the sum of past misses
decides as in Angelopoulos, Candes and Tibshirani, "Conformal PID control for time series prediction" (NeurIPS 2023);
the finite-sample quantile is that of Vovk, Gammerman and Shafer, "Algorithmic learning in a random world" (2005).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from random import Random

from ...simulate.model.bounded import BoundedByOwner
from .batches import Batches

#: Scores of a group from which on it answers.
ENOUGH = 10
#: Groups that are remembered.
MOST_GROUPS = 2000
#: How much the first miss of a batch moves the quantile, and the bounds within which it stays.
_STEP, _LEAST, _MOST = 0.02, 0.5, 0.995
#: How much the share of misses beyond the promised one raises the quantile; weight of the misses of a batch relative to
#: the next newer one; and number of batches without such misses that are assumed before the first, because chance
#: decides in few.
_GAIN, _FADING, _ASSUMED = 1.5, 0.99, 20


class _Side:
    """One side of the interval: the quantile of the scores on that side, adapted to how often it was exceeded."""

    def __init__(self, share: float, draw: Random) -> None:
        self._share = share  # of the scores that may lie beyond it
        self._quantile = 1.0 - share
        self._batch_weight = self._excess = 0.0  # batches, and their misses beyond the promised share
        self._bound = math.inf  # that was last asked for; inf: the group supports none
        self.scores = Batches(draw)

    def learn(self, score: float, batch: Hashable) -> None:
        jobs = self.scores.add(batch, score)
        missed = (float(score > self._bound) - self._share) / jobs
        self._quantile = min(_MOST, max(_LEAST, self._quantile + _STEP * missed))
        if self._bound < math.inf:
            fading = _FADING ** (1.0 / jobs)
            self._batch_weight = fading * self._batch_weight + 1.0 / jobs
            self._excess = fading * self._excess + missed

    def bound(self) -> float:
        level = min(_MOST, max(_LEAST, self._quantile + _GAIN * self._excess / (self._batch_weight + _ASSUMED)))
        self._bound = self.scores.quantile(level, 1.0 / len(self.scores))
        return self._bound


class AdaptiveBounds:
    """Bounds of the next score of each group, below and above.

    Args:
        level: share of the scores that shall lie between the bounds, (0, 1).
    """

    def __init__(self, level: float) -> None:
        self._share, self._draw = (1.0 - level) / 2, Random(0)
        self._groups = BoundedByOwner[Hashable, tuple[_Side, _Side]](MOST_GROUPS)
        self._truths = 0

    def learn(
        self, groups: Iterable[Hashable], below: float, above: float, batch: Hashable = None, owner: Hashable = None
    ) -> None:
        """Note a truth in all its groups. O(groups LATEST).

        Args:
            groups: of the job.
            below: by how much the truth was below the prediction's lower end, as a logarithm; < 0 if above it.
            above: by how much it was above the upper end.
            batch: in which the job was submitted; None: a batch of its own.
            owner: user of the job; of too many groups, the oldest of the user with the most is dropped.
        """
        self._truths += 1
        batch = ("own", self._truths) if batch is None else batch
        for group in groups:
            sides = self._groups.get(group) or (_Side(self._share, self._draw), _Side(self._share, self._draw))
            self._groups.put(group, sides, owner)
            sides[0].learn(below, batch)
            sides[1].learn(above, batch)

    def of(self, groups: Iterable[Hashable]) -> tuple[float, float] | None:
        """Return the bounds below and above, each of the first group that supports one; None without enough scores.

        If no group supports a bound, it is the largest score in the last group with enough scores. O(groups LATEST).
        """
        pairs = [sides for group in groups if (sides := self._groups.get(group)) and sides[0].scores.jobs >= ENOUGH]
        return (_first(pairs, 0), _first(pairs, 1)) if pairs else None


def _first(pairs: list[tuple[_Side, _Side]], side: int) -> float:
    bounds = (sides[side].bound() for sides in pairs)
    return next((bound for bound in bounds if bound < math.inf), pairs[-1][side].scores.largest)
