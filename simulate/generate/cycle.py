"""The daily cycle of arrivals: how far the day has come in terms of rush.

Rule: time is counted twice, by the clock and in rush seconds, of which a day has as many, but most of them when people
are at work; a process that is steady in rush seconds has the cycle. Both ways are exact inverses.
Source: Lublin and Feitelson 2003, 5; the Parallel Workloads Archive's m_lublin99.c: half hours, of which the n-th since
midnight weighs what a gamma distribution (in half hours) has between n - 1/2 and n + 1/2, the day being taken from 5:00
to 5:00.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
SLOTS, DAY_S = 48, 86400.0
_FIRST = 11  # the slot from which a day is taken, counted from 1


@dataclass(frozen=True)
class Cycle:
    """A day whose slots weigh as the gamma distribution of this shape and scale (half hours)."""

    shape: float
    scale: float

    @cached_property
    def weights(self) -> Array:
        """Of each half hour from midnight on; 1 in the mean."""
        slots = range(_FIRST, _FIRST + SLOTS)
        shares = np.zeros(SLOTS)
        for slot in slots:
            low, high = (gamma_cdf((slot + side) / self.scale, self.shape) for side in (-0.5, 0.5))
            shares[(slot - 1) % SLOTS] = high - low
        weights: Array = shares * (SLOTS / shares.sum())
        return weights

    @cached_property
    def _rush(self) -> Array:
        """Rush seconds from midnight to the ends of slots, to the microsecond."""
        sums = np.concatenate(([0.0], np.cumsum(self.weights))) * (DAY_S / SLOTS)
        return np.append(np.round(sums[:-1], 6), DAY_S)

    def clock(self, rush: Array) -> Array:
        """The clock's seconds at which so many rush seconds have passed since the first midnight."""
        return _through(rush, self._rush, _ENDS)

    def rush(self, clock: Array) -> Array:
        """The inverse of `clock`."""
        return _through(clock, _ENDS, self._rush)


_ENDS = np.linspace(0.0, DAY_S, SLOTS + 1)


def _through(times: Array, here: Array, there: Array) -> Array:
    days, rest = np.divmod(times, DAY_S)
    return days * DAY_S + np.interp(rest, here, there)


def gamma_cdf(x: float, shape: float) -> float:
    """The distribution function of a gamma distribution of scale 1 at `x` >= 0, by its series; up to 100, say."""
    if x <= 0.0:
        return 0.0
    n, term = shape, 1.0 / shape
    total = term
    while term > total * 1e-17:
        n += 1.0
        term *= x / n
        total += term
    return total * math.exp(shape * math.log(x) - x - math.lgamma(shape))
