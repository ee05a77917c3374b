"""Start jobs of independent tasks by a pair of rules: one for the next job, one for its cores or its machine.

Rule: the next job is the first by its key, or is drawn at random; it starts if all its tasks fit, or else all jobs
wait. Under the rules for cores, each task goes to the node with the smallest score, which counts the tasks before it;
of scores that differ by rounding only, the first node's is the smallest. The nodes of a machine share its memory
capacity (see `layout.NODE`): here a node is a processor.
Complexity: O(nodes) per task, plus the rates of its node where the score depends on them.
Source: IRMaSim (Herrera et al., CCGrid 2021), table II.
"""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Row
from ..block import int64
from ..jit import inner
from .choose import fits, spare_threads
from .component import rerate
from .layout import (
    HIGH_CORE,
    HIGH_GFLOPS,
    HIGH_MEM,
    HIGH_MEM_BW,
    NO_INDEX,
    ORDERED_MACHINE,
    PEAK_GFLOPS,
    PEAK_POWER,
    RANDOM_CORE,
    RANDOM_MACHINE,
    ZERO,
    Scratch,
    World,
)
from .queues import queue_pop
from .tables import begin_job, phase_at, place_task, watts

#: Scores within this share of each other are equal.
ROUNDING = 1e-9
#: Owner of the row of the score cache that these rules use.
_TASKS = int64(-2)
_STEP, _A, _B = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@inner
def start_tasks(world: World, scratch: Scratch, rule: int, now: float) -> None:
    """Start the next job until one does not fit."""
    scratch.listed.started = 0
    if world.count.decided == world.count.instants:
        return  # a run that has paused goes on at this instant
    world.count.decided = world.count.instants
    start_next(world, scratch, rule, now, world.queues[0].length)


@inner
def start_next(world: World, scratch: Scratch, rule: int, now: float, most: int) -> None:
    """Start the next job until one does not fit, or `most` have started."""
    listed, queue, queued, spare = scratch.listed, world.queues[0], world.queued, spare_threads(world)
    listed.started = 0
    if scratch.row_class[0] != _TASKS:
        scratch.row_class[0] = _TASKS
        scratch.score_version[0, :] = -1
    if rule == HIGH_GFLOPS:
        rerate(world, scratch, now)
    while queue.length > 0 and listed.started < most:
        at = draw(world.random, queue.length) if world.count.drawn == 1 else ZERO
        job = queued[at]
        tasks = world.classes[world.jobs[job].cls].nodes
        if tasks > spare or not _place(world, scratch, job, rule, now):
            return
        spare -= tasks
        queued[at] = queued[0]  # all keys are equal if `at` is not the first
        queued[0] = job
        queue_pop(world, ZERO)
        if 0 < at < queue.length:
            queued[0], queued[at] = queued[at], queued[0]
        scratch.started[listed.started] = job
        listed.started += 1


@inner
def _place(world: World, scratch: Scratch, job: int, rule: int, now: float) -> bool:
    """Start a job if all its tasks fit. Return whether it was started."""
    j = world.jobs[job]
    cls, machine = world.classes[j.cls], NO_INDEX
    if rule == ORDERED_MACHINE or rule == RANDOM_MACHINE:
        machine = _machine(world, cls, rule)
        if machine < 0:
            return False
    elif not _has_room(world, cls):
        return False
    begin_job(world, job, now)
    for i in range(cls.nodes):
        n, skip = (machine, ZERO) if machine >= 0 else _node(world, scratch, cls, rule)
        while not fits(world, n, cls):
            n += 1  # the next processor of the machine
        world.placed[j.place0 + i], world.task_core[j.place0 + i] = n, _free_core(world, n, skip)
        place_task(world, scratch, job, i, now)
        if rule == HIGH_GFLOPS:
            rerate(world, scratch, now)
    return True


@inner
def _free_cores(world: World, n: int) -> int:
    return int64(world.nodes[n].limit - world.nodes[n].alloc)


@inner
def _free_core(world: World, n: int, skip: int) -> int:
    """Return the free core of a node with `skip` free ones before it. O(its cores)."""
    core = world.nodes[n].core0
    while world.taken[core] == 1 or skip > 0:
        skip -= 1 - world.taken[core]
        core += 1
    return core


