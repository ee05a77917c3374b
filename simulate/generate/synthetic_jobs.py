"""The jobs of a model of a site: submissions in sessions of its users, and a record of when they ran and where.

Rule: the same model, size and seed give the same jobs. A user submits several like jobs in a session; sessions follow
the hours of the day and the days of the week. Run times are scaled so that the work is the load of the model.
The record is not Slurm's. Where jobs get whole nodes, those of a pool start under EASY backfilling. Where they share
nodes, a job starts as soon as nodes have room; one that has waited for long holds back the jobs after it. No unit is
used twice. Limits of QOS do not act on the record.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..model.workload import Workload
from ..queue_policies.policy_specs import Easy
from ..replay.replay import replay
from .models import DAY_S, Generator, generator, rounded
from .site_model import SiteModel

#: Weight of the arrivals in each hour of a day, and on each day of the week from Monday on.
HOURS = (6, 5, 5, 4, 4, 4, 5, 6, 8, 10, 12, 12, 11, 11, 12, 12, 12, 11, 9, 8, 8, 7, 7, 6)
WEEK = (1.05, 1.1, 1.1, 1.1, 1.05, 0.8, 0.8)
#: Mean seconds between the jobs of a session, deviation of the logarithm of run times within one, and the share of jobs
#: that run into their limit.
GAP_S, ALIKE, TIMEOUTS = 3.0, 0.3, 0.02


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticJobs:
    """Columns over the jobs, by submission; times are seconds after the begin of the period."""

    submit: Array
    start: Array
    run_s: Array
    limit_min: Array
    units: Array
    job_class: Array  # row of `SiteModel.classes`
    user: Array  # 0 to users - 1; user u is in account u % accounts
    nodes: list[tuple[int, ...]]  # of the pool, ascending

    def __len__(self) -> int:
        return len(self.submit)


def site_jobs(model: SiteModel, jobs: int, seed: int = 0) -> SyntheticJobs:
    """Draw the jobs of a site, and make their record. O(jobs log jobs + nodes of all jobs).

    Args:
        model: the site.
        jobs: their number, 1 or more; they come at the model's rate.
        seed: 0 or more.
    """
    draw = generator(seed)
    days = model.days * jobs / model.jobs
    ends = np.rint(np.cumsum([one.share for one in model.classes]) / sum(one.share for one in model.classes) * jobs)
    counts = np.diff(ends, prepend=0.0).astype(int).tolist()
    users = {one.name: draw.permutation(model.users) for one in model.qos}
    parts = [
        _class_jobs(draw, model, number, count, days, users[model.classes[number].qos])
        for number, count in enumerate(counts)
        if count
    ]
    submit, units, run, job_class, user = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(submit, kind="stable")
    submit, units, run, job_class, user = (column[order] for column in (submit, units, run, job_class, user))
    run, limit = _times(draw, model, days, units, run, job_class)
    start, nodes = np.zeros(len(submit)), list[tuple[int, ...]]([()] * len(submit))
    pools = np.array([one.pool for one in model.classes])[job_class]
    for pool, kind in enumerate(model.nodes):
        rows = np.flatnonzero(pools == pool)
        if len(rows):
            records = _pool_record(submit[rows], run[rows], limit[rows] * 60.0, units[rows], kind.count, kind.units)
            for row, (time, places) in zip(rows.tolist(), records, strict=True):
                start[row], nodes[row] = time, places
    return SyntheticJobs(submit, start, run, limit, units, job_class, user, nodes)


def _class_jobs(
    draw: Generator, model: SiteModel, number: int, count: int, days: float, users: Array
) -> tuple[Array, ...]:
    """Return submission, units, run time, class and user of the jobs of a class; the first users are the busiest."""
    one = model.classes[number]
    sizes = np.minimum(draw.geometric(1.0 / one.session, count), one.most_session)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), count)) + 1]
    sessions = np.repeat(np.arange(len(sizes)), sizes)[:count]
    begins = _begins(draw, len(sizes), days)
    units = np.clip(np.rint(one.size.draw(draw, len(sizes))), *one.bounds).astype(np.int64)
    medians = one.run_s.draw(draw, len(sizes))
    weights = 1.0 / np.arange(1, model.users + 1) ** 0.4
    users = users[draw.choice(model.users, len(sizes), p=weights / weights.sum())]
    within = np.cumsum(np.rint(draw.exponential(GAP_S, count)))
    first = np.searchsorted(sessions, np.arange(len(sizes)))
    submit = begins[sessions] + within - within[np.minimum(first, count - 1)][sessions]
    run = one.run_s.within(medians[sessions] * np.exp(draw.normal(0.0, ALIKE, count)))
    return submit, units[sessions], run, np.full(count, number), users[sessions]


def _begins(draw: Generator, count: int, days: float) -> Array:
    """Return the times of sessions, ascending, in whole seconds: by the hour of the day and the day of the week."""
    hours = np.arange(max(1, round(days * 24)))
    weights = np.array(HOURS)[hours % 24] * np.array(WEEK)[hours // 24 % 7]
    ends = np.concatenate(([0.0], np.cumsum(weights / weights.sum())))
    return np.asarray(np.floor(np.sort(np.interp(draw.random(count), ends, np.arange(len(ends)) * 3600.0))))


def _times(
    draw: Generator, model: SiteModel, days: float, units: Array, run: Array, job_class: Array
) -> tuple[Array, Array]:
    """Return run times in whole seconds, scaled to the load of the model, and time limits in minutes."""
    most = np.array([one.most_min for one in model.classes])[job_class] * 60.0
    unit_nodes = np.array([1.0 / model.nodes[one.pool].units for one in model.classes])[job_class]
    capacity = sum(kind.count for kind in model.nodes) * days * DAY_S
    failed = draw.random(len(run)) < model.failures
    run = np.where(failed, draw.exponential(30.0, len(run)), run)
    scale = 1.0
    for _ in range(20):  # the limit cuts run times, so that the scale is found by iteration
        work = float((np.minimum(run * np.where(failed, 1.0, scale), most) * units * unit_nodes).sum())
        scale *= model.load * capacity / work
    run = np.maximum(1.0, np.floor(np.minimum(run * np.where(failed, 1.0, scale), most)))
    limit = np.minimum(rounded(run / draw.uniform(0.15, 1.0, len(run))), most)
    limit = np.where(draw.random(len(run)) < TIMEOUTS, np.maximum(60.0, np.rint(run / 60.0) * 60.0), limit)
    return np.minimum(run, limit), np.ceil(limit / 60.0).astype(np.int64)


def _pool_record(
    submit: Array, run: Array, limit: Array, units: Array, nodes: int, node_units: int
) -> list[tuple[float, tuple[int, ...]]]:
    """Return start and nodes of each job of a pool."""
    units = np.minimum(units, nodes * node_units)
    start = submit
    if node_units == 1:
        jobs = Workload("pool", np.arange(len(submit)), submit, run, np.maximum(limit, run), units)
        start = replay(jobs, nodes, Easy()).start_time
    return _Pool(nodes, node_units).place(start, run, units)


#: Seconds after which a job that finds no node with room holds back the jobs after it, and how many jobs look for room.
PATIENCE_S, DEPTH = 3600.0, 50


class _Pool:
    """Nodes of a pool with their free units, as jobs start in order of their planned starts.

    A set of nodes is a number: bit n stands for node n, so that the lowest bit is the first node.
    """

    def __init__(self, nodes: int, units: int) -> None:
        self._units = units
        #: Nodes with at least so many free units, by units.
        self._room = [(1 << nodes) - 1] * (units + 1)
        #: Free units of each node, apart from what jobs on whole nodes take.
        self._free = [units] * nodes
        #: By end: (end, job, its whole nodes, the node that it has a part of, units of that part).
        self._running: list[tuple[float, int, int, int, int]] = []

    def place(self, start: Array, run: Array, units: Array) -> list[tuple[float, tuple[int, ...]]]:
        """Return start and nodes of each job; a start is the planned one, or the first at which a node has room."""
        records: list[tuple[float, tuple[int, ...]]] = [(0.0, ())] * len(start)
        waiting: list[int] = []
        planned = np.argsort(start, kind="stable").tolist()
        starts, durations, sizes = start.tolist(), run.tolist(), units.tolist()
        position, running = 0, self._running
        while position < len(planned) or waiting:
            due = starts[planned[position]] if position < len(planned) else np.inf
            now = min(due, running[0][0]) if running else due
            while running and running[0][0] <= now:
                self._release(*heapq.heappop(running)[2:])
            while position < len(planned) and starts[planned[position]] <= now:
                waiting.append(planned[position])
                position += 1
            remaining, tried = list[int](), 0
            too_many = math.inf  # units for which there is no room now, nor for more
            for job in waiting[:DEPTH]:
                tried += 1
                size = sizes[job]
                nodes = self._take(job, size, now + durations[job]) if size < too_many else ()
                if nodes:
                    records[job] = now, nodes
                    continue
                remaining.append(job)
                too_many = min(too_many, size)
                if now - starts[job] > PATIENCE_S:
                    break
            waiting[:tried] = remaining
        return records

    def _take(self, job: int, units: int, end: float) -> tuple[int, ...]:
        """Take units of the first node with room, whole nodes for more units than one has; () if there is no room."""
        full, rest = (0, units) if units <= self._units else divmod(units, self._units)
        room, needed = self._room[self._units if full else rest], full + (rest > 0)
        if room.bit_count() < needed:
            return ()
        nodes, others = list[int](), room
        for _ in range(needed):
            first = others & -others
            nodes.append(first.bit_length() - 1)
            others ^= first
        part = 1 << nodes[-1] if rest else 0
        entire = room ^ others ^ part
        if entire:
            self._toggle(entire, 0, self._units)
        if rest:
            free = self._free[nodes[-1]]
            self._toggle(part, free - rest, free)
            self._free[nodes[-1]] = free - rest
        heapq.heappush(self._running, (end, job, entire, nodes[-1], rest))
        return tuple(nodes)

    def _release(self, entire: int, node: int, rest: int) -> None:
        if entire:
            self._toggle(entire, 0, self._units)
        if rest:
            free = self._free[node]
            self._toggle(1 << node, free, free + rest)
            self._free[node] = free + rest

    def _toggle(self, nodes: int, less: int, more: int) -> None:
        """Move nodes from `less` free units to `more`, or back."""
        for units in range(less + 1, more + 1):
            self._room[units] ^= nodes
