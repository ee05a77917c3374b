"""Run times of many jobs, drawn from their predictions.

Rule: a draw is one of the distribution between the bounds of a prediction; that of a running job is longer than it has
run already. A job without a prediction runs until its limit. The jobs of a group are drawn together: their errors go
one way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: Probabilities of the points between which a draw is interpolated, and the first and last point by the next one.
_LEVELS, _LEAST, _MOST = np.array((0.0, 0.1, 0.5, 0.9, 1.0)), 0.5, 1.5


class RunTimeDraws:
    """Distributions of run times.

    Args:
        bounds: what a run time exceeds with probability 0.9, 0.5 and 0.1, seconds, [jobs, 3]; inf: not known.
        limit_s: time limits, seconds, [jobs].
        ran_s: how long each has run, seconds, [jobs]; 0 for those that wait.
        groups: number of the group of each job, from 0, [jobs].
    """

    def __init__(self, bounds: Array, limit_s: Array, ran_s: Array, groups: Array) -> None:
        self._limit, self._ran, self._groups = limit_s, ran_s, groups
        points = np.column_stack((_LEAST * bounds[:, 0], bounds, _MOST * bounds[:, 2]))
        self._points = np.clip(points, 1.0, np.maximum(1.0, limit_s)[:, None])
        #: The bounds, none beyond a limit.
        self.bounds = self._points[:, 1:4]
        self._logs, self._passed = np.log(self._points), np.zeros(len(bounds))
        for row in np.flatnonzero(ran_s > 0).tolist():
            self._passed[row] = np.interp(math.log(ran_s[row]), self._logs[row], _LEVELS)

    def drawn(self, seed: int) -> Array:
        """Return a run time for each job, seconds, at most its limit; the same seed draws the same."""
        draws = np.random.default_rng(seed).random(self._groups.max(initial=0) + 1)[self._groups]
        levels = self._passed + (1.0 - self._passed) * draws
        rows, place = (
            np.arange(len(levels)),
            np.clip(np.searchsorted(_LEVELS, levels, "right") - 1, 0, len(_LEVELS) - 2),
        )
        share = (levels - _LEVELS[place]) / (_LEVELS[place + 1] - _LEVELS[place])
        run_s = self._points[rows, place] * np.exp(share * (self._logs[rows, place + 1] - self._logs[rows, place]))
        outlasts = self._ran >= self._points[:, -1]  # longer than all before it: nothing but its limit is known
        result: Array = np.where(outlasts, self._ran + draws * np.maximum(self._limit - self._ran, 0.0), run_s)
        return result