@inner
def _room(world: World, first: int, cls: Row) -> int:
    """Return how many tasks of a class fit now on the machine whose first node this is."""
    cores, node = ZERO, world.nodes[first]
    for n in range(first, node.last):
        cores += _free_cores(world, n)
    if cls.memory <= 0.0 or cores == 0:
        return cores
    return int64(min(float(cores), (node.memory * (1.0 + 1e-12) - node.used) // cls.memory))


@inner
def _has_room(world: World, cls: Row) -> bool:
    """Return whether all tasks of a job of this class fit now. O(nodes)."""
    room, n = ZERO, ZERO
    while n < len(world.nodes) and room < cls.nodes:
        room += _room(world, n, cls)
        n = world.nodes[n].last
    return room >= cls.nodes


@inner
def _machine(world: World, cls: Row, rule: int) -> int:
    """Return the first node of the machine that the rule chooses for a whole job; -1 if it fits on none. O(nodes)."""
    ranked, fitting = world.ranked, ZERO
    for k in range(len(ranked)):
        if _room(world, ranked[k], cls) >= cls.nodes:
            if rule == ORDERED_MACHINE:
                return ranked[k]
            fitting += 1
    position = draw(world.random, fitting) if fitting > 0 else NO_INDEX
    for k in range(len(ranked)):
        if _room(world, ranked[k], cls) >= cls.nodes:
            if position == 0:
                return ranked[k]
            position -= 1
    return NO_INDEX


@inner
def _node(world: World, scratch: Scratch, cls: Row, rule: int) -> tuple[int, int]:
    """Return the node that the rule chooses for one task, which fits on some, and the free cores to skip. O(nodes)."""
    best, least, cores = NO_INDEX, math.inf, ZERO
    for n in range(len(world.nodes)):
        if not fits(world, n, cls):
            continue
        if rule == RANDOM_CORE:
            cores += _free_cores(world, n)
            continue
        score = _score(world, scratch, n, rule)
        if best < 0 or score < least - ROUNDING * abs(least):
            best, least = n, score
    if rule != RANDOM_CORE:
        return best, ZERO
    position = draw(world.random, cores)
    for n in range(len(world.nodes)):
        if fits(world, n, cls):
            if position < _free_cores(world, n):
                return n, position
            position -= _free_cores(world, n)
    return NO_INDEX, ZERO


@inner
def _score(world: World, scratch: Scratch, n: int, rule: int) -> float:
    """Return what a rule has least of; of running tasks it is kept until one starts or ends on the node."""
    node = world.nodes[n]
    if rule == HIGH_CORE:
        return node.alloc - node.limit
    if rule == HIGH_MEM:
        return node.used - node.memory
    if rule == PEAK_GFLOPS:
        return -world.types[node.type].speed
    if rule == PEAK_POWER:
        return watts(world.types[node.type], node.limit) / node.limit
    if scratch.score_version[0, n] == world.versions[n]:
        return scratch.score[0, n]
    kind, p = world.types[node.type], node.head
    speed, demand, score = 0.0, 0.0, 0.0
    while p >= 0:
        strand = world.strands[world.parts[p].strand]
        speed += strand.rate
        demand += world.phases[phase_at(world, strand.group, strand.phase, node.type)].bandwidth
        p = world.parts[p].next
    if rule == HIGH_GFLOPS:
        score = -kind.speed * (speed / node.live if node.live > 0.0 else 1.0)
    elif rule == HIGH_MEM_BW:
        score = demand - kind.bandwidth
    else:
        score = watts(kind, node.live)
    scratch.score[0, n], scratch.score_version[0, n] = score, world.versions[n]
    return score


@inner
def draw(random: Row, choices: int) -> int:
    """Draw an integer in [0, choices): the upper 53 bits of splitmix64 (Steele, Lea and Flood 2014)."""
    random.state += _STEP
    z = random.state
    z = (z ^ (z >> np.uint64(30))) * _A
    z = (z ^ (z >> np.uint64(27))) * _B
    z ^= z >> np.uint64(31)
    return int64(np.float64(z >> np.uint64(11)) * 2.0**-53 * choices)
