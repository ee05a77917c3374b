"""One step of many copies of a world in which each decision starts one job on one node of a heterogeneous machine.

Rule: at each instant all ends are processed, then all submissions, then decisions. The clock goes on until a decision
is due, see `tables`; an empty queue waits for the next submission. An episode of n jobs has n decisions. At its end the
copy begins the next one in the same step.
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), section 4.1.
Complexity: a step of a copy costs O(queue + visible jobs x nodes + log running jobs).
"""

from __future__ import annotations

import math

from numba import types

from ...arrays import Row
from ..compile import register
from ..heap import push, remove_first
from ..jit import inner
from .tables import ANY, BSLD, DRAWN, JOB_COLUMNS, LARGEST, NODE_COLUMNS, SLD, PairCopies

#: What is seen is at most this, and "no" is the distance from it to 1.
_MOST = 1.0 - 1e-5
_LEAST = 1e-5
#: Slowdowns are bounded for run times below, seconds.
_TAU_S = 10.0

PairsType = register(PairCopies, __name__)


@inner
def call(world: PairCopies, resets: int) -> int:
    """Carry out the action of each copy, or begin an episode in each.

    Returns:
        0; or 1 + the first copy whose action the mask forbids, and nothing has changed.
    """
    copies, width = len(world.copies), world.mask.shape[1]
    if resets == 0:
        for copy in range(copies):
            action = world.action[copy]
            if action < 0 or action >= width or world.mask[copy, action] == 0:
                return copy + 1
    for copy in range(copies):
        world.reward[copy] = 0.0
        world.done[copy] = 0
        if resets == 0:
            _start(world, copy, world.action[copy])
        else:
            _begin(world, copy)
        if not _advance(world, copy):
            _end(world, copy)
            _begin(world, copy)
            _advance(world, copy)
        _observe(world, copy)
    return 0


@inner
def _begin(world: PairCopies, copy: int) -> None:
    """Begin the upcoming episode on an empty machine."""
    row = world.copies[copy]
    row.begin = world.upcoming[copy]
    row.time = world.jobs[row.begin].submit
    row.next, row.queued, row.running, row.started, row.chosen = 0, 0, 0, 0, -1
    row.total = 0.0
    for node in range(len(world.nodes)):
        world.free[copy, node] = world.nodes[node].processors


@inner
def _end(world: PairCopies, copy: int) -> None:
    """Keep what the end of an episode looks like."""
    world.done[copy] = 1
    world.last_total[copy] = world.copies[copy].total
    _observe_nodes(world, copy)
    for cell in range(world.last_nodes.shape[1]):
        world.last_nodes[copy, cell] = world.seen_nodes[copy, cell]


@inner
def _start(world: PairCopies, copy: int, action: int) -> None:
    """Start a visible job on a node, and pay for it."""
    row, nodes = world.copies[copy], len(world.nodes)
    at, node = action // nodes, action % nodes
    if row.chosen >= 0:
        at = row.chosen
    job = world.queue[copy, at]
    row.queued -= 1
    for i in range(at, row.queued):
        world.queue[copy, i] = world.queue[copy, i + 1]
    started = world.jobs[row.begin + job]
    run = math.floor(started.run * world.settings.slowest / world.nodes[node].speed)
    world.free[copy, node] -= started.size
    world.place[copy, job] = node
    world.starts[copy, job] = row.time
    push(world.heap_time[copy], world.heap_job[copy], None, row.running, row.time + run, job)
    row.running += 1
    row.started += 1
    row.chosen = -1
    if job >= world.settings.warm:
        cost = row.time - started.submit
        if world.settings.objective == BSLD:
            cost = max((cost + run) / max(started.wall, _TAU_S), 1.0)
        elif world.settings.objective == SLD:
            cost = (cost + run) / started.wall
        world.reward[copy] = -cost / (world.settings.episode - world.settings.warm)
        row.total += world.reward[copy]


