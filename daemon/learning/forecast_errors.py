"""Forecast errors: measure each forecast against what happened, for the guard, profile drift and the metrics.

Rule: only jobs that completed count, and were not suspended. A job planned with the default profile says nothing about
a model, nor does one that borrows the profile of another user, nor one whose CPUs others used.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...formats.text import times
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job
from ..report.accuracy import MUCH, Groups, factor, interval_width, model_of, source_of
from ..report.metrics import Metrics
from ..state.forecasts import Forecaster
from ..state.profile_labels import has_default_profile, profile_of
from ..state.queue import Submission
from ..state.queue_entry import Entry
from ..state.recorded_outcome import error_ratio, inside
from ..state.unsaved import Unsaved
from .guard_rail import Guard
from .interval_correction import IntervalCorrection, groups_of
from .node_speeds import NodeSpeeds
from .profile_drift import ProfileDrift

log = logging.getLogger("pilotfish.job")


def owner_of(entry: Entry, submission: Submission) -> int | None:
    """Return the uid of the user of a job of a submission; None = not known."""
    return submission.owner if entry.job.owner is None else entry.job.owner


def interval_groups(entry: Entry, submission: Submission) -> Groups:
    """Return the groups by whose errors the interval of a job of a submission is corrected; none for a guess."""
    return groups_of(profile_of(entry.job), source_of(entry.job), owner_of(entry, submission))


class ForecastErrors:
    """Measures completed jobs.

    Args:
        guard: distrusts forecasters that keep missing; a reload replaces it.
        drift: watches the errors of profiles.
        unsaved: receives the errors for the journal.
        learned_as: returns the name under which a job's profile is learned.
        intervals: corrects prediction intervals by what came true.
        speeds: learns how fast each node is.
    """

    def __init__(
        self,
        metrics: Metrics,
        guard: Guard,
        drift: ProfileDrift,
        unsaved: Unsaved,
        learned_as: Callable[[Job], str],
        intervals: IntervalCorrection,
        speeds: NodeSpeeds,
    ) -> None:
        self.metrics, self.guard, self._drift, self._unsaved = metrics, guard, drift, unsaved
        self._learned_as, self.intervals, self.speeds = learned_as, intervals, speeds

    def measure(self, entry: Entry, submission: Submission, cluster: Cluster, taken: float | None = None) -> None:
        """Measure the forecasts of a completed job.

        Args:
            entry: the completed job.
            submission: that has it; the entry's own owner and time go first.
            cluster: on which it ran.
            taken: share of its run time that others took from it; None = unknown.
        """
        if entry.start_time is None or entry.finish_time is None or entry.was_suspended:
            return
        run_time = entry.finish_time - entry.start_time
        if run_time < 0.0:  # a clock was set back: the run time is unknown
            return
        if has_default_profile(entry.job):  # its run time was assumed, not forecast
            return
        if forecast := entry.forecast:
            error = error_ratio(forecast.run_time, run_time)
            self.metrics.errors.observe_kind("run_time", error)
            self.metrics.slowdown.observe(run_time / max(forecast.isolated_run_time, 1e-9))
            if taken is not None and taken >= MUCH:
                self.metrics.errors.external.inc()
            else:
                forecaster = Forecaster(model_of(entry.nodes, cluster), source_of(entry.job))
                self._judge(entry, forecaster, error, owner_of(entry, submission))
                self.speeds.learn(",".join(entry.nodes), forecast.run_time, run_time, forecast.node_speed)
            groups = interval_groups(entry, submission)
            if within := forecast.run_within:
                width, held = interval_width(within), inside(run_time, within)
                self.metrics.errors.count_interval(groups, source_of(entry.job), width, inside=held)
            self.intervals.learn(groups, forecast.run_time, run_time)
        if entry.promised is not None:
            submitted = submission.submit_time if entry.since is None else entry.since
            error = error_ratio(entry.promised - submitted, entry.finish_time - submitted)
            self.metrics.errors.observe_kind("finish_time", error)

    def _judge(self, entry: Entry, forecaster: Forecaster, error: float, user: int | None) -> None:
        """Let the guard, the drift of profiles and the metrics see an error, a ratio, of a user's job."""
        profile, learned_as = profile_of(entry.job), self._learned_as(entry.job)
        self.metrics.errors.observe(forecaster, profile, error)
        excess = factor(error) - 1.0
        self._drift.add(learned_as, entry.job, excess, user)
        if learned_as != profile:  # another user's profile, of whatever the job really ran: no fault of the model
            return
        self._unsaved.errors.append((forecaster, excess, user))
        before = self.guard.distrusted
        if self.guard.add(excess, forecaster, user):
            self._log_guard(before)

    def _log_guard(self, before: frozenset[Forecaster]) -> None:
        """Log which forecasters are newly distrusted, or trusted again, since `before`."""
        guard = self.guard
        for forecaster in sorted(guard.distrusted - before) if guard.enabled else ():
            log.warning(
                "forecasts of model %s are off by %s in the median, over the bound of %s: policy %s decides meanwhile",
                forecaster,
                times(1.0 + (guard.median(forecaster) or 0.0)),
                times(1.0 + guard.bound),
                guard.fallback,
            )
        for forecaster in sorted(before - guard.distrusted):
            more = "" if guard.tripped else ": the configured policy decides"
            log.warning("forecasts of model %s are good again%s", forecaster, more)
