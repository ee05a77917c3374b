"""The score of a waiting job under a learned order: a weighted sum of its features, or a small network of them.

Rule: a network has HIDDEN units, each with a bias, a weight of each feature, and the weight of what it gives. Sums
begin with the bias and go on in the order of the features and of the units, each step rounded by itself, so that
Python, NumPy and the kernel `queue.learned_score` give the same bits. Scores are rounded to 40 bits, so that the last
bits of a logarithm decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..kernels.queue.tables import FEATURE_COUNT, HIDDEN, ROUND, STEEP, UNIT

#: Numbers of a network.
NETWORK = HIDDEN * UNIT


def bend(total: float) -> float:
    """Return x (27 + x^2) / (27 + 9 x^2), a rational form of tanh, of x within -3 and 3; from -1 to 1."""
    bounded = min(max(total, -STEEP), STEEP)
    square = bounded * bounded
    return bounded * (27.0 + square) / (27.0 + 9.0 * square)


def score_of(weights: Sequence[float], values: Sequence[float]) -> float:
    """Return the score of one job; the least comes first.

    Args:
        weights: of the features [FEATURE_COUNT], or the units of a network one after another [NETWORK].
        values: the features [FEATURE_COUNT].
    """
    if len(weights) == FEATURE_COUNT:
        return _rounded(_sum(0.0, weights, values))
    score = 0.0
    for first in range(0, NETWORK, UNIT):
        bias, *inputs, output = weights[first : first + UNIT]
        score += output * bend(_sum(bias, inputs, values))
    return _rounded(score)


def scores_of(weights: Sequence[float], rows: Array) -> Array:
    """Return the score of each job, see `score_of`; for many jobs at once [jobs].

    Args:
        weights: see `score_of`.
        rows: the features of each job [jobs, FEATURE_COUNT].
    """
    scores: Array = np.zeros(len(rows))
    with np.errstate(invalid="ignore", over="ignore"):  # a score that is no number is no number
        if len(weights) == FEATURE_COUNT:
            for feature, weight in enumerate(weights):
                scores += weight * rows[:, feature]
        else:
            units = np.array(weights).reshape(HIDDEN, UNIT)
            bent = _bent_totals(units, rows)
            for unit in range(HIDDEN):
                scores += units[unit, -1] * bent[:, unit]
        large = scores * ROUND
        rounded: Array = large - (large - scores)
    return rounded


def _bent_totals(units: Array, rows: Array) -> Array:
    """Return what each unit gives for each job [jobs, HIDDEN]."""
    totals: Array = np.repeat(units[None, :, 0], len(rows), axis=0)
    for feature in range(FEATURE_COUNT):
        totals += units[:, 1 + feature] * rows[:, feature, None]
    np.clip(totals, -STEEP, STEEP, out=totals)
    squares = totals * totals
    bent: Array = totals * (27.0 + squares) / (27.0 + 9.0 * squares)
    return bent


def parts_of(weights: Sequence[float], values: Sequence[float], usual: Sequence[float]) -> list[float]:
    """Return by how much each feature moves the score of a job: the score less that with the feature's usual value.

    Args:
        weights: see `score_of`.
        values: the features of the job.
        usual: the usual value of each feature.
    """
    changed = [[*values[:place], one, *values[place + 1 :]] for place, one in enumerate(usual)]
    score, *others = scores_of(weights, np.array([values, *changed])).tolist()
    return [score - other for other in others]


def _sum(start: float, weights: Sequence[float], values: Sequence[float]) -> float:
    for weight, value in zip(weights, values, strict=True):
        start += weight * value
    return start


def _rounded(score: float) -> float:
    large = score * ROUND
    return large - (large - score)
