"""Forecasts of jobs that the resource manager starts by itself while nothing is carried out here: in shadow.

Rule: a start that would have been made is a start in another world, so its forecast is not compared with what the job
did. The job is forecast where it really runs, by the first plan after its start.
"""

from __future__ import annotations

from ..simulate.model.plan import Plan, PlannedJob
from ..simulate.model.snapshot import Snapshot
from .learning.forecast_errors import ForecastErrors, owner_of
from .report.job_log import JobLog
from .state.forecasts import JobForecast
from .state.job_stages import JobStage
from .state.queue import Queue
from .state.queue_entry import Entry

#: A job is forecast within so many seconds of its start, and within this share of its run time.
JUST_BEGUN_S, LATEST_SHARE = 60.0, 0.2


class ObservedStarts:
    """Notes them; `queue` has the jobs, `forecasts` the speeds of nodes, `log` takes the records."""

    def __init__(self, queue: Queue, forecasts: ForecastErrors, log: JobLog) -> None:
        self._queue, self._forecasts, self._log = queue, forecasts, log

    def any_new(self, now: float) -> bool:
        """Return whether a job began a moment ago without a forecast; `now` in epoch seconds. O(jobs)."""
        return any(_is_new(entry, now) for entry in self._queue.active())

    def note(self, entry: Entry, planned: PlannedJob, plan: Plan, snapshot: Snapshot) -> None:
        """Note the forecast of a job that has just begun, if it is one.

        Args:
            entry: the job.
            planned: the job in a plan.
            plan: that has it.
            snapshot: that it was planned for.
        """
        if not _is_new(entry, snapshot.time):
            return
        speed, began = self._forecasts.speeds.of(entry.nodes), entry.start_time or snapshot.time
        forecast = JobForecast.of_running(planned, began, snapshot.time, speed)
        if forecast.run_time * LATEST_SHARE < snapshot.time - began:
            return
        entry.forecast, self._queue.dirty[entry.key] = forecast, entry
        user = owner_of(entry, self._queue.submissions[entry.workflow])
        self._log.add_choice(entry, forecast, planned, plan, snapshot, user, by_manager=True)


def _is_new(entry: Entry, now: float) -> bool:
    if entry.stage is not JobStage.RUNNING or entry.forecast is not None or entry.start_time is None:
        return False
    return now - entry.start_time < JUST_BEGUN_S
