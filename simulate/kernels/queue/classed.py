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
from ..jit import inlined, inner
from .dependencies import are_all_submitted, release_followers
from .easy_pass import listed_pass
from .replay_loop import replay_loop
from .running import add_running, ended_well, pop_running
from .tables import DONE, GOES_ON, Classed
from .waiting import insert_by_rank

ClassedType = register(Classed, __name__)


@inlined
def _starts(world: Classed, job: int, behind: bool, now: float) -> bool:
    """Start a job if it fits, and delays no reservation."""
    row = world.jobs[job]
    late = behind and now + row.wall > world.clock.reservation
    if _room(world, job, False) < row.size or (late and _room(world, job, True) < row.size):
        return False
    _start(world, job, now, late)
    return True


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
def _reserve(world: Classed, job: int, now: float) -> None:
    """Find when a job can start at the latest; `later` is then what is free at that time without it."""
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
    world.clock.reservation = time if room >= row.size else math.inf
    if room < row.size:  # it never fits, and keeps nothing from others
        return
    missing = row.size
    for k in range(len(world.free)):
        if world.may[row.kind, k] == 1:
            share = min(missing, world.later[k])
            world.later[k] -= share
            missing -= share


_pass = listed_pass(_starts, _reserve)


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
