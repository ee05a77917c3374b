"""How good predictions are: by how much they miss, and how often a job needs more than was predicted.

Rule: predictors are compared over the same jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .jobs import Prediction
from .online import Array


@dataclass(frozen=True, slots=True)
class Score:
    """What predictions were worth; errors are |predicted - actual|, in the unit of what is predicted.

    Args:
        mean_error, median_error: over the jobs.
        underpredicted: share of the jobs that needed more than predicted, [0, 1].
        relative: mean error / that of the user's estimate; None where that is not there or without an error.
        kinds: share of the jobs that was predicted from each kind of jobs, the largest first.
    """

    mean_error: float
    median_error: float
    underpredicted: float
    relative: float | None
    kinds: Mapping[str, float]


def common(values: Array, predictions: Sequence[Sequence[Prediction | None]]) -> Array:
    """Which jobs can be compared: those whose need is known and which all have predicted."""
    mask = np.isfinite(values)
    for made in predictions:
        mask &= np.fromiter((one is not None for one in made), bool, len(made))
    return mask


def score(values: Array, limits: Array, predictions: Sequence[Prediction | None], rows: Array) -> Score:
    """Judge predictions.

    Args:
        values: what jobs needed; limits: what users said, nan = nothing.
        rows: a mask of the jobs to judge by, one at least; all of them have a value and a prediction.
    """
    chosen = [predictions[row] for row in np.flatnonzero(rows).tolist()]
    made = [one for one in chosen if one is not None]
    predicted, actual = np.array([one.value for one in made]), values[rows]
    errors = np.abs(predicted - actual)
    estimated = float(np.abs(limits[rows] - actual).mean())
    kinds = Counter(one.kind for one in made)
    return Score(
        float(errors.mean()),
        float(np.median(errors)),
        float((predicted < actual).mean()),
        float(errors.mean()) / estimated if estimated > 0 else None,
        {kind: jobs / len(made) for kind, jobs in kinds.most_common()},
    )
