"""What every Gantt chart shows, before anything is drawn: lanes, ticks, the critical chain and the colour
scale.

Rule: geometry in seconds and lanes only; terminal, SVG and PNG draw the same chart from it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ...simulate.job import Workflow
from ...simulate.plan import Plan, PlannedJob
from ...simulate.platform import Cluster
from ..sequence import released_by

_STEPS = (1, 2, 5)
_IDLE_ROWS = 4
_CLOCK_STEPS = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True)
class Bar:
    """One job on one node: `lane` counts from 0 at the top of the node's row."""

    job: PlannedJob
    lane: int
    critical: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One node: its bars by start time, and how many lanes they need (at least 1)."""

    node: str
    bars: tuple[Bar, ...]
    lanes: int


@dataclass(frozen=True)
class Chart:
    """A plan, ready to be drawn. `chain` is the critical chain, first job first; `idle` are nodes without a row."""

    plan: Plan
    rows: tuple[Row, ...]
    chain: tuple[PlannedJob, ...]
    idle: tuple[str, ...] = ()

    @cached_property
    def end(self) -> float:
        """Right end of the time axis in seconds, > 0."""
        return self.plan.makespan if self.plan.makespan > 0 else 1.0

    @cached_property
    def hottest(self) -> float:
        """Top of the slowdown scale: the largest slowdown rounded up to a nice number, at least 1.5."""
        largest = max((job.contention_slowdown for job in self.plan.jobs), default=1.0)
        step = 0.5 if largest < 4 else 1 if largest < 10 else 10 ** math.floor(math.log10(largest))
        return max(1.5, math.ceil(largest / step - 1e-9) * step)

    def heat(self, slowdown: float) -> float:
        """Place of a slowdown on the scale: 0 = as fast as alone, 1 = `hottest`; logarithmic."""
        return min(1.0, max(0.0, math.log(max(slowdown, 1.0)) / math.log(self.hottest)))

    def colour(self, slowdown: float) -> tuple[int, int, int]:
        """Colour of a slowdown as red, green, blue in 0..255."""
        return colour_at(self.heat(slowdown))


def build(plan: Plan, workflow: Workflow, cluster: Cluster) -> Chart:
    """Lay out a plan on the nodes of `cluster`, in file order; many idle ones get no rows. O(jobs log jobs)."""
    chain = critical_chain(plan, workflow)
    critical = {job.id for job in chain}
    on_node: dict[str, list[PlannedJob]] = {node.name: [] for node in cluster.nodes}
    for job in plan.jobs:
        for name in job.nodes:
            on_node.setdefault(name, []).append(job)
    idle = tuple(name for name, jobs in on_node.items() if not jobs)
    idle = idle if _IDLE_ROWS < len(idle) < len(on_node) else ()
    for name in idle:
        del on_node[name]
    rows = []
    for name, jobs in on_node.items():
        jobs.sort(key=lambda job: (job.start_time, job.finish_time))
        lanes = stack(jobs)
        bars = tuple(Bar(job, lane, job.id in critical) for job, lane in zip(jobs, lanes, strict=True))
        rows.append(Row(name, bars, max(lanes, default=0) + 1))
    return Chart(plan, tuple(rows), chain, idle)


def stack(jobs: Sequence[PlannedJob]) -> list[int]:
    """Lowest free lane for each job, given jobs by start time. As many lanes as jobs overlap. O(n log n)."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lanes = []
    for job in jobs:
        while busy and busy[0][0] <= job.start_time:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (job.finish_time, lane))
        lanes.append(lane)
    return lanes


def critical_chain(plan: Plan, workflow: Workflow) -> tuple[PlannedJob, ...]:
    """Return the chain of jobs that sets the makespan, first job first.

    From the job that ends last, step back to what let each start: the job whose end it waited for on its
    nodes, else the predecessor that ended last. O((jobs + edges) log jobs).
    """
    planned = {job.id: job for job in plan.jobs}
    after = {job.id: job.after for job in workflow.jobs}
    released = released_by(plan, workflow)
    chain: list[PlannedJob] = []
    job = max(plan.jobs, key=lambda job: job.finish_time, default=None)
    while job is not None:
        chain.append(job)
        before = released.get(job.id) or tuple(
            planned[name] for name in after.get(job.id, ()) if name in planned
        )
        job = max(before, key=lambda other: other.finish_time, default=None)
    return tuple(reversed(chain))


def ticks(end: float, most: int) -> list[tuple[float, str]]:
    """At most `most` + 1 round times from 0 to `end`, with their labels; minutes and hours once they fit
    better.

    Args:
        end: length of the axis in seconds, > 0.
        most: how many intervals there is room for, >= 1.
    """
    step = _step(end / most)
    clock = step >= 60
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    times = [i * step for i in range(math.floor(end / step * (1 + 1e-9)) + 1)]
    return [(t, _clock(t, step) if clock else f"{t:.{places}f} s" if t else "0") for t in times]


def _step(least: float) -> float:
    if least > _STEPS[-1] * 10:
        days = math.ceil(least / 86400)
        return next((step for step in _CLOCK_STEPS if step >= least), days * 86400)
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (*_STEPS, 10) if step * power >= least * (1 - 1e-9))


def _clock(t: float, step: float) -> str:
    if not t:
        return "0"
    if step >= 86400:
        return f"{t / 86400:.0f} d"
    hours, rest = divmod(round(t), 3600)
    minutes = rest // 60
    return (f"{hours} h" if not minutes else f"{hours}:{minutes:02d} h") if hours else f"{minutes} min"


# Cool to hot; blue, yellow and red stay apart for every common kind of colour blindness.
_SCALE = (
    (0.0, (86, 156, 198)),
    (0.35, (143, 195, 168)),
    (0.6, (242, 200, 92)),
    (0.8, (231, 125, 72)),
    (1.0, (190, 46, 62)),
)


def colour_at(heat: float) -> tuple[int, int, int]:
    """Colour of a place on the scale 0..1."""
    for (low, cold), (high, warm) in pairwise(_SCALE):
        if heat <= high:
            share = (heat - low) / (high - low)
            red, green, blue = (round(a + (b - a) * share) for a, b in zip(cold, warm, strict=True))
            return red, green, blue
    return _SCALE[-1][1]


def ink_on(colour: tuple[int, int, int]) -> str:
    """`black` or `white`, whichever is easier to read on `colour`."""
    red, green, blue = colour
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 128 else "white"
