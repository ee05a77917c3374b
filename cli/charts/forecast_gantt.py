"""Forecast and actual Gantt chart of jobs, above each other on each node.

Rule: both have one time axis. A job that never started has its forecast only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ...daemon.report.accuracy import JobOutcome
from ...daemon.state.recorded_outcome import inside
from ...formats.hostlist import fold
from ...formats.text import clean, decimals, percent, seconds
from ...simulate.model.plan import LEVEL
from .colours import JOBS, LIMIT
from .figure import Area, Axis, Boxes, Fact, GanttRow, Panel, Series, time_axis
from .plan_gantt import lanes
from .scales import TimeScale

#: Colours of rectangles, and what they say.
_FILLS = (
    ("forecast", "#c5cdd6"),
    ("as forecast", JOBS[2]),
    ("longer", JOBS[5]),
    ("shorter", JOBS[0]),
    ("did not complete", LIMIT),
)
#: Factor by which a run time without an interval may be off and still be as forecast.
_CLOSE = 1.1
#: Remark on the chart.
NOTE = "on each node: the forecast above, what came true below"
Span = tuple[float, float, int]


def gantt(jobs: Sequence[JobOutcome], nodes: Iterable[str], scale: TimeScale) -> Panel:
    """Return forecast and actual times of jobs above each other on each node. O(jobs log jobs).

    Args:
        jobs: times from the same moment.
        nodes: the rows in their order; those that were neither planned nor used get none.
        scale: of the time axis.
    """
    forecasts, actual = dict[str, list[Span]](), dict[str, list[Span]]()
    for number, job in enumerate(jobs):
        for name in job.planned.nodes:
            forecasts.setdefault(name, []).append((job.planned.start_time, job.planned.finish_time, number))
        if job.start_time is not None and job.finish_time is not None:
            for name in job.nodes:
                actual.setdefault(name, []).append((job.start_time, job.finish_time, number))
    rows, table, top = list[GanttRow](), list[tuple[float, ...]](), 0.0
    for name in [name for name in nodes if name in forecasts or name in actual]:
        begin = top
        for spans, fills in ((forecasts.get(name, []), None), (actual.get(name, []), [_fill(job) for job in jobs])):
            spans.sort()
            lane_of = lanes([(start, finish) for start, finish, _ in spans])
            for (start, finish, number), lane in zip(spans, lane_of, strict=True):
                table.append((start, finish, top - lane - 1, top - lane, 0 if fills is None else fills[number], number))
            top -= max(lane_of, default=0) + 1
        rows.append(GanttRow(clean(name), top, begin))
    begins, ends, low, high, fill, job_of = np.array(table, float).reshape(-1, 6).T
    rows = [GanttRow(row.name, row.low - top, row.high - top) for row in rows]
    names = np.array([clean(job.planned.id) for job in jobs], object)
    colours = [colour for _, colour in _FILLS]
    boxes = Boxes("", begins, ends, low - top, high - top, fill.astype(int), colours, job_of.astype(int), names,
                  _facts(jobs))  # fmt: skip
    shown = [_FILLS[number] for number in sorted(set(fill.astype(int).tolist()))]
    series: list[Series] = [boxes, *(_key(label, colour) for label, colour in shown)]
    axis, lanes_axis = time_axis("time since the start", scale), Axis("", 0.0, max(-top, 1.0))
    tall = min(6.5, max(1.0, -0.2 * top))
    return Panel(axis, lanes_axis, series, height=tall, rows=rows, empty="" if len(boxes) else "no job")


def _key(label: str, colour: str) -> Area:
    """Return an entry of the legend alone."""
    nothing = np.zeros(0)
    return Area(label, colour, nothing, nothing, nothing)


def _fill(job: JobOutcome) -> int:
    """Return the index into _FILLS of a job that has run."""
    if job.error is None or job.run_time is None:
        return 4
    bounds = job.forecast_within
    close = inside(job.run_time, bounds) if bounds else 1 / _CLOSE <= job.error <= _CLOSE
    return 1 if close else 2 if job.error > 1 else 3


def _facts(jobs: Sequence[JobOutcome]) -> list[Fact]:
    places = decimals(max((job.planned.finish_time for job in jobs), default=0.0))

    def spell(value: float | None) -> str:
        return "-" if value is None or not math.isfinite(value) else seconds(value, places)

    facts = {
        "state": [str(job.state) for job in jobs],
        "nodes": [clean(fold(job.nodes or job.planned.nodes)) for job in jobs],
        "run time": [spell(job.run_time) for job in jobs],
        "forecast": [spell(job.forecast_run_time) for job in jobs],
        f"{percent(LEVEL)} interval": [" to ".join(map(spell, job.forecast_within or (None,))) for job in jobs],
        "start": [f"{spell(job.start_time)}, forecast {spell(job.planned.start_time)}" for job in jobs],
        "end": [f"{spell(job.finish_time)}, forecast {spell(job.planned.finish_time)}" for job in jobs],
    }
    return [Fact(title, np.array(values, object)) for title, values in facts.items()]
