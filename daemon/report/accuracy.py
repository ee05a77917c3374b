"""Forecast errors of finished runs, and of past jobs by contention model, source, policy, class and profile.

Rule: an error is a ratio, actual / forecast, above 1 if the job took longer than forecast; its size is a factor, the
same for twice and for half as long. Spans under 1 ms count as 1 ms. Only jobs that completed have an error. Jobs with
the default profile are counted separately, as profile `default`: they say nothing about a model or a policy.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ...formats.text import clean
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import DEFAULT_PROFILE, Job
from ...simulate.model.plan import LEVEL, Plan, PlannedJob
from ...simulate.model.snapshot import JobState
from ..state.forecasts import JobForecast
from ..state.profile_labels import has_default_profile
from ..state.queue import Submission
from ..state.queue_entry import Entry
from ..state.recorded_outcome import ForecastOutcome, error_ratio
from ..state.users import user_name


def factor(ratio: float) -> float:
    """Return the size of an error, >= 1: the ratio, > 0, or its inverse, whichever is larger."""
    return max(ratio, 1.0 / ratio)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """A job as planned and as it ran; times in seconds from the run's start, None if it never started.

    `planned` is its place in the first plan, `forecast` that at the decision to start it, by the latest plan; None = it
    was not planned again.
    """

    planned: PlannedJob
    state: JobState
    nodes: tuple[str, ...]
    start_time: float | None
    finish_time: float | None
    exit_code: int | None
    signal: int | None
    reason: str
    forecast: JobForecast | None = None

    @property
    def run_time(self) -> float | None:
        """Run time, seconds."""
        if self.start_time is None or self.finish_time is None:
            return None
        return self.finish_time - self.start_time

    @property
    def forecast_run_time(self) -> float:
        """Forecast of the run time when the job started, seconds."""
        forecast = self.forecast or self.planned
        return forecast.finish_time - forecast.start_time

    @property
    def forecast_within(self) -> tuple[float, float] | None:
        """The prediction interval of the run time when the job started, seconds; None = not known."""
        if self.forecast is not None:
            return self.forecast.run_within
        bounds = self.planned.within
        return None if bounds is None else (bounds.shortest, bounds.longest)

    @property
    def error(self) -> float | None:
        """Error of the run time, a ratio; None unless the job completed."""
        if self.state is not JobState.COMPLETED or self.run_time is None:
            return None
        return error_ratio(self.forecast_run_time, self.run_time)


@dataclass(frozen=True)
class RunOutcome:
    """A whole run; `jobs` in the workflow's order."""

    id: str
    plan: Plan
    state: JobState
    jobs: tuple[JobOutcome, ...]

    @property
    def exit_code(self) -> int:
        """0 if every job completed, else 1."""
        return int(self.state is not JobState.COMPLETED)

    @cached_property
    def makespan(self) -> float:
        """Seconds from the first start to the last end; 0 if no job ran."""
        return max((job.finish_time for job in self.jobs if job.run_time is not None and job.finish_time), default=0.0)

    @property
    def makespan_error(self) -> float | None:
        """Error of the makespan, a ratio; None unless every job completed."""
        return error_ratio(self.plan.makespan, self.makespan) if self.exit_code == 0 else None

    @cached_property
    def median_factor(self) -> float | None:
        """Median of the factors by which run times were off."""
        factors = [factor(job.error) for job in self.jobs if job.error is not None]
        return statistics.median(factors) if factors else None

    @cached_property
    def worst(self) -> JobOutcome | None:
        """The completed job whose run time is off by the largest factor, longer or shorter."""
        completed = [job for job in self.jobs if job.error is not None]
        return max(completed, key=lambda job: factor(job.error or 1.0), default=None)


def outcome_of(submission: Submission, plan: Plan) -> RunOutcome:
    """Return each job's outcome with its plan; the run starts with its first job.

    Args:
        submission: of the workflow, ended.
        plan: the first one.
    """
    planned = {job.id: job for job in plan.jobs}
    starts = [entry.start_time for entry in submission.entries.values() if entry.start_time is not None]
    zero = min(starts, default=submission.submit_time)
    jobs = (_job(entry, planned[name], zero) for name, entry in submission.entries.items() if name in planned)
    return RunOutcome(submission.id, plan, submission.state, tuple(jobs))


def _job(entry: Entry, planned: PlannedJob, zero: float) -> JobOutcome:
    ran = entry.start_time is not None
    start = entry.start_time - zero if entry.start_time is not None else None
    finish = entry.finish_time - zero if ran and entry.finish_time is not None else None
    ended = entry.exit_code, entry.signal, entry.reason
    return JobOutcome(planned, entry.state, entry.nodes, start, finish, *ended, entry.forecast)


