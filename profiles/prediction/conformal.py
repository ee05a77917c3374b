"""Adaptive conformal bounds: intervals that are corrected by what came true, for each group of jobs.

Rule: a bound is a quantile of the latest scores of a group, which moves after each score, so that the promised share of
the scores lies within; a score says how far beyond a prediction the truth was, as a logarithm. The first group of a job
with enough scores answers.
Source: Gibbs and Candes, "Adaptive conformal inference under distribution shift" (NeurIPS 2021); the finite-sample
quantile is that of Vovk, Gammerman and Shafer, "Algorithmic learning in a random world" (2005).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Hashable, Iterable

#: Scores of a group from which on it answers, and the latest ones that count.
ENOUGH, LATEST = 10, 100
#: Groups that are remembered; the one that learned longest ago is forgotten first.
MOST_GROUPS = 2000
#: How much a miss moves the quantile, and the bounds within which it stays.
_STEP, _LEAST, _MOST = 0.02, 0.5, 0.995


class _Side:
    """One side of the interval: the quantile of the scores on that side, adapted to how often it was exceeded."""

    def __init__(self, share: float) -> None:
        self._share = share  # of the scores that may lie beyond it
        self._quantile = 1.0 - share
        self._latest: deque[float] = deque(maxlen=LATEST)
        self._ordered: list[float] = []
        self.bound: float | None = None

    def learn(self, score: float) -> None:
        if self.bound is not None:
            missed = float(score > self.bound) - self._share
            self._quantile = min(_MOST, max(_LEAST, self._quantile + _STEP * missed))
        if len(self._latest) == LATEST:
            del self._ordered[bisect_left(self._ordered, self._latest[0])]
        self._latest.append(score)
        insort(self._ordered, score)
        known = len(self._ordered)
        if known >= ENOUGH:
            self.bound = self._ordered[min(math.ceil(self._quantile * (known + 1)), known) - 1]


class AdaptiveBounds:
    """Bounds of the next score of each group, below and above.

    Args:
        level: share of the scores that shall lie between the bounds, (0, 1).
    """

    def __init__(self, level: float) -> None:
        self._share = (1.0 - level) / 2
        self._groups: dict[Hashable, tuple[_Side, _Side]] = {}

    def learn(self, groups: Iterable[Hashable], below: float, above: float) -> None:
        """Note a truth in all its groups. O(groups LATEST).

        Args:
            groups: of the job.
            below: by how much the truth was below the prediction's lower end, as a logarithm; < 0 if above it.
            above: by how much it was above the upper end.
        """
        for group in groups:
            sides = self._groups.pop(group, None) or (_Side(self._share), _Side(self._share))
            self._groups[group] = sides
            sides[0].learn(below)
            sides[1].learn(above)
        while len(self._groups) > MOST_GROUPS:
            del self._groups[next(iter(self._groups))]

    def of(self, groups: Iterable[Hashable]) -> tuple[float, float] | None:
        """Return the bounds of the first of the groups with enough scores, below and above; None without one. O(1)."""
        for group in groups:
            sides = self._groups.get(group)
            if sides and sides[0].bound is not None and sides[1].bound is not None:
                return sides[0].bound, sides[1].bound
        return None
