"""How much the latest values of a series tell of the next one, and the quantiles that follow.

Rule: each value weighs less than the one after it; the value to come is one of them, and may be anything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate


class Weights:
    """Weights of the latest values of a series, the newest first: ageing, ageing^2, ...

    Args:
        latest: so many values count at the most, >= 1.
        ageing: each counts this much of the one after it, (0, 1].
    """

    def __init__(self, latest: int, ageing: float) -> None:
        self.latest, self.ageing = latest, ageing
        self._weights = tuple(ageing**age for age in range(1, latest + 1))
        self._held = (0.0, *accumulate(self._weights))

    def enough(self, quantile: float) -> int:
        """So many values bear a quantile; `latest`, where even they do not."""
        held = self._held
        return next((n for n in range(1, self.latest) if held[n] >= quantile * (1 + held[n])), self.latest)

    def quantiles(self, newest_first: Iterable[float], wanted: Sequence[float]) -> list[float]:
        """Upper bounds that the next value of a series keeps to with these probabilities, O(1).

        The value to come has weight 1; the bound is the least value up to which there is so much of the whole weight,
        or the largest where they do not bear it.

        Args:
            newest_first: the values, 1 to `latest`.
            wanted: probabilities in (0, 1).

        Source: Barber, Candes, Ramdas and Tibshirani, "Conformal prediction beyond exchangeability" (Annals of
        Statistics 51(2), 2023), section 3.
        """
        pairs = sorted(zip(newest_first, self._weights, strict=False))
        reached = list(accumulate(weight for _, weight in pairs))
        last = len(pairs) - 1
        return [pairs[min(bisect_left(reached, quantile * (1 + reached[-1])), last)][0] for quantile in wanted]
