"""Where a series changes its level: pure arithmetic on arrays.

Rule: the split is the best there is under its penalty, not the best that a greedy search came upon.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
#: A further piece must explain so many times log(n) of variance, in each column: its place and its level are two
#: parameters (Yao, Statistics & Probability Letters 1988), and readings that follow each other are not independent.
PENALTY = 4.0
#: The median absolute difference of neighbours by the standard deviation of normal noise: sqrt(2) * 0.6745.
DIFFERENCE_TO_SIGMA = 0.9539


def change_points(values: Any, weights: Any = None, *, noise: float = 0.0, least: int = 1) -> list[int]:
    """Return the indices at which a new level begins, rising, without 0. O(n^2), n up to some thousands.

    Optimal partitioning of weighted squared errors around each piece's mean. The noise is taken from the differences
    of neighbours, so that a few large changes do not count as noise.

    Args:
        values: n readings, or n rows of several readings at once.
        weights: how much each counts, >= 0, such as how long it lasted; None = all alike.
        noise: the least standard deviation of a reading that is taken for noise, > 0 where readings can be equal.
        least: readings of a piece, >= 1.

    Source: Jackson et al., IEEE Signal Processing Letters 12(2), 2005.
    """
    rows = np.asarray(values, np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    count = len(rows)
    weight = np.ones(count) if weights is None else np.asarray(weights, np.float64)
    if count < 2 * least or weight.sum() <= 0:
        return []
    weight = weight * (count / weight.sum())
    scaled = rows / np.maximum(_noise(rows), max(noise, 1e-12))
    penalty = PENALTY * math.log(count) * scaled.shape[1]
    return _partition(scaled - scaled.mean(axis=0), weight, penalty, least)


def _noise(rows: Array) -> Array:
    """The standard deviation of each column's noise."""
    spread: Array = np.median(np.abs(np.diff(rows, axis=0)), axis=0) / DIFFERENCE_TO_SIGMA
    return spread


def _partition(rows: Array, weight: Array, penalty: float, least: int) -> list[int]:
    """The beginnings of the pieces for which error + penalty * pieces is least."""
    count = len(rows)
    mass = np.concatenate([[0.0], np.cumsum(weight)])
    first = np.vstack([np.zeros(rows.shape[1]), np.cumsum(weight[:, None] * rows, axis=0)])
    second = np.concatenate([[0.0], np.cumsum((weight[:, None] * rows**2).sum(axis=1))])
    cost, begin = np.full(count + 1, np.inf), np.zeros(count + 1, np.int64)
    cost[0] = -penalty
    for end in range(least, count + 1):
        at = slice(0, end - least + 1)
        sums = ((first[end] - first[at]) ** 2).sum(axis=1)
        error = second[end] - second[at] - sums / np.maximum(mass[end] - mass[at], 1e-12)
        total = cost[at] + error + penalty
        begin[end] = int(np.argmin(total))
        cost[end] = total[begin[end]]
    found, end = list[int](), int(begin[count])
    while end > 0:
        found.append(end)
        end = int(begin[end])
    return found[::-1]
