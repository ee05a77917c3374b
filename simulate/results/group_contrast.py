"""The difference between two groups of units that were drawn at random, within strata, with its interval.

Rule: a unit counts once, whatever its group. Strata with units of one group only say nothing, and are left out and
counted. The estimate is the mean of the strata's differences, weighted by n1 * n0 / (n1 + n0), which is the regression
on the group with a constant for each stratum; its variance is robust (HC2). The interval is studentised: its quantiles
are those of many draws of the same groups within the strata, because waits have long tails, and the normal
distribution would find a difference too often. It is wider than that of one look by `widening`, so that it holds at all
looks at once, however many there are. With fewer than LEAST units of a group that count there is no interval.
Sources: J. MacKinnon, H. White, "Some Heteroskedasticity-Consistent Covariance Matrix Estimators" (1985); E. Chung,
J. Romano, "Exact and Asymptotically Robust Permutation Tests" (2013); L. Miratrix et al., "Adjusting Treatment Effect
Estimates by Post-Stratification in Randomized Experiments" (2013); I. Waudby-Smith et al., "Time-uniform central limit
theory and asymptotic confidence sequences" (2024), equation 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from ..arrays import Array

#: Quantiles of the normal distribution: of an interval of 95 %, and of a power of 80 %.
_NORMAL, _POWER = 1.959964, 0.841621
#: Units of each group, by their weights, that an interval needs.
LEAST = 20
#: Chance that an interval misses at any of its looks; number of units at which it is narrowest for so many looks.
_MISS, _NARROWEST = 0.05, 400
#: Draws of the groups: at most, and at least of many units; values that the draws look at beyond the least of them.
DRAWS, LEAST_DRAWS, _LOOKED_AT = 999, 399, 10_000_000
#: Values in one step of the draws, about 10 ms.
_STEP = 100_000


@dataclass(frozen=True, slots=True)
class GroupContrast:
    """A mean in two groups, adjusted for strata; None: it is not known.

    Args:
        control: mean of the control group, weighted as the strata are.
        canary: the same of the canary.
        error: standard error of the difference.
        low: begin of its interval of 95 %, which holds at all looks at once; high: its end.
        units: that count, of the canary and of the control group.
        strata: that count.
        left_out: units in strata with one group only.
    """

    control: float
    canary: float
    error: float | None
    low: float | None
    high: float | None
    units: tuple[int, int]
    strata: int
    left_out: int

    @property
    def difference(self) -> float:
        """The canary minus the control group."""
        return self.canary - self.control

    @property
    def is_significant(self) -> bool:
        """True if the interval does not hold 0."""
        return self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high

    @property
    def smallest(self) -> float | None:
        """The smallest difference that so many units show with a probability of 80 %."""
        return None if self.error is None else (_NORMAL * widening(sum(self.units)) + _POWER) * self.error

    @property
    def more(self) -> int | None:
        """Units that are still needed until this difference, if it is real, shows with 80 %; 0: it is significant."""
        if self.is_significant:
            return 0
        if self.smallest is None or self.low is None or not self.difference:
            return None
        units = sum(self.units)
        return max(1, ceil(units * (self.smallest / self.difference) ** 2) - units)


def group_contrast(
    values: Array, is_canary: Array, strata: Array, *, seed: int = 0, breathe: Callable[[], None] = lambda: None
) -> GroupContrast | None:
    """Return the difference of the groups; None if no stratum has both. O(DRAWS units log units).

    Args:
        values: of each unit, any unit of measure, finite.
        is_canary: of each unit, whether it is of the canary, bool.
        strata: number of each unit's stratum, integers.
        seed: of the draws.
        breathe: called about every 10 ms.
    """
    _, places = np.unique(strata, return_inverse=True)
    order = np.lexsort((~is_canary, places))  # by stratum, the canary first
    y, group, place = values[order].astype(float), is_canary[order].astype(float), places[order]
    numbers = np.bincount(place)
    shares = np.bincount(place, group) / np.maximum(numbers, 1)
    inside = ((shares > 0.0) & (shares < 1.0))[place]
    if not inside.any():
        return None
    y, group, place = y[inside], group[inside], place[inside]
    layout = _Layout(place, group - shares[place], 1.0 / numbers[place])
    difference, error = layout.fit(layout.centred(y)[None])
    point, deviation = float(difference[0]), float(error[0])
    control = float((y * layout.of_control).sum())
    low = high = None
    if min(layout.effective(group > 0.0), layout.effective(group == 0.0)) >= LEAST:
        quantiles = layout.drawn(layout.centred(y - point * group), seed, breathe)
        deviations = deviation * widening(len(y))
        low, high = (point - quantile * deviations for quantile in quantiles)
    units, strata_number = (int(group.sum()), int(len(group) - group.sum())), len(np.unique(place))
    left_out = int((~inside).sum())
    return GroupContrast(
        control, control + point, None if low is None else deviation, low, high, units, strata_number, left_out
    )


def widening(units: int) -> float:
    """Return how many times wider than that of one look an interval of 95 % is that holds at all looks at once.

    Args:
        units: that count at this look, 1 or more.
    """
    bound = -2.0 * log(_MISS)
    age = units * (bound + log(bound) + 1.0) / _NARROWEST
    return sqrt((age + 1.0) / age * (log(age + 1.0) + bound)) / _NORMAL


class _Layout:
    """Units in the order of their strata, in each the canary first; which unit has which group is drawn.

    Args:
        place: number of each unit's stratum, ascending.
        spread: group (1: canary) minus the share of the canary in the stratum.
        inverse: 1 / units of the stratum.
    """

    def __init__(self, place: Array, spread: Array, inverse: Array) -> None:
        self._place, self._spread = place, spread
        self._weight = float(spread @ spread)
        leverage = inverse + spread**2 / self._weight
        self._variance_weight = spread**2 / np.maximum(1.0 - leverage, 1e-9) / self._weight**2

    @property
    def of_control(self) -> Array:
        """The weight of each unit in the mean of the control group; 0 of the canary. They sum to 1."""
        return np.where(self._spread < 0.0, -self._spread, 0.0) / self._weight

    def effective(self, side: Array) -> float:
        """Return the number of equal weights that would spread as much as those of a side."""
        squares = self._spread[side] ** 2
        return float(squares.sum() ** 2 / (squares**2).sum())

    def centred(self, values: Array) -> Array:
        """Return values minus the mean of their strata."""
        means: Array = np.bincount(self._place, values) / np.maximum(np.bincount(self._place), 1)
        return values - means[self._place]

    def fit(self, centred: Array) -> tuple[Array, Array]:
        """Return differences and their standard errors; `centred` are rows of values, [draws, units]."""
        difference = centred @ self._spread / self._weight
        errors = centred - difference[:, None] * self._spread
        return difference, np.sqrt((errors**2) @ self._variance_weight)

    def drawn(self, centred: Array, seed: int, breathe: Callable[[], None]) -> tuple[float, float]:
        """Return the 97.5th and the 2.5th percentile of difference / error where the group makes no difference.

        Args:
            centred: the values without the difference.
            seed: of the draws.
            breathe: called between steps.
        """
        draw, units = np.random.default_rng(seed), len(centred)
        number = min(DRAWS, max(LEAST_DRAWS, _LOOKED_AT // units))
        rows = max(1, _STEP // units)
        ratios = list[Array]()
        for first in range(0, number, rows):
            keys = draw.random((min(rows, number - first), units)) + self._place
            difference, error = self.fit(centred[np.argsort(keys, axis=1)])
            ratios.append(np.divide(difference, error, out=np.zeros_like(difference), where=error > 0.0))
            breathe()
        high, low = np.quantile(np.concatenate(ratios), (0.975, 0.025)).tolist()
        return high, low