def outcome_to_dict(outcome: RunOutcome, outputs: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the run as a mapping for JSON (schema pilotfish/run/v1).

    Args:
        outcome: of the run.
        outputs: job id -> files of its stdout and stderr.
    """
    from ...formats.plan import plan_to_dict

    worst = outcome.worst
    return {
        "schema": "pilotfish/run/v1",
        "id": outcome.id,
        "state": str(outcome.state),
        "exit_code": outcome.exit_code,
        "makespan": outcome.makespan,
        "makespan_ratio": outcome.makespan_error,
        "median_run_time_factor": outcome.median_factor,
        "worst_run_time_ratio": worst.error if worst else None,
        "worst_job": worst.planned.id if worst else None,
        "jobs": [
            {
                "id": job.planned.id,
                "state": str(job.state),
                "nodes": list(job.nodes),
                **{name: getattr(job, name) for name in ("start_time", "finish_time", "run_time", "forecast_run_time")},
                "run_time_ratio": job.error,
                **{name: getattr(job, name) for name in ("exit_code", "signal", "reason")},
                **dict(zip(("stdout", "stderr"), outputs.get(job.planned.id, (None, None)), strict=True)),
            }
            for job in outcome.jobs
        ],
        "plan": plan_to_dict(outcome.plan),
    }


#: Kind and name of each group of jobs whose errors say something of one job, the narrowest first.
Groups = tuple[tuple[Hashable, ...], ...]
#: Share of its time that others take from a job, from which on its run time says nothing about its forecast.
MUCH = 0.05
#: Least run time in the bounded slowdown, seconds.
TAU_S = 10.0
#: The number of latest jobs that are evaluated.
LATEST = 10_000
#: Least jobs for a trend.
TREND = 8
#: Name of a group whose value is not in the journal.
NOT_RECORDED = "not recorded"
#: Columns of the CSV, and the attributes of a job behind those that are named otherwise.
_COLUMNS = (
    "job", "model", "policy", "profile", "source", "class", "end_time", "forecast_s", "actual_s", "ratio", "shortest_s",
    "longest_s", "inside", "turnaround_s", "plain_turnaround_s", "user",
)  # fmt: skip
_ATTRIBUTES = {"job": "key", "class": "job_class", "end_time": "time", "ratio": "error"}
KINDS = ("model", "source", "policy", "class", "user", "command", "profile")
#: Kinds of groups in which intervals are to hold; shares of the jobs that count as calibrated; least jobs of a group.
CALIBRATED_KINDS, CALIBRATED, ENOUGH_JOBS = ("source", "user", "command", "profile"), (0.75, 0.85), 30
#: Sources of profiles, default profiles excepted: the errors of guesses must not count against a model.
SOURCES = ("measured", "predicted", "given")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The forecast errors of a group of jobs.

    Args:
        jobs: their number.
        median_factor: median of the factors by which run times were off; high_factor: their 90 % quantile.
        bias: median of the ratios, above 1 if jobs take longer than forecast.
        trend: median factor of the later half of the jobs over that of the earlier half; None under TREND jobs.
        intervals: number of jobs with a prediction interval.
        inside: share of these whose run time was inside it; None without any.
        width: median of their widths, longest over shortest run time; None without any.
    """

    name: str
    jobs: int
    median_factor: float
    high_factor: float
    bias: float
    trend: float | None
    intervals: int = 0
    inside: float | None = None
    width: float | None = None


def source_of(job: Job) -> str:
    """Return the source of a job's profile: `default` or one of SOURCES; unknown sources count as given."""
    source = job.profile.provenance.source
    return source if source in SOURCES or has_default_profile(job) else SOURCES[-1]


def interval_width(within: tuple[float, float]) -> float:
    """Return the longest over the shortest run time of an interval, seconds; times under 1 ms count as 1 ms."""
    return error_ratio(*within)


def model_of(nodes: Iterable[str], cluster: Cluster) -> str:
    """Return the contention models of some nodes, `max-min` or `equal-share+max-min`; "" if no node is known.

    Args:
        nodes: their names.
        cluster: that has them.
    """
    nodes_here = (cluster.nodes[cluster.index[name]] for name in nodes if name in cluster.index)
    return "+".join(sorted({str(node.type.contention) for node in nodes_here}))


def accuracy(name: str, jobs: Sequence[ForecastOutcome]) -> Accuracy:
    """Return the accuracy of a group of jobs, at least one, the oldest first."""
    errors = [job.error for job in jobs]
    sizes = [factor(error) for error in errors]
    half, trend = len(sizes) // 2, None
    if len(sizes) >= TREND:
        trend = statistics.median(sizes[half:]) / statistics.median(sizes[:half])
    known_inside = [job.inside for job in jobs if job.inside is not None]
    widths = [interval_width(job.within) for job in jobs if job.within is not None]
    return Accuracy(
        name,
        len(jobs),
        statistics.median(sizes),
        quantile(sizes, 0.9),
        statistics.median(errors),
        trend,
        len(known_inside),
        sum(known_inside) / len(known_inside) if known_inside else None,
        statistics.median(widths) if widths else None,
    )


def quantile(values: Sequence[float], share: float) -> float:
    """Return the least value that is not below a share (0, 1] of the values."""
    return sorted(values)[math.ceil(round(share * len(values), 9)) - 1]


def known(jobs: Iterable[ForecastOutcome]) -> list[ForecastOutcome]:
    """Return the jobs with another profile than the default."""
    return [job for job in jobs if job.profile != DEFAULT_PROFILE.name]


def by(kind: str, jobs: Sequence[ForecastOutcome]) -> list[Accuracy]:
    """Return the accuracy of each group of jobs, the largest first. O(jobs log jobs).

    Args:
        kind: what to group by, one of KINDS.
        jobs: the oldest first.
    """
    groups: dict[str | int | None, list[ForecastOutcome]] = {}
    for job in jobs if kind == "profile" else known(jobs):
        name = getattr(job, _ATTRIBUTES.get(kind, kind))
        if name is not None or kind != "command":  # a profile that has a name of its own is not of one command
            groups.setdefault(name, []).append(job)
    accuracies = [accuracy(_named(name), members) for name, members in groups.items()]
    return sorted(accuracies, key=lambda group: (-group.jobs, group.name))


def _named(group: str | int | None) -> str:
    return user_name(group) if isinstance(group, int) else group or NOT_RECORDED


@dataclass(frozen=True, slots=True)
class CoverageCount:
    """Number of groups of a kind, of at least ENOUGH_JOBS jobs with intervals, with the promised share of jobs inside.

    Args:
        groups: their number; calibrated: of these, those with a share in CALIBRATED; below, above: the others.
    """

    kind: str
    groups: int
    calibrated: int
    below: int
    above: int


def calibration(jobs: Sequence[ForecastOutcome]) -> list[CoverageCount]:
    """Return how well the intervals hold in each kind of group that has one of enough jobs."""
    counts = []
    for kind in CALIBRATED_KINDS:
        shares = [row.inside for row in by(kind, jobs) if row.inside is not None and row.intervals >= ENOUGH_JOBS]
        below, above = sum(share < CALIBRATED[0] for share in shares), sum(share > CALIBRATED[1] for share in shares)
        if shares:
            counts.append(CoverageCount(kind, len(shares), len(shares) - below - above, below, above))
    return counts


@dataclass(frozen=True, slots=True)
class TurnaroundGain:
    """Gain of placing for the users of jobs that were handed over, means over the placed jobs.

    Args:
        jobs: their number.
        turnaround_s: as it was; plain_turnaround_s: in the resource manager's own order, see `own_order`.
        slowdown: bounded, as it was; plain_slowdown: in that order.
    """

    jobs: int
    turnaround_s: float
    plain_turnaround_s: float
    slowdown: float
    plain_slowdown: float


def turnaround_gain(jobs: Iterable[ForecastOutcome]) -> TurnaroundGain | None:
    """Return what placing gave; None if fewer than ENOUGH_JOBS were handed over and compared with their own order."""
    rows = [
        (job.turnaround_s, job.plain_turnaround_s, max(job.actual_s, TAU_S))
        for job in jobs
        if None not in (job.turnaround_s, job.plain_turnaround_s)
    ]
    if len(rows) < ENOUGH_JOBS:
        return None
    ours, plain, runs = (list(column) for column in zip(*rows, strict=True))
    slowdown, plain_slowdown = (
        statistics.mean(max(1.0, time / run) for time, run in zip(times, runs, strict=True)) for times in (ours, plain)
    )
    return TurnaroundGain(len(rows), statistics.mean(ours), statistics.mean(plain), slowdown, plain_slowdown)


def to_csv(jobs: Sequence[ForecastOutcome]) -> str:
    """Return all jobs as CSV with a header, times in seconds; unknown values are empty, names are sanitised."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for job in jobs:
        writer.writerow(_cell(getattr(job, _ATTRIBUTES.get(name, name))) for name in _COLUMNS)
    return out.getvalue()


def _cell(value: str | float | bool | None) -> str | float:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else clean(value) if isinstance(value, str) else value


def to_dict(jobs: Sequence[ForecastOutcome]) -> dict[str, Any]:
    """Return all groups and jobs as a mapping for JSON (schema pilotfish/accuracy/v1)."""
    recorded = known(jobs)
    return {
        "schema": "pilotfish/accuracy/v1",
        "all": asdict(accuracy("all", recorded)) if recorded else None,
        **{kind: [asdict(group) for group in by(kind, jobs)] for kind in KINDS},
        "level": LEVEL,
        "calibration": [asdict(count) for count in calibration(jobs)],
        "turnaround": asdict(gain) if (gain := turnaround_gain(jobs)) else None,
        "jobs": [asdict(job) | {"ratio": job.error, "inside": job.inside} for job in jobs],
    }
