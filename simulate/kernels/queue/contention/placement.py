"""Placement of tasks on cores, release of cores, and the queue of waiting jobs.

Rule: the next job is the first in an order known before the run, drawn at random, or the first by predictions.
"""

from __future__ import annotations

import math

import numpy as np

from ....arrays import Row
from ... import heap
from ...block import int64
from ...jit import inner
from ..tables import RUNS
from .tables import BY_KEY, BY_RANK, DRAWN, FREE_CORE, ORDERED_NODE, RANDOM, RANDOM_NODE, Contended
from .task_rates import account, rate, rescore

_STEP, _A, _B = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@inner
def _room(node: Row, memory: int) -> int:
    """Return how many tasks of that memory fit on a node now."""
    return node.free if memory == 0 else min(node.free, node.memory // memory)


@inner
def _node(world: Contended, size: int, memory: int) -> int:
    """Return the node that the rule chooses for a whole job; -1 if it fits on none. O(nodes)."""
    if world.count.rule == ORDERED_NODE:
        for k in range(len(world.order)):
            if _room(world.nodes[world.order[k]], memory) >= size:
                return world.order[k]
        return int64(-1)
    node_count = 0
    for n in range(len(world.nodes)):
        node_count += _room(world.nodes[n], memory) >= size
    if node_count == 0:
        return int64(-1)
    position = draw(world.random, node_count)
    for n in range(len(world.nodes)):
        if _room(world.nodes[n], memory) >= size:
            if position == 0:
                return int64(n)
            position -= 1
    return int64(-1)


@inner
def _fits(world: Contended, size: int, memory: int) -> bool:
    """Return whether a job fits on the machine now. O(1), with memory O(nodes)."""
    if world.count.free < size:
        return False
    if memory == 0:
        return True
    room = 0
    for n in range(len(world.nodes)):
        room += _room(world.nodes[n], memory)
        if room >= size:
            return True
    return False


@inner
def _free_core(world: Contended, low: int, high: int, skip: int) -> int:
    """Return the free core with `skip` free ones before it, among the cores [low, high)."""
    for i in range(low, high):
        if world.cores[i].job == FREE_CORE:
            if skip == 0:
                return i
            skip -= 1
    return int64(-1)


@inner
def _core(world: Contended, memory: int) -> int:
    """Return the core that the rule chooses for a task that fits.

    O(cores of a processor), O(processors) if memory is short.
    """
    processors, nodes = world.processors, world.nodes
    if world.count.rule == RANDOM:
        core_count = 0
        for p in range(len(processors)):
            core_count += processors[p].free if nodes[processors[p].node].memory >= memory else 0
        position = draw(world.random, core_count)
        for p in range(len(processors)):
            if nodes[processors[p].node].memory >= memory:
                if position < processors[p].free:
                    return _free_core(world, processors[p].first, processors[p].last, position)
                position -= processors[p].free
    chosen = world.best[0]
    if nodes[processors[chosen].node].memory < memory:
        least = math.inf
        for p in range(len(processors)):
            score = world.scores[processors[p].score_place]
            if score < least and nodes[processors[p].node].memory >= memory:
                chosen, least = p, score
    return _free_core(world, processors[chosen].first, processors[chosen].last, 0)


@inner
def place(world: Contended, job: int, now: float) -> bool:
    """Start a job if it fits by the rule. Return whether it was started."""
    row, count = world.jobs[job], world.count
    low, high = int64(0), int64(0)
    if count.rule == ORDERED_NODE or count.rule == RANDOM_NODE:
        n = _node(world, row.size, row.memory)
        if n < 0:
            return False
        low = world.processors[world.nodes[n].first].first
        high = world.processors[world.nodes[n].last - 1].last
    elif not _fits(world, row.size, row.memory):
        return False
    row.start, row.state, row.task0, row.left = now, RUNS, count.tasks, row.size
    for _ in range(row.size):
        core = _free_core(world, low, high, 0) if high > 0 else _core(world, row.memory)
        _begin(world, core, job, now)
    count.running += 1
    return True


@inner
def place_again(world: Contended, job: int, now: float) -> None:
    """Start a job on the cores that the next rows of the table of tasks name."""
    row, count = world.jobs[job], world.count
    row.start, row.state, row.task0, row.left = now, RUNS, count.tasks, row.size
    for _ in range(row.size):
        _begin(world, world.tasks[count.tasks].core, job, now)
    count.running += 1


@inner
def _begin(world: Contended, i: int, job: int, now: float) -> None:
    """Start a task of a job on a core."""
    core, row, count = world.cores[i], world.jobs[job], world.count
    p = core.processor
    account(world, p, now)
    processor = world.processors[p]
    node = world.nodes[processor.node]
    processor.running += 1
    node.running += 1
    processor.free -= 1
    node.free -= 1
    node.memory -= row.memory
    count.free -= 1
    core.job, core.task = job, count.tasks
    core.left, core.rate, core.since, core.until = row.work, 0.0, now, now + row.wall
    core.demand = row.demand * processor.speed
    core.common = processor.share + node.share
    world.tasks[core.task].core = i
    count.tasks += 1
    rate(world, p, now)


@inner
def give_back(world: Contended, job: int) -> None:
    """Free the cores and memory of an ended job. O(tasks log processors)."""
    row = world.jobs[job]
    for k in range(row.task0, row.task0 + row.size):
        core = world.cores[world.tasks[k].core]
        processor = world.processors[core.processor]
        node = world.nodes[processor.node]
        core.job = FREE_CORE
        processor.free += 1
        node.free += 1
        node.memory += row.memory
        world.count.free += 1
        rescore(world, core.processor)
    world.count.running -= 1


@inner
def push(world: Contended, rank: int) -> None:
    """Add a job to the queue. O(log n)."""
    queue, count = world.queue, world.count
    if count.picks == BY_RANK:
        heap.push(queue, queue, None, count.waiting, rank, rank)
    else:
        queue[count.waiting] = rank
    count.waiting += 1


@inner
def choose(world: Contended) -> int:
    """Return the position in the queue of the next job. O(1); O(waiting) by key."""
    if world.count.picks == DRAWN:
        return draw(world.random, world.count.waiting)
    at = int64(0)
    if world.count.picks == BY_KEY:
        for i in range(1, world.count.waiting):
            mine, least = world.queue[i], world.queue[at]
            key, lowest = world.jobs[world.ranked[mine]].key, world.jobs[world.ranked[least]].key
            if key < lowest or (key == lowest and mine < least):
                at = int64(i)
    return at


@inner
def remove(world: Contended, at: int) -> None:
    """Remove the job at a position of the queue; if that is a heap, its first one."""
    queue, count = world.queue, world.count
    count.waiting -= 1
    if count.picks == BY_RANK:
        heap.remove_first(queue, queue, None, count.waiting)
    else:
        queue[at] = queue[count.waiting]


@inner
def draw(random: Row, many: int) -> int:
    """Draw an integer in [0, many): the upper 53 bits of splitmix64 (Steele, Lea and Flood 2014)."""
    random.state += _STEP
    z = random.state
    z = (z ^ (z >> np.uint64(30))) * _A
    z = (z ^ (z >> np.uint64(27))) * _B
    z ^= z >> np.uint64(31)
    return int64(np.float64(z >> np.uint64(11)) * 2.0**-53 * many)
