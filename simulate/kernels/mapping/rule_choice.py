"""One decision of a copy of a world in which each action starts waiting jobs by a pair of rules, or starts none.

Rule: the world is that of `task_rules`: at each instant all ends are processed, then all submissions. A decision is due
when a job waits, a core is free, and a job has ended or was submitted while none waited or none ran. What a policy
sees is what a scheduler knows: requests, elapsed times and the present rates, and no run time.
Source: IRMaSim (Herrera et al., CCGrid 2021), IV.
Complexity: a decision costs O(processors + cores) to observe, O(log jobs) per point of a distribution, and what the
simulation costs until the next one; another rule for jobs costs O(jobs log queue).
"""

from __future__ import annotations

import math

from numba import types

from ...arrays import Array
from .. import heap
from ..block import int64
from ..compile import ScratchType, WorldType, register
from ..jit import inner
from .choice_tables import (
    CORE_COLUMNS,
    ENERGY,
    MAKESPAN,
    NORMAL,
    POINTS,
    REQUESTS,
    SMALL,
    RuleChoices,
)
from .component import rerate
from .fluid_loop import begin, next_instant, step
from .layout import NO_INDEX, ONE, ZERO, Scratch, World
from .tables import phase_at, watts
from .task_rules import start_next

RuleChoicesType = register(RuleChoices, __name__)


@inner
def call(choices: RuleChoices, world: World, scratch: Scratch, copy: int, action: int) -> int:
    """Carry out an action in a copy, or begin an episode in fresh tables, and go on to the next decision.

    Returns:
        1 if the episode is over, or else 0.
    """
    row, goes_on = choices.copies[copy], False
    if action < 0:
        begin(world, scratch)
        row.begin = row.since = world.clock.now
        row.spent = row.total = row.joules = 0.0
        row.rule = row.resource = NO_INDEX
        row.queued = ZERO
        choices.trees[copy, :] = 0
    elif _act(choices, world, scratch, copy, action) and choices.settings.one == 1:
        goes_on = _may_start(world)
    goes_on = goes_on or _advance(choices, world, scratch, copy)
    if action >= 0:
        _pay(choices, world, copy)
    _observe(choices, world, copy)
    return 0 if goes_on else 1


# --- time ---
@inner
def _may_start(world: World) -> bool:
    """Return whether a job waits and a core is free. O(processors)."""
    if world.queues[0].length == 0:
        return False
    for n in range(len(world.nodes)):  # noqa: SIM110
        if world.nodes[n].alloc < world.nodes[n].limit:
            return True
    return False


@inner
def _act(choices: RuleChoices, world: World, scratch: Scratch, copy: int, action: int) -> bool:
    """Start the jobs of an action; return whether there are any."""
    row, choice, listed, now = choices.copies[copy], choices.actions[action], scratch.listed, world.clock.now
    if choice.resource < 0:
        return False
    if choice.job != row.rule:
        row.rule = choice.job
        _sort_queue(choices, world, row.first, choice.job)
    if choice.resource != row.resource:
        row.resource = choice.resource
        scratch.row_class[0] = NO_INDEX  # the scores that are kept are those of another rule
    start_next(world, scratch, choice.resource, now, ONE if choices.settings.one == 1 else world.queues[0].length)
    for i in range(listed.started):
        _count(choices, copy, row.first + scratch.started[i], NO_INDEX)
    rerate(world, scratch, now)
    return listed.started > 0


@inner
def _sort_queue(choices: RuleChoices, world: World, first: int, rule: int) -> None:
    """Order the waiting jobs, and those to come, by another rule. O(jobs + queue log queue)."""
    world.count.drawn = 1 if rule == 0 else 0
    for job in range(len(world.jobs)):
        world.jobs[job].key = choices.keys[rule, first + job]
    for i in range(world.queues[0].length):
        job = world.queued[i]
        heap.push(world.queued_key, world.queued, None, i, world.jobs[job].key, job)


@inner
def _advance(choices: RuleChoices, world: World, scratch: Scratch, copy: int) -> bool:
    """Move the clock to the next decision; return whether there is one in this episode."""
    row, queue, count = choices.copies[copy], world.queues[0], world.count
    while True:
        soonest = next_instant(world)
        if soonest == math.inf:
            return False
        row.spent += _power(choices, world) * (soonest - world.clock.now)
        waited, finished, arrived = queue.length, count.finished, count.arrived
        step(world, scratch, soonest)
        for i in range(arrived, count.arrived):
            _count(choices, copy, row.first + world.arrivals[i], ONE)
        due = count.finished > finished or waited == 0 or count.running_jobs == 0 or choices.settings.always == 1
        if due and _may_start(world):
            return True


@inner
def _power(choices: RuleChoices, world: World) -> float:
    """Return the watts of the machine; a core computes while its own task runs. O(processors)."""
    total = choices.settings.watts
    for n in range(len(world.nodes)):
        total += watts(world.types[world.nodes[n].type], world.nodes[n].live)
    return total


