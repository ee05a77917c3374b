"""Run times predicted during a replay, from the jobs that have ended in it.

Rule: a prediction rests on the submitted job and on the jobs given to `ended` before; it is at most the walltime.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...simulate.model.workload import Workload
from .evaluate import Array, submitted_jobs
from .predictors import Estimate, History

#: Times below count as this long where they are compared, seconds.
SHORTEST_S = 1.0


@dataclass(frozen=True, slots=True)
class RunTimeAccuracy:
    """Agreement of expected run times with the actual ones.

    Args:
        jobs: number of compared jobs.
        median_factor: median of the larger over the smaller of the two times, each at least SHORTEST_S.
        within_20_percent: share of jobs whose expected time is 0.8 to 1.2 times the actual one, [0, 1].
        too_low: share of jobs that ran longer than expected, [0, 1].
    """

    jobs: int
    median_factor: float
    within_20_percent: float
    too_low: float


def accuracy(expected: Array, actual: Array) -> RunTimeAccuracy | None:
    """Return the accuracy of expected run times; None without any.

    Args:
        expected: seconds [jobs]; jobs whose time is nan or infinite are left out.
        actual: seconds [jobs]; likewise.
    """
    finite = np.isfinite(expected) & np.isfinite(actual)
    if not finite.any():
        return None
    low = expected[finite] < actual[finite]
    expected, actual = np.maximum(expected[finite], SHORTEST_S), np.maximum(actual[finite], SHORTEST_S)
    ratio = expected / actual
    return RunTimeAccuracy(
        int(finite.sum()),
        float(np.median(np.maximum(ratio, 1.0 / ratio))),
        float((np.abs(ratio - 1.0) <= 0.2).mean()),
        float(low.mean()),
    )


class OnlineRunTimes:
    """Predicts the run times of a workload's jobs; a `RunTimePredictor` of `simulate`.

    Args:
        workload: the jobs. Limits are the requested times; a job without one is predicted without a limit.
        predictor: None = `History`, which also predicts commands.
    """

    def __init__(self, workload: Workload, predictor: Estimate | None = None) -> None:
        requested_times = workload.more.get("requested_time", workload.walltime)
        limits = np.where((requested_times > 0) & np.isfinite(requested_times), requested_times, np.nan)
        self.unasked = int((requested_times <= 0).sum())  #: jobs of a trace without a requested time
        self._jobs = submitted_jobs(workload, limits, np.where(np.isnan(limits), -1.0, limits))
        self._limits = workload.walltime
        self.run_times = np.minimum(workload.run_time, workload.walltime)
        self.made = workload.walltime.copy()  #: the predictions, seconds [jobs]; the walltime where nothing was known
        self._predictor = History() if predictor is None else predictor

    def expected(self, row: int) -> float | None:
        """Return the expected run time of a job that is submitted now, seconds; None if nothing is known."""
        prediction = self._predictor.predict(self._jobs[row])
        if prediction is None:
            return None
        self.made[row] = min(prediction.value, float(self._limits[row]))
        return prediction.value

    def compared(self, ran: Array) -> dict[str, RunTimeAccuracy | None]:
        """Return the accuracy of the predictions and of the walltimes over some jobs, bool [jobs]."""
        actual = self.run_times[ran]
        return {"predicted": accuracy(self.made[ran], actual), "walltime": accuracy(self._limits[ran], actual)}

    def ended(self, row: int, ran: float | None = None) -> None:
        """Learn the run time of a job that has ended; `ran`: seconds, if the workload does not say."""
        if ran is not None:
            self.run_times[row] = ran
        self._predictor.learn(self._jobs[row], float(self.run_times[row]))
