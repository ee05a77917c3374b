"""A figure of the accuracy of forecasts: errors over time, and the median error of each profile.

Rule: an error is a factor, on a logarithmic scale: actual over forecast, or its inverse, whichever is larger. Errors
above the top of a panel are drawn at its top, and a note counts them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...daemon.report.accuracy import ForecastOutcome, by, factor, known
from ...formats.text import clean, count, fit, times
from .colours import SERIES, series_style
from .figure import Axis, Bars, Figure, Line, Panel, Points, Series, bars_panel, time_axis
from .scales import TimeScale, dated, time_unit

#: Largest factor that is drawn, and the marks of the axis: the first that reach the largest error.
_TOP = 100.0
_MARKS = ((1.0, 1.1, 1.25, 1.5), (1.0, 1.25, 1.5, 2.0, 3.0, 5.0), (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, _TOP))
#: Profiles that are shown, jobs of a running median, models, and single errors of a model.
_MOST, _WINDOW, _MODELS, _POINTS = 9, 20, 6, 2000
_LONGEST = 24


def forecast_accuracy(jobs: Sequence[ForecastOutcome]) -> Figure:
    """Return the running median of the errors of each contention model, and bars for the profiles with most jobs."""
    above = sum(factor(job.error) > _TOP for job in jobs)
    notes = [f"line: running median over {_WINDOW} jobs of actual / forecast, or its inverse where that is larger"]
    notes += [f"{count(above, 'job')} beyond {_TOP:g}x"] if above else []
    rows = [[_over_time(jobs)], [_profiles(jobs)]]
    height = 3.4 + 0.24 * min(len(by("profile", jobs)), _MOST)
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


def _profiles(jobs: Sequence[ForecastOutcome]) -> Panel:
    groups = by("profile", jobs)[:_MOST]
    values = [math.log(min(group.median_factor, _TOP)) for group in groups]
    words = [f"{times(group.median_factor)}, {count(group.jobs, 'job')}" for group in groups]
    names = [fit(clean(group.name), _LONGEST) for group in groups]
    bars = Bars(names, [SERIES[0]] * len(names), values, words)
    return bars_panel(bars, "median error by profile", 0.24, "" if groups else "no job has completed")