@inner
def _pay(choices: RuleChoices, world: World, copy: int) -> None:
    """Pay for the time since the last decision."""
    row, now, objective = choices.copies[copy], world.clock.now, choices.settings.objective
    cost = now - row.since if objective == MAKESPAN else row.spent
    if objective != MAKESPAN and objective != ENERGY:
        cost *= now - row.since
    choices.reward[copy] = -cost
    row.total -= cost
    row.joules += row.spent
    row.since, row.spent = now, 0.0


# --- the distribution of requests in the queue ---
@inner
def _count(choices: RuleChoices, copy: int, job: int, change: int) -> None:
    """Count a job that begins or ceases to wait. O(log levels)."""
    width = choices.levels.shape[1]
    for request in range(REQUESTS):
        at = choices.level_of[request, job] + 1
        while at < width:
            choices.trees[copy, request * width + at] += change
            at += at & -at


@inner
def _value(choices: RuleChoices, copy: int, request: int, rank: int) -> float:
    """Return the request of the waiting job that has `rank` smaller ones before it. O(log levels)."""
    width = choices.levels.shape[1]
    at, rest, stride = ZERO, rank + 1, width // 2
    while stride > 0:
        below = choices.trees[copy, request * width + at + stride]
        if below < rest:
            at += stride
            rest -= below
        stride //= 2
    return choices.levels[request, at]


# --- what a policy sees ---
@inner
def _observe(choices: RuleChoices, world: World, copy: int) -> None:
    """Write what a policy sees, and the mask."""
    state, cell = choices.seen[copy], ZERO
    if choices.settings.level >= SMALL:
        cell = _observe_processors(world, state)
    if choices.settings.level >= NORMAL:
        _observe_cores(world, state[cell:])
        cell += CORE_COLUMNS * len(world.taken)
    _observe_queue(choices, world, copy, state[cell:])
    stalls = world.count.running_jobs == 0 and world.count.arrived == len(world.arrivals)
    for action in range(len(choices.actions)):
        choices.mask[copy, action] = 0 if stalls and choices.actions[action].resource < 0 else 1


@inner
def _observe_processors(world: World, seen: Array) -> int:
    """Write free shares of memory and of bandwidth; return how many there are."""
    cell, n = ZERO, ZERO
    while n < len(world.nodes):
        seen[cell] = max(0.0, 1.0 - world.nodes[n].used / world.nodes[n].memory)
        n = world.nodes[n].last
        cell += 1
    for k in range(len(world.nodes)):
        node, demand, p = world.nodes[k], 0.0, world.nodes[k].head
        while p >= 0:
            strand = world.strands[world.parts[p].strand]
            demand += world.phases[phase_at(world, strand.group, strand.phase, node.type)].bandwidth
            p = world.parts[p].next
        seen[cell] = max(0.0, 1.0 - demand / world.types[node.type].bandwidth)
        cell += 1
    return cell


@inner
def _observe_cores(world: World, seen: Array) -> None:
    """Write speed and watts of each core as shares of their peaks, and the share left of its task's requested time."""
    now = world.clock.now
    for n in range(len(world.nodes)):
        node = world.nodes[n]
        kind = world.types[node.type]
        peak = kind.watts_slope + kind.watts_base / node.limit
        idle = watts(kind, node.live) - kind.watts_slope * node.live
        idle = idle / node.limit / peak if peak > 0.0 else 0.0
        for core in range(node.core0, node.core0 + int64(node.limit)):
            cell = core * CORE_COLUMNS
            seen[cell], seen[cell + 1], seen[cell + 2] = 1.0, idle, 0.0
        p = node.head
        while p >= 0:
            s = world.parts[p].strand
            strand = world.strands[s]
            job = world.jobs[strand.job]
            cell = world.task_core[job.place0 + s - job.strand0] * CORE_COLUMNS
            seen[cell] = strand.rate
            seen[cell + 1] = 1.0 if peak > 0.0 else 0.0
            seen[cell + 2] = max(0.0, 1.0 - (now - job.start) / job.asked) if job.asked > 0.0 else 0.0
            p = world.parts[p].next


@inner
def _observe_queue(choices: RuleChoices, world: World, copy: int, seen: Array) -> None:
    """Write minimum, quartiles and maximum of each request over the waiting jobs, and the change of their number."""
    row, length = choices.copies[copy], world.queues[0].length
    for request in range(REQUESTS):
        for point in range(POINTS):
            cell = request * POINTS + point
            if length == 0:
                seen[cell] = 0.0
                continue
            place = point * (length - 1)  # in quarters
            low = _value(choices, copy, request, place // 4)
            seen[cell] = low
            if place % 4 > 0:
                seen[cell] = low + (_value(choices, copy, request, place // 4 + 1) - low) * (place % 4) / 4.0
    change, least, width = 1.0, min(length, row.queued), choices.settings.sensitivity
    if least > 0:
        change = min(1.0, max(0.0, (length - row.queued) / least / (2.0 * width) + 0.5))
    seen[REQUESTS * POINTS] = change
    row.queued = length


SIGNATURES = {
    "mapping.rule_choice": (RuleChoicesType(), WorldType(), ScratchType(), types.int64, types.int64),
}
