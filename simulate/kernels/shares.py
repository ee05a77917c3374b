"""Fair shares of a capacity: of the cores of a node among jobs, of a memory or a link among those that use it.

Rule: max-min fairness (water-filling): who demands less than the level gets it, all others get the level. A measured
curve replaces it where the cluster has one.
Source of the curve: the piecewise-linear model of IRMaSim (Herrera et al., CCGrid 2021), IV, with the smooth step of
its authors' code.
"""

from __future__ import annotations

import math

from ..arrays import Array, Row
from .jit import inlined as inner


@inner
def fair_level(demands: Array, weights: Array | None, size: int, capacity: float) -> float:
    """Return the level L at which the sum of weight * min(demand, L) is the capacity; infinity: it is enough for all.

    O(size x levels).

    Args:
        demands: demand of each user, in units of the capacity per weight.
        weights: weight of each user, such as its threads; None: 1.
        size: number of users, at least one.
        capacity: what is shared.
    """
    total = 0.0
    for i in range(size):
        total += 1.0 if weights is None else weights[i]
    level = capacity / total
    while True:
        used, rest = 0.0, 0.0
        for i in range(size):
            weight = 1.0 if weights is None else weights[i]
            if demands[i] <= level:
                used += weight * demands[i]
            else:
                rest += weight
        if rest <= 0.0:
            return math.inf
        higher = (capacity - used) / rest
        if higher <= level * (1.0 + 1e-15):
            return level
        level = higher


@inner
def piecewise_share(kind: Row, demand: float, total: float, others: float) -> float:
    """Return the share of its full speed that a thread has next to others.

    Args:
        kind: row with the parameters of the curve, which are in MB/s.
        demand: bytes/s that the thread demands.
        total: MB/s that all threads demand.
        others: number of the other threads, at most `n_max`.
    """
    if total < kind.c:
        return 1.0
    x = (demand * 1e-6 - (kind.da - others) * kind.db) / (kind.dc - others * kind.dd)
    x = min(max(x, 0.0), 1.0)
    smooth = 1.0 - x * x * x * (x * (6.0 * x - 15.0) + 10.0)
    n = others * kind.d_weight
    return max((smooth * n + 1.0) / (n + 1.0), 1.0 + kind.b * (total - kind.c))
