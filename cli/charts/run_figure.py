"""The picture of a run: forecast and actual Gantt chart above each other on each node, and a scatter of run times.

Rule: both charts have one time axis, from the first start. A job that never started has its forecast only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ...daemon.report.accuracy import JobOutcome, RunOutcome, inside
from ...formats.hostlist import fold
from ...formats.text import clean, decimals, fit, percent, seconds
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import LEVEL
from ...simulate.model.snapshot import JobState
from .colours import JOBS, LIMIT
from .figure import Area, Axis, Boxes, Fact, Figure, Panel, Row, Series, time_axis
from .forecast_figure import RunTime, scatter
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
Span = tuple[float, float, int]


def run_report(outcome: RunOutcome, workflow: Workflow, cluster: Cluster, about: str = "") -> Figure:
    """Return forecast and actual times of a run. O(jobs log jobs).

    Args:
        outcome: what was forecast, and what came true.
        workflow: its jobs, for their profiles.
        cluster: its nodes are the rows, in their order; those that were neither planned nor used get none.
        about: a line under the title.
    """
    gantt = _gantt(outcome, cluster)
    profiles = {job.id: job.profile.name for job in workflow.jobs}
    runs = [
        RunTime(profiles.get(job.planned.id) or job.planned.id, job.forecast_run_time, job.run_time, _within(job))
        for job in outcome.jobs
        if job.state is JobState.COMPLETED and job.run_time is not None
    ]
    title = f"{fit(clean(outcome.id), 40)}: forecast {seconds(outcome.plan.makespan)}, took {seconds(outcome.makespan)}"
    notes = ["on each node: the forecast above, what came true below"]
    tall = min(6.5, max(1.0, 0.2 * gantt.y_range[1]))
    rows = [[replace(gantt, height=tall)], [scatter(runs, 3.0)]]
    return Figure(title, rows, about, notes, shared=False, height=tall + 4.4)


def _within(job: JobOutcome) -> tuple[float, float] | None:
    within = job.planned.within
    return (within.shortest, within.longest) if within is not None else None


def _gantt(outcome: RunOutcome, cluster: Cluster) -> Panel:
    numbers = range(len(outcome.jobs))
    said, ran = dict[str, list[Span]](), dict[str, list[Span]]()
    for number in numbers:
        job = outcome.jobs[number]
        for name in job.planned.nodes:
            said.setdefault(name, []).append((job.planned.start_time, job.planned.finish_time, number))
        if job.start_time is not None and job.finish_time is not None:
            for name in job.nodes:
                ran.setdefault(name, []).append((job.start_time, job.finish_time, number))
    rows, table, top = list[Row](), list[tuple[float, ...]](), 0.0
    for name in [node.name for node in cluster.nodes if node.name in said or node.name in ran]:
        begin = top
        for spans, fills in ((said.get(name, []), None), (ran.get(name, []), [_fill(job) for job in outcome.jobs])):
            spans.sort()
            lane_of = lanes([(start, finish) for start, finish, _ in spans])
            for (start, finish, number), lane in zip(spans, lane_of, strict=True):
                table.append((start, finish, top - lane - 1, top - lane, 0 if fills is None else fills[number], number))
            top -= max(lane_of, default=0) + 1
        rows.append(Row(clean(name), top, begin))
    left, right, low, high, fill, job_of = np.array(table, float).reshape(-1, 6).T
    rows = [Row(row.name, row.low - top, row.high - top) for row in rows]
    names = np.array([clean(job.planned.id) for job in outcome.jobs], object)
    colours = [colour for _, colour in _FILLS]
    boxes = Boxes("", left, right, low - top, high - top, fill.astype(int), colours, job_of.astype(int), names,
                  _facts(outcome.jobs))  # fmt: skip
    shown = [_FILLS[number] for number in sorted(set(fill.astype(int).tolist()))]
    series: list[Series] = [boxes, *(_key(label, colour) for label, colour in shown)]
    end = max([outcome.plan.makespan, outcome.makespan, *right.tolist()], default=0.0)
    axis = time_axis("time since the start", TimeScale(0.0, end if end > 0 else 1.0))
    return Panel(axis, Axis("", 0.0, max(-top, 1.0)), series, rows=rows, empty="" if len(boxes) else "no job")


def _key(label: str, colour: str) -> Area:
    """Return an entry of the legend alone."""
    nothing = np.zeros(0)
    return Area(label, colour, nothing, nothing, nothing)


def _fill(job: JobOutcome) -> int:
    """Return the index into _FILLS of a job that has run."""
    if job.error is None or job.run_time is None:
        return 4
    within = _within(job)
    close = inside(job.run_time, within) if within else 1 / _CLOSE <= job.error <= _CLOSE
    return 1 if close else 2 if job.error > 1 else 3


def _facts(jobs: Iterable[JobOutcome]) -> list[Fact]:
    jobs = list(jobs)
    places = decimals(max((job.planned.finish_time for job in jobs), default=0.0))

    def spell(value: float | None) -> str:
        return "-" if value is None or not math.isfinite(value) else seconds(value, places)

    within = [_within(job) for job in jobs]
    facts = {
        "state": [str(job.state) for job in jobs],
        "nodes": [clean(fold(job.nodes or job.planned.nodes)) for job in jobs],
        "run time": [spell(job.run_time) for job in jobs],
        "forecast": [spell(job.forecast_run_time) for job in jobs],
        f"{percent(LEVEL)} interval": ["-" if bounds is None else " to ".join(map(spell, bounds)) for bounds in within],
        "start": [f"{spell(job.start_time)}, forecast {spell(job.planned.start_time)}" for job in jobs],
        "end": [f"{spell(job.finish_time)}, forecast {spell(job.planned.finish_time)}" for job in jobs],
    }
    return [Fact(title, np.array(values, object)) for title, values in facts.items()]
