"""EASY backfilling where each job may use some classes of resources only, such as the nodes of its partitions.

Rule: at each instant all ends are processed, then all submissions, then one pass in the order of ranks. The first
job that does not fit has a reservation; jobs behind it start if they fit, and end before it or leave to it what it
needs then. A job takes resources of the classes in their order. With one class it is `easy` (a property of the tests).
Complexity: an instant costs O((waiting jobs + running jobs) x classes).
"""

from __future__ import annotations

import math

from numba import types

from ..compile import register
from ..jit import inner
from .dependencies import are_all_submitted, release_followers
from .replay_loop import replay_loop
from .running import add_running, ended_well, pop_running
from .tables import DONE, GOES_ON, Classed
from .waiting import insert_by_rank

ClassedType = register(Classed, __name__)


@inner
def _pass(world: Classed, now: float) -> None:
    """Start the first jobs while they fit, reserve for the first that does not, and backfill behind it."""
    queue, waiting, reserved = world.queue, 0, math.inf
    for i in range(world.count.waiting):
        job = queue[i]
        row = world.jobs[job]
        if _room(world, job, False) >= row.size:
            if waiting == 0 or now + row.wall <= reserved:
                _start(world, job, now, False)
                continue
            if _room(world, job, True) >= row.size:
                _start(world, job, now, True)
                continue
        elif waiting == 0:
            reserved = _reserve(world, job, now)
        queue[waiting] = job
        waiting += 1
    world.count.waiting = waiting


@inner
def _room(world: Classed, job: int, late: bool) -> int:
    """Return how much a job could take; `late`: of what is not wanted when the reservation begins either."""
    room, kind = 0, world.jobs[job].kind
    for k in range(len(world.free)):
        if world.may[kind, k] == 1:
            room += min(world.free[k], world.later[k]) if late else world.free[k]
    return room


@inner
def _start(world: Classed, job: int, now: float, late: bool) -> None:
    """Start a job; `late`: it runs when the reservation begins."""
    row, missing = world.jobs[job], world.jobs[job].size
    for k in range(len(world.free)):
        if world.may[row.kind, k] == 1:
            share = min(missing, min(world.free[k], world.later[k]) if late else world.free[k])
            world.held[job, k] = share
            world.free[k] -= share
            if late:
                world.later[k] -= share
            missing -= share
    row.start = now
    add_running(world, job, now + row.run, now + row.wall)


@inner
def _reserve(world: Classed, job: int, now: float) -> float:
    """Return when a job can start at the latest; `later` is then what is free at that time without it."""
    row, room, time = world.jobs[job], 0, now
    for k in range(len(world.free)):
        world.later[k] = world.free[k]
        room += world.free[k] if world.may[row.kind, k] == 1 else 0
    for i in range(world.count.first_end, world.count.first_end + world.count.running):
        end = world.ends[i]
        if room >= row.size and end.time > time:
            break
        time = end.time
        for k in range(len(world.free)):
            world.later[k] += world.held[end.job, k]
            room += world.held[end.job, k] if world.may[row.kind, k] == 1 else 0
    if room < row.size:  # it never fits, and keeps nothing from others
        return math.inf
    missing = row.size
    for k in range(len(world.free)):
        if world.may[row.kind, k] == 1:
            share = min(missing, world.later[k])
            world.later[k] -= share
            missing -= share
    return time


# --- the steps of the loop ---
@inner
def _end(world: Classed, now: float) -> None:
    job = pop_running(world)
    for k in range(len(world.free)):
        world.free[k] += world.held[job, k]
    release_followers(world, job, ended_well(world, job))


@inner
def _submit(world: Classed, job: int, now: float, alone: bool) -> bool:
    insert_by_rank(world, job)
    return True


_run = replay_loop(
    inner(lambda world: DONE if are_all_submitted(world) and world.count.running == 0 else GOES_ON),
    _end,
    _submit,
    inner(lambda world, now, changed: _pass(world, now)),
)


@inner
def call(world: Classed, instants: int) -> int:
    """Run the replay for a number of instants. Return DONE or PAUSED."""
    return _run(world, instants)


SIGNATURES = {"queue.classed": (ClassedType(), types.int64)}
