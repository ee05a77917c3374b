"""A figure of the accuracy of forecasts: errors over time, actual against forecast, and the median error by profile.

Rule: an error is a factor, on a logarithmic scale: actual over forecast, or its inverse, whichever is larger. Errors
above the top of a panel are drawn at its top, and a note counts them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...daemon.report.accuracy import ForecastOutcome, by, factor, known
from ...formats.text import clean, count, fit, percent, times
from ...simulate.model.plan import LEVEL
from .colours import GRID, QUIET, SERIES, series_style
from .figure import Axis, Bars, Figure, Line, Panel, Points, Series, Strokes, bars_panel, time_axis
from .scales import TimeScale, dated, time_unit

#: Largest factor that is drawn, and the marks of the axis: the first that reach the largest error.
_TOP = 100.0
_MARKS = ((1.0, 1.1, 1.25, 1.5), (1.0, 1.25, 1.5, 2.0, 3.0, 5.0), (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, _TOP))
#: Profiles that are shown, jobs of a running median, models, and single errors of a model.
_MOST, _WINDOW, _MODELS, _POINTS = 9, 20, 6, 2000
_LONGEST = 24
#: Profiles of their own colour in a scatter, and jobs that are drawn with their intervals.
_COLOURED, _INTERVALS = 6, 500
#: Shorter spans are drawn as this long, seconds; marks of the axes, and how many of them fit.
_SHORTEST_S, _STEPS, _MOST_MARKS = 1e-3, [float(f"{digit}e{power}") for power in range(-3, 9) for digit in (1, 2, 5)], 8


class RunTime(NamedTuple):
    """A forecast of a run time and what came true, seconds; `within`: its prediction interval."""

    profile: str
    forecast_s: float
    actual_s: float
    within: tuple[float, float] | None = None


def forecast_accuracy(jobs: Sequence[ForecastOutcome]) -> Figure:
    """Return the running median of the errors of each contention model, and bars for the profiles with most jobs."""
    above = sum(factor(job.error) > _TOP for job in jobs)
    notes = [f"line: running median over {_WINDOW} jobs of actual / forecast, or its inverse where that is larger"]
    notes += [f"{count(above, 'job')} beyond {_TOP:g}x"] if above else []
    runs = [RunTime(job.profile or "", job.forecast_s, job.actual_s, job.within) for job in known(jobs)]
    rows = [[_over_time(jobs)], [scatter(runs, 3.0)], [_profiles(jobs)]]
    height = 6.8 + 0.24 * min(len(by("profile", jobs)), _MOST)
    return Figure("Forecast accuracy", rows, f"{count(len(jobs), 'completed job')}", notes, shared=False, height=height)


def _over_time(jobs: Sequence[ForecastOutcome]) -> Panel:
    seen = known(jobs)
    begin, end = (seen[0].time, seen[-1].time) if seen else (0.0, 0.0)
    span = max(end - begin, time_unit(end - begin).size)
    scale = TimeScale(0.0, span, dated(0.0, span, begin) if seen else None)
    series: list[Series] = []
    for number, model in enumerate(by("model", seen)[:_MODELS]):
        mine = [job for job in seen if (job.model or model.name) == model.name]
        colour, dash = series_style(number)
        x = np.array([job.time - begin for job in mine])
        sizes = np.minimum([factor(job.error) for job in mine], _TOP)
        series.append(Points(f"{clean(model.name)}, single jobs", colour, x[-_POINTS:], sizes[-_POINTS:]))
        medians = np.array([np.median(sizes[max(0, i + 1 - _WINDOW) : i + 1]) for i in range(len(sizes))])
        series.append(Line(f"{clean(model.name)}, median", colour, x, medians, dash, stairs=True))
    worst = max((float(each.y.max()) for each in series if isinstance(each, Points)), default=1.0)
    marks = next((marks for marks in _MARKS if marks[-1] >= worst), _MARKS[-1])
    shown = [(mark, f"{mark:g}x") for mark in marks]
    factors = Axis("run times off by", 1.0, marks[-1] * 1.05, log=True, marks=shown)
    return Panel(
        time_axis("time", scale), factors, series, height=2.0,
        empty="" if seen else "no completed job had a forecast",
    )  # fmt: skip


def scatter(runs: Sequence[RunTime], height: float) -> Panel:
    """Return actual against forecast run times, by profile, with intervals of the latest and a line where they agree.

    Args:
        runs: the oldest first.
        height: share of the figure's height.
    """
    names = [name for name, _ in Counter(run.profile for run in runs).most_common(_COLOURED)]
    spans = [[max(span, _SHORTEST_S) for span in (run.forecast_s, run.actual_s)] for run in runs]
    least, most = min((min(both) for both in spans), default=1.0), max((max(both) for both in spans), default=5.0)
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
        mine = [both for run, both in zip(runs, spans, strict=True) if (run.profile in names) == (name is not None)
                and name in (None, run.profile)][-_POINTS:]  # fmt: skip
        label = "other profiles" if name is None else fit(clean(name), _LONGEST) or "no profile"
        if mine:
            series.append(Points(label, series_style(number)[0], *np.array(mine).T))
    inner = [step for step in _STEPS if low <= step <= high]
    inner = inner if len(inner) <= _MOST_MARKS else [step for step in inner if math.log10(step).is_integer()]
    marks = [(step, f"{step:g} s" if step < 1e5 else f"{step:.0e} s") for step in inner]
    x, y = (Axis(f"{what} run time", low, high, log=True, marks=marks) for what in ("forecast", "actual"))
    return Panel(x, y, series, height=height, empty="" if runs else "no completed job had a forecast")


def _profiles(jobs: Sequence[ForecastOutcome]) -> Panel:
    groups = by("profile", jobs)[:_MOST]
    values = [math.log(min(group.median_factor, _TOP)) for group in groups]
    words = [f"{times(group.median_factor)}, {count(group.jobs, 'job')}" for group in groups]
    names = [fit(clean(group.name), _LONGEST) for group in groups]
    bars = Bars(names, [SERIES[0]] * len(names), values, words)
    return bars_panel(bars, "median error by profile", 0.24, "" if groups else "no job has completed")
