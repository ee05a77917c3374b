"""Run times of the jobs of a Slurm site, drawn from what like jobs took.

Rule: a prediction rests on jobs that have ended, alike in user, account, name, partition, size or limit
(`predictors.History`). Draws are those of `run_time_draws`; the jobs of a user are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ...simulate.slurm.site import SiteJob
from .predictors import LIMIT, History, Prediction, SubmittedJob
from .run_time_draws import Array, RunTimeDraws

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
        self.learned = len(runs)  #: number of jobs that it learned from
        bounds, bounds_of = np.full((len(jobs), 3), math.inf), dict[object, tuple[float, float, float]]()
        for row, job in enumerate(jobs):
            submitted = _submitted(job, float(limit_s[row]))
            key = submitted.traits
            if key not in bounds_of:
                bounds_of[key] = _bounds(history.predict(submitted) if runs else None)
            bounds[row] = bounds_of[key]
        self.is_predicted = np.isfinite(bounds[:, 0])  #: of each job, whether like ones have ended
        users = dict[str, int]()
        groups = np.array([users.setdefault(job.user, len(users)) for job in jobs], np.int64)
        self._draws = RunTimeDraws(bounds, limit_s, ran_s, groups)
        #: Bounds that a run time exceeds with probability 0.9, 0.5 and 0.1, seconds, [jobs, 3].
        self.bounds = self._draws.bounds

    def drawn(self, seed: int) -> Array:
        """Return a run time for each job, seconds, at most its limit; the same seed draws the same."""
        return self._draws.drawn(seed)


def _bounds(prediction: Prediction | None) -> tuple[float, float, float]:
    """Return the bounds of a prediction; inf if nothing but a limit is known."""
    if prediction is None or prediction.kind == LIMIT or prediction.low is None or prediction.high is None:
        return (math.inf,) * 3
    return prediction.low, prediction.value, prediction.high


def _submitted(job: SiteJob, limit_s: float | None) -> SubmittedJob:
    partition = ",".join(job.partitions)
    traits = (
        job.user or None, job.account or None, job.name or None, partition or None, (job.min_nodes, job.min_cpus),
        job.limit_min, None,
    )  # fmt: skip
    return SubmittedJob(traits, limit_s or None)


def expected_at_submission(jobs: Sequence[SiteJob]) -> Array:
    """Return the run time of each job that was expected when it was submitted, seconds; NaN where nothing was known.

    The daemon expects the same in shadow mode: only jobs that had really ended by then are known. O(jobs log jobs).
    """
    history, expected = History(quantile=0.5), np.full(len(jobs), np.nan)
    ends = list[tuple[float, int, float]]()
    for row, job in enumerate(jobs):
        run = job.runs[-1] if job.runs else None
        if run is not None and run.start is not None and run.end is not None and run.state.startswith(_TELLING):
            ends.append((run.end, row, run.end - run.start))
    ends.sort()
    place = 0
    for row in sorted(range(len(jobs)), key=lambda row: jobs[row].submit):
        job = jobs[row]
        while place < len(ends) and ends[place][0] <= job.submit:
            ended = jobs[ends[place][1]]
            run = ended.runs[-1]
            history.learn(
                _submitted(ended, ended.limit_min and ended.limit_min * 60.0), (run.end or 0.0) - (run.start or 0.0)
            )
            place += 1
        prediction = history.predict(_submitted(job, job.limit_min and job.limit_min * 60.0))
        if prediction is not None and prediction.kind != LIMIT:
            expected[row] = prediction.value
    return expected
