"""The Gantt chart of a plan: jobs in lanes on each node, coloured by their slowdown, with the critical chain."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ...daemon.planning.plan_cache import released_by
from ...formats.hostlist import fold
from ...formats.text import clean, count, decimals, fit, seconds
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import Plan, PlannedJob, RunnerUp
from .colours import HEAT, INK, LEVELS
from .figure import Axis, Boxes, ColourBar, Fact, Figure, GanttRow, Line, Panel, Series, time_axis
from .scales import TimeScale, breaks_of

#: Idle nodes that still get a row, and jobs of a critical chain that is drawn as a line.
_IDLE_ROWS, _MOST_LINKS = 4, 400
_CHAIN = "critical chain"


def plan_gantt(plan: Plan, workflow: Workflow, cluster: Cluster, about: str = "") -> Figure:
    """Return the Gantt chart of a plan. O(jobs log jobs).

    Args:
        plan: what to draw.
        workflow: the jobs and their dependencies, for the critical chain.
        cluster: its nodes are the rows, in their order; many idle ones get no row.
        about: a line under the title.
    """
    chain = critical_chain(plan, workflow)
    on_node: dict[str, list[PlannedJob]] = {node.name: [] for node in cluster.nodes}
    for job in sorted(plan.jobs, key=lambda job: (job.start_time, job.finish_time)):
        for name in job.nodes:
            on_node.setdefault(name, []).append(job)
    idle = [name for name, jobs in on_node.items() if not jobs]
    idle = idle if _IDLE_ROWS < len(idle) < len(on_node) else []
    for name in idle:
        del on_node[name]
    high = hottest(plan)
    boxes, rows = _boxes(plan, on_node, {job.id for job in chain}, high)
    events = np.array([at for job in plan.jobs for at in (job.start_time, job.finish_time)])
    scale = TimeScale(0.0, plan.makespan if plan.makespan > 0 else 1.0, breaks=breaks_of(np.append(events, 0.0)))
    series: list[Series] = [boxes, *_links(chain, boxes)]
    lanes = rows[0].high if rows else 1.0
    panel = Panel(time_axis("time since the start", scale), Axis("", 0.0, lanes), series, rows=rows,
                  empty="" if plan.jobs else "no job")  # fmt: skip
    notes = [f"idle: {clean(fold(idle))}"] if idle else []
    if scale.breaks:
        cut = seconds(sum(end - begin for begin, end in scale.breaks))
        notes.append(f"//: the time axis is cut by {cut} in which no job starts or ends")
    title = f"{fit(clean(plan.workflow), 40)} on {fit(clean(plan.cluster), 20)}"
    height = 1.65 + 0.17 * len(notes) + min(6.5, max(0.5, 0.26 * lanes))
    bar = ColourBar("slowdown by contention", high, HEAT)
    return Figure(title, [[panel]], clean(about), notes, height=height, bar=bar)


def _boxes(
    plan: Plan, on_node: dict[str, list[PlannedJob]], chain: set[str], high: float
) -> tuple[Boxes, list[GanttRow]]:
    """The rectangles of all jobs, and the row of each node, the first at the top."""
    lanes_of = {name: lanes([(job.start_time, job.finish_time) for job in jobs]) for name, jobs in on_node.items()}
    top = float(sum(max(node_lanes, default=0) + 1 for node_lanes in lanes_of.values()))
    number = {job.id: i for i, job in enumerate(plan.jobs)}
    rows, table = [], []
    for name, jobs in on_node.items():
        rows.append(GanttRow(clean(name), top - max(lanes_of[name], default=0) - 1, top))
        for job, lane in zip(jobs, lanes_of[name], strict=True):
            heat = round(heat_of(job.contention_slowdown, high) * (LEVELS - 1))
            table.append((number[job.id], job.start_time, job.finish_time, top - lane - 1, top - lane, heat))
        top = rows[-1].low
    job_of, begins, ends, low, up, fill = np.array(table, float).reshape(-1, 6).T
    names = np.array([clean(job.id) for job in plan.jobs], object)
    strong = np.array([plan.jobs[int(i)].id in chain for i in job_of], bool)
    return Boxes(f"{_CHAIN} ({count(len(chain), 'job')})", begins, ends, low, up, fill.astype(int), HEAT,
                 job_of.astype(int), names, _facts(plan, chain), strong), rows  # fmt: skip


def _facts(plan: Plan, chain: set[str]) -> list[Fact]:
    places = decimals(plan.makespan)
    facts: dict[str, Callable[[PlannedJob], str]] = {
        "nodes": lambda job: clean(fold(job.nodes)),
        "start": lambda job: seconds(job.start_time, places),
        "finish": lambda job: seconds(job.finish_time, places),
        "run time": lambda job: seconds(job.finish_time - job.start_time, places),
        "run time alone": lambda job: seconds(job.isolated_run_time, places),
        "slowdown by contention": lambda job: f"{job.contention_slowdown:.2f}",
        "next best": lambda job: _next_best(job.why, places),
        _CHAIN: lambda job: "yes" if job.id in chain else "no",
    }
    return [Fact(title, np.array([of(job) for job in plan.jobs], object)) for title, of in facts.items()]


def _next_best(runner_up: RunnerUp | None, places: int) -> str:
    if runner_up is None:
        return "-"
    return clean(fold(runner_up.nodes)) + (
        "" if runner_up.cost_s is None else f", +{seconds(max(0.0, runner_up.cost_s), places)}"
    )


def _links(chain: Sequence[PlannedJob], boxes: Boxes) -> list[Line]:
    """A line from the end of each job of the critical chain to the start of the next on another lane."""
    if not 1 < len(chain) <= _MOST_LINKS:
        return []
    place: dict[str, float] = {}
    assert boxes.strong is not None
    for i in np.flatnonzero(boxes.strong).tolist():
        place.setdefault(str(boxes.names[boxes.job[i]]), float(boxes.low[i] + boxes.high[i]) / 2)
    x, y = [], []
    for job, successor in pairwise(chain):
        begin, end = place[clean(job.id)], place[clean(successor.id)]
        if begin != end:
            x += [job.finish_time, successor.start_time, math.nan]
            y += [begin, end, math.nan]
    return [Line("", INK, np.array(x), np.array(y))] if x else []


def hottest(plan: Plan) -> float:
    """Return the top of the scale of slowdowns: the largest, rounded up to a round number, at least 1.5."""
    largest = max((job.contention_slowdown for job in plan.jobs), default=1.0)
    step = 0.5 if largest < 4 else 1 if largest < 10 else 10 ** math.floor(math.log10(largest))
    return max(1.5, math.ceil(largest / step - 1e-9) * step)


def heat_of(slowdown: float, high: float) -> float:
    """Return the place of a slowdown on a logarithmic scale: 0 = as fast as alone, 1 = `high`."""
    return min(1.0, max(0.0, math.log(max(slowdown, 1.0)) / math.log(high)))


def lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return the lowest free lane for each (start, finish), given in order of start. O(n log n)."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lane_numbers = []
    for start, finish in spans:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (finish, lane))
        lane_numbers.append(lane)
    return lane_numbers


def critical_chain(plan: Plan, workflow: Workflow) -> tuple[PlannedJob, ...]:
    """Return the chain of jobs that sets the makespan, first job first. O((jobs + edges) log jobs).

    Starting at the job that finishes last, each step goes back to the job that delayed the start: the one that
    freed the nodes, else the predecessor that finished last.
    """
    planned = {job.id: job for job in plan.jobs}
    after = {job.id: job.after for job in workflow.jobs}
    released = released_by(plan, workflow)
    chain: list[PlannedJob] = []
    job = max(plan.jobs, key=lambda job: job.finish_time, default=None)
    while job is not None:
        chain.append(job)
        before = released.get(job.id) or tuple(planned[name] for name in after.get(job.id, ()) if name in planned)
        job = max(before, key=lambda other: other.finish_time, default=None)
    return tuple(reversed(chain))
