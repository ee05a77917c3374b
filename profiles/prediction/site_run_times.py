"""Run times of the jobs of a Slurm site, drawn from what like jobs took.

Rule: a prediction rests on jobs that have ended, alike in user, account, name, partition, size or limit
(`predictors.History`). A draw is one of that distribution; that of a running job is longer than it has run already. A
job that is like none of them runs until its limit. The jobs of a user are drawn together: their errors go one way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.slurm.site import SiteJob
from .predictors import LIMIT, History, SubmittedJob

Array = npt.NDArray[Any]
#: Probabilities of the points between which a draw is interpolated, and the first and last point by the next one.
_LEVELS, _LEAST, _MOST = np.array((0.0, 0.1, 0.5, 0.9, 1.0)), 0.5, 1.5
#: Ends of jobs that say how long such jobs run.
_TELLING = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY")


class SiteRunTimes:
    """Distributions of the run times of jobs.

    Args:
        ended: jobs of the past, with their runs; those that have not ended are passed over.
        jobs: jobs whose run times are drawn.
        limit_s: their time limits, seconds, [jobs].
        ran_s: how long each has run, seconds; 0 for those that wait.
    """

    def __init__(self, ended: Iterable[SiteJob], jobs: Sequence[SiteJob], limit_s: Array, ran_s: Array) -> None:
        history = History(quantile=0.5)
        runs = [
            (run.end, run.end - run.start, job)
            for job in ended
            for run in job.runs[-1:]
            if run.start is not None and run.end is not None and run.state.startswith(_TELLING)
        ]
        for _, run_s, job in sorted(runs, key=lambda entry: entry[0]):
            history.learn(_submitted(job, job.limit_min and job.limit_min * 60.0), run_s)
        #: Numbers of jobs that it learned from, and whose run times it predicts.
        self.learned, self.predicted = len(runs), 0
        self._limit, self._ran = limit_s, ran_s
        self._points = np.empty((len(jobs), len(_LEVELS)))
        points_of = dict[object, Sequence[float]]()
        for row, job in enumerate(jobs):
            submitted = _submitted(job, float(limit_s[row]))
            key = submitted.traits
            if key not in points_of:
                prediction = history.predict(submitted) if runs else None
                low, value, high = (
                    (math.inf,) * 3
                    if prediction is None
                    or prediction.kind == LIMIT
                    or prediction.low is None
                    or prediction.high is None
                    else (prediction.low, prediction.value, prediction.high)
                )
                points_of[key] = (_LEAST * low, low, value, high, _MOST * high)
            self.predicted += points_of[key][0] < math.inf
            self._points[row] = np.clip(points_of[key], 1.0, max(1.0, float(limit_s[row])))

        #: Bounds that a run time exceeds with probability 0.9, 0.5 and 0.1, seconds, [jobs, 3].
        self.bounds = self._points[:, 1:4]
        users = dict[str, int]()
        self._groups = np.array([users.setdefault(job.user, len(users)) for job in jobs], np.int64)
        self._logs, self._passed = np.log(self._points), np.zeros(len(jobs))
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


def _submitted(job: SiteJob, limit_s: float | None) -> SubmittedJob:
    partition = ",".join(job.partitions)
    traits = (
        job.user or None, job.account or None, job.name or None, partition or None, (job.min_nodes, job.min_cpus),
        job.limit_min, None,
    )  # fmt: skip
    return SubmittedJob(traits, limit_s or None)