@inner
def _advance(world: PairCopies, copy: int) -> bool:
    """Move the clock to the next decision; return whether there is one in this episode."""
    row, jobs = world.copies[copy], world.settings.episode
    while True:
        while row.running > 0 and world.heap_time[copy, 0] <= row.time:
            job = world.heap_job[copy, 0]
            row.running -= 1
            remove_first(world.heap_time[copy], world.heap_job[copy], None, row.running)
            world.free[copy, world.place[copy, job]] += world.jobs[row.begin + job].size
        while row.next < jobs and world.jobs[row.begin + row.next].submit <= row.time:
            world.queue[copy, row.queued] = row.next
            row.queued += 1
            row.next += 1
        if row.queued > 0 and _is_due(world, copy):
            return True
        if row.queued == 0 and row.next == jobs:
            return False
        later = world.jobs[row.begin + row.next].submit if row.next < jobs else math.inf
        if row.queued > 0 and row.running > 0:
            later = min(later, world.heap_time[copy, 0])
        row.time = later


@inner
def _is_due(world: PairCopies, copy: int) -> bool:
    """Return whether a decision is due."""
    row, due, room = world.copies[copy], world.settings.due, _room(world, copy)
    if due == ANY:
        for i in range(min(row.queued, world.settings.rows)):  # noqa: SIM110
            if _job(world, copy, i).size <= room:
                return True
        return False
    if due == LARGEST:
        for i in range(row.queued):  # noqa: SIM110
            if _job(world, copy, i).size > room:
                return False
        return True
    if row.chosen < 0:
        if due == DRAWN:
            row.chosen = min(math.floor(world.draw[copy] * row.queued), row.queued - 1)
        else:
            row.chosen = 0
            for i in range(1, row.queued):
                if _job(world, copy, i).key < _job(world, copy, row.chosen).key:
                    row.chosen = i
    return _job(world, copy, row.chosen).size <= room


@inner
def _job(world: PairCopies, copy: int, at: int) -> Row:
    """Return the row of the job at a place of the queue."""
    return world.jobs[world.copies[copy].begin + world.queue[copy, at]]


@inner
def _room(world: PairCopies, copy: int) -> int:
    """Return the free processors of the node that has most of them."""
    room = 0
    for node in range(len(world.nodes)):
        room = max(room, world.free[copy, node])
    return room


@inner
def _observe(world: PairCopies, copy: int) -> None:
    """Write what a policy sees, and the mask. With a chosen job, it is the only one that is seen."""
    row, nodes, room = world.copies[copy], len(world.nodes), _room(world, copy)
    shown = min(row.queued, world.settings.rows) if row.chosen < 0 else 1
    for i in range(shown):
        job, cell = _job(world, copy, i if row.chosen < 0 else row.chosen), i * JOB_COLUMNS
        world.seen_jobs[copy, cell] = min((row.time - job.submit) / world.settings.patience, _MOST)
        world.seen_jobs[copy, cell + 1] = job.long
        world.seen_jobs[copy, cell + 2] = job.wide
        world.seen_jobs[copy, cell + 3] = _MOST if job.size <= room else _LEAST
        size = job.size
        for node in range(nodes):
            world.mask[copy, i * nodes + node] = 1 if size <= world.free[copy, node] else 0
    for i in range(shown, row.shown):
        cell = i * JOB_COLUMNS
        world.seen_jobs[copy, cell], world.seen_jobs[copy, cell + 1] = 0.0, 1.0
        world.seen_jobs[copy, cell + 2], world.seen_jobs[copy, cell + 3] = 1.0, 0.0
        for node in range(nodes):
            world.mask[copy, i * nodes + node] = 0
    row.shown = shown
    _observe_nodes(world, copy)


@inner
def _observe_nodes(world: PairCopies, copy: int) -> None:
    for node in range(len(world.nodes)):
        kind, cell = world.nodes[node], node * NODE_COLUMNS
        world.seen_nodes[copy, cell] = kind.large
        world.seen_nodes[copy, cell + 1] = min(world.free[copy, node] / kind.processors, _MOST)
        world.seen_nodes[copy, cell + 2] = kind.fast


SIGNATURES = {"pairs.placements": (PairsType(), types.int64)}
