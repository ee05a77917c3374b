"""The run times of jobs that a policy may know: walltimes, actual run times, or predictions.

Rule: a job is killed at its walltime, whatever is known of it. A prediction is made when a job is submitted (handed in,
if it depends on others), from jobs that ended before that time in the same schedule, and is at most the walltime. A job
that outlasts its expected end gets a later one: INCREMENTS_S after this time, at most its walltime. That is an instant.
Source: Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user runtime
estimates" (IEEE TPDS 18(6), 2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..errors import ConfigError
from ..model.workload import Workload

WALLTIME, PREDICTED, ACTUAL = "walltime", "predicted", "actual"
RUNTIMES = (WALLTIME, PREDICTED, ACTUAL)


class RunTimePredictor(Protocol):
    """Predicts the run times of the jobs of a workload; called in the order in which things happen."""

    def expected(self, row: int) -> float | None:
        """Return the expected run time of a job that is submitted now, seconds, 0 or more; None: its walltime."""

    def ended(self, row: int, ran: float | None = None) -> None:
        """Note that a job has ended, by itself or at its walltime; `ran`: seconds, if the workload does not say."""


def with_actual_walltimes(workload: Workload) -> Workload:
    """Return the workload with the times that the jobs will run as walltimes. Raises ConfigError if not known."""
    if workload.programs is not None:
        problem = "run times depend on the network, so they are not known in advance"
        raise ConfigError(workload.name, "run times", problem, f"{WALLTIME}, {PREDICTED}")
    return replace(workload, walltime=np.minimum(workload.run_time, workload.walltime))


class Predictions:
    """Asks a predictor, and keeps the walltimes as limits.

    Args:
        predictor: the predictor.
        workload: the jobs.
    """

    def __init__(self, predictor: RunTimePredictor, workload: Workload) -> None:
        self._predictor, self._submit_time = predictor, workload.submit_time.tolist()
        self._depends = np.isnan(workload.run_time)
        self.limits: list[float] = workload.walltime.tolist()

    def expected_at(self, now: float, row: int, ended: list[int], finish: Any, start: Any = None) -> dict[int, float]:
        """Return the expected run times of the jobs that are submitted now, by row; empty if none is.

        Args:
            now: seconds.
            row: the next job that is submitted; the number of jobs if all were.
            ended: jobs that have ended before this instant; emptied where they were noted.
            finish: end of each job of the workload, seconds.
            start: begin of each, seconds; required where run times depend on the network.
        """
        if row == len(self._submit_time) or self._submit_time[row] != now:
            return {}
        self.learn(ended, finish, start)
        ended.clear()
        return self.submitted_with(row)

    def submitted_with(self, row: int) -> dict[int, float]:
        """Return the expected run times of a job and of those that are submitted at the same time after it, by row."""
        run_times, times = dict[int, float](), self._submit_time
        now = times[row] if row < len(times) else math.inf
        while row < len(times) and times[row] == now:
            expected = self._predictor.expected(row)
            run_times[row] = self.limits[row] if expected is None else min(max(expected, 0.0), self.limits[row])
            row += 1
        return run_times

    def learn(self, ended: Iterable[int], finish: Any, start: Any = None) -> None:
        """Note the jobs that have ended, in the order of their ends, then of rows.

        Args:
            ended: their rows.
            finish: end of each job of the workload, seconds.
            start: see `expected_at`.
        """
        for row in sorted(ended, key=lambda row: (finish[row], row)):
            if self._depends[row]:
                self._predictor.ended(row, float(finish[row] - start[row]))
            else:
                self._predictor.ended(row)

    def feed(self, world: Any) -> None:
        """Write predictions into the tables of a replay that has paused for them."""
        row, jobs = int(world.count["next"]), world.jobs
        if row < len(jobs) and math.isnan(jobs[row]["wall"]):
            self.learn(world.ended[: world.count["unlearned"]].tolist(), jobs["finish"])
            world.count["unlearned"] = 0
            for later_row, expected in self.submitted_with(row).items():
                jobs[later_row]["wall"] = expected
