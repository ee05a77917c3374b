"""Pictures of forecasts and outcomes: of all jobs of a daemon, and of one run.

Each picture has a Gantt chart of forecast and actual times, and a scatter plot of actual against forecast run times.
The picture of all jobs also has the errors over time and by profile.

Rule: an error is a factor, on a logarithmic scale: actual over forecast, or its inverse, whichever is larger. Errors
above the top of a panel are drawn at its top, and a note counts them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...daemon.report.accuracy import Accuracy, JobOutcome, RunOutcome, by, factor, known
from ...daemon.state.recorded_outcome import ForecastOutcome
from ...formats.text import clean, count, fit, percent, seconds, times
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import LEVEL, PlannedJob, PredictionInterval
from ...simulate.model.snapshot import JobState
from .colours import GRID, QUIET, SERIES, series_style
from .figure import Axis, Bars, Figure, Line, Panel, Points, Series, Strokes, bars_panel, time_axis
from .forecast_gantt import NOTE, gantt
from .scales import TimeScale, dated, time_unit

#: Largest factor that is drawn, and the marks of the axis: the first that reach the largest error.
_TOP = 100.0
_MARKS = ((1.0, 1.1, 1.25, 1.5), (1.0, 1.25, 1.5, 2.0, 3.0, 5.0), (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, _TOP))
#: Profiles that are shown, jobs of a running median, models, and single errors of a model.
_MOST, _WINDOW, _MODELS, _POINTS = 30, 20, 6, 2000
_LONGEST = 24
#: Profiles of their own colour in a scatter, and jobs that are drawn with their intervals.
_COLOURED, _INTERVALS = 6, 500
#: Latest jobs in the Gantt chart.
_DRAWN = 200
#: Shorter spans are drawn as this long, seconds; marks of the axes, and how many of them fit.
_SHORTEST_S, _STEPS, _MOST_MARKS = 1e-3, [float(f"{digit}e{power}") for power in range(-3, 9) for digit in (1, 2, 5)], 8


class RunTime(NamedTuple):
    """A forecast of a run time and what came true, seconds; `within`: its prediction interval."""

    profile: str
    forecast_s: float
    actual_s: float
    within: tuple[float, float] | None = None


def forecast_accuracy(jobs: Sequence[ForecastOutcome]) -> Figure:
    """Return all jobs' errors over time and by profile, actual against forecast, and when the latest ran.

    Args:
        jobs: the oldest first.
    """
    above = sum(factor(job.error) > _TOP for job in jobs)
    notes = [f"line: running median over {_WINDOW} jobs of actual / forecast, or its inverse where that is larger"]
    notes += [f"{count(above, 'job')} beyond {_TOP:g}x"] if above else []
    runs = [RunTime(job.profile or "", job.forecast_s, job.actual_s, job.within) for job in known(jobs)]
    latest = [job for job in jobs if job.node][-_DRAWN:]
    chart = _latest(latest)
    notes += [f"{NOTE}, of the latest {count(len(latest), 'job')}"] if latest else []
    rows = [[_over_time(jobs)], [scatter(runs, 3.0)], [chart], [_profiles(jobs)]]
    height = 7.4 + chart.height + 0.24 * min(len(by("profile", jobs)), _MOST)
    return Figure("Forecast accuracy", rows, f"{count(len(jobs), 'completed job')}", notes, shared=False, height=height)


def _latest(jobs: Sequence[ForecastOutcome]) -> Panel:
    """Return the Gantt chart of jobs whose nodes are known."""
    starts = [(job.forecast_start_time or job.time - job.actual_s, job.time - job.actual_s) for job in jobs]
    begin = min((min(both) for both in starts), default=0.0)
    outcomes = [
        _outcome(job, forecast_start - begin, actual_start - begin)
        for job, (forecast_start, actual_start) in zip(jobs, starts, strict=True)
    ]
    end = max((max(job.planned.finish_time, job.finish_time or 0.0) for job in outcomes), default=1.0)
    scale = TimeScale(0.0, max(end, 1e-3), dated(0.0, end, begin))
    return gantt(outcomes, sorted({name for job in outcomes for name in job.nodes}), scale)


def _outcome(job: ForecastOutcome, forecast_start: float, actual_start: float) -> JobOutcome:
    """Return a completed job; `said` and `ran`: when it was to start, and did."""
    nodes, end = tuple(job.node.split(",")), forecast_start + job.forecast_s
    bounds = job.within and PredictionInterval(
        forecast_start + job.within[0], forecast_start + job.within[1], *job.within
    )
    planned = PlannedJob(job.key, nodes, forecast_start, end, job.forecast_s, 1.0, within=bounds)
    return JobOutcome(planned, JobState.COMPLETED, nodes, actual_start, actual_start + job.actual_s, None, None, "")


def run_report(outcome: RunOutcome, workflow: Workflow, cluster: Cluster, about: str = "") -> Figure:
    """Return forecast and actual times of a run. O(jobs log jobs).

    Args:
        outcome: what was forecast, and what came true.
        workflow: its jobs, for their profiles.
        cluster: its nodes are the rows, in their order; those that were neither planned nor used get none.
        about: a line under the title.
    """
    end = max([outcome.plan.makespan, outcome.makespan, *(job.planned.finish_time for job in outcome.jobs)])
    chart = gantt(outcome.jobs, [node.name for node in cluster.nodes], TimeScale(0.0, end if end > 0 else 1.0))
    profiles = {job.id: job.profile.name for job in workflow.jobs}
    runs = [
        RunTime(
            profiles.get(job.planned.id) or job.planned.id, job.forecast_run_time, job.run_time, job.forecast_within
        )
        for job in outcome.jobs
        if job.state is JobState.COMPLETED and job.run_time is not None
    ]
    title = f"{fit(clean(outcome.id), 40)}: forecast {seconds(outcome.plan.makespan)}, took {seconds(outcome.makespan)}"
    rows = [[chart], [scatter(runs, 3.0)]]
    return Figure(title, rows, about, [NOTE], shared=False, height=chart.height + 4.4)


def _over_time(jobs: Sequence[ForecastOutcome]) -> Panel:
    known_jobs = known(jobs)
    begin, end = (known_jobs[0].time, known_jobs[-1].time) if known_jobs else (0.0, 0.0)
    span = max(end - begin, time_unit(end - begin).size)
    scale = TimeScale(0.0, span, dated(0.0, span, begin) if known_jobs else None)
    series: list[Series] = []
    for number, model in enumerate(by("model", known_jobs)[:_MODELS]):
        of_model = [job for job in known_jobs if (job.model or model.name) == model.name]
        colour, dash = series_style(number)
        x = np.array([job.time - begin for job in of_model])
        sizes = np.minimum([factor(job.error) for job in of_model], _TOP)
        series.append(Points(f"{clean(model.name)}, single jobs", colour, x[-_POINTS:], sizes[-_POINTS:]))
        medians = np.array([np.median(sizes[max(0, i + 1 - _WINDOW) : i + 1]) for i in range(len(sizes))])
        series.append(Line(f"{clean(model.name)}, median", colour, x, medians, dash, stairs=True))
    worst = max((float(item.y.max()) for item in series if isinstance(item, Points)), default=1.0)
    marks = next((marks for marks in _MARKS if marks[-1] >= worst), _MARKS[-1])
    shown = [(mark, f"{mark:g}x") for mark in marks]
    factors = Axis("run times off by", 1.0, marks[-1] * 1.05, log=True, marks=shown)
    return Panel(
        time_axis("time", scale), factors, series, height=2.0,
        empty="" if known_jobs else "no completed job had a forecast",
    )  # fmt: skip


def scatter(runs: Sequence[RunTime], height: float) -> Panel:
    """Return actual against forecast run times, by profile, with intervals of the latest and a line where they agree.

    Args:
        runs: the oldest first.
        height: share of the figure's height.
    """
    names = [name for name, _ in Counter(run.profile for run in runs).most_common(_COLOURED)]
    spans = [[max(span, _SHORTEST_S) for span in (run.forecast_s, run.actual_s)] for run in runs]
    least, most = min((min(pair) for pair in spans), default=1.0), max((max(pair) for pair in spans), default=5.0)
    low = max((step for step in _STEPS if step <= least * (1 + 1e-9)), default=_STEPS[0])
    high = min((step for step in _STEPS if step >= most and step > low), default=2 * most)
    series: list[Series] = []
    bounds = [
        (max(run.forecast_s, low), *(min(max(bound, low), high) for bound in run.within))
        for run in runs[-_INTERVALS:]
        if run.within
    ]
    if bounds:
        series.append(Strokes(f"{percent(LEVEL)} interval", GRID, *np.array(bounds).T))
    series.append(Line("actual = forecast", QUIET, np.array([low, high]), np.array([low, high]), 1))
    for number, name in enumerate([*names, None]):
        pairs = [pair for run, pair in zip(runs, spans, strict=True) if (run.profile in names) == (name is not None)
                and name in (None, run.profile)][-_POINTS:]  # fmt: skip
        label = "other profiles" if name is None else fit(clean(name), _LONGEST) or "no profile"
        if pairs:
            series.append(Points(label, series_style(number)[0], *np.array(pairs).T))
    inner = [step for step in _STEPS if low <= step <= high]
    inner = inner if len(inner) <= _MOST_MARKS else [step for step in inner if math.log10(step).is_integer()]
    marks = [(step, f"{step:g} s" if step < 1e5 else f"{step:.0e} s") for step in inner]
    x, y = (Axis(f"{kind} run time", low, high, log=True, marks=marks) for kind in ("forecast", "actual"))
    return Panel(x, y, series, height=height, empty="" if runs else "no completed job had a forecast")


def _profiles(jobs: Sequence[ForecastOutcome]) -> Panel:
    groups = by("profile", jobs)[:_MOST]
    values = [math.log(min(group.median_factor, _TOP)) for group in groups]
    words = [_spelled(group) for group in groups]
    names = [fit(clean(group.name), _LONGEST) for group in groups]
    bars = Bars(names, [SERIES[0]] * len(names), values, words)
    return bars_panel(bars, "median error by profile", 0.24, "" if groups else "no job has completed")


def _spelled(group: Accuracy) -> str:
    words = f"{times(group.median_factor)}, {count(group.jobs, 'job')}"
    if group.inside is not None and group.width is not None:
        words += f", {percent(group.inside)} inside intervals {times(group.width)} wide"
    return words
