"""EASY backfilling where each job may use some classes of resources only, such as the nodes of its partitions.

Rule: at each instant all ends are processed, then all submissions, then one pass in the order of the rows. The first
job that does not fit has a reservation; jobs behind it start if they fit, and end before it or leave to it what it
needs then. A job takes resources of the classes in their order. With one class it is `easy` (a property of the tests).
Complexity: an instant costs O(jobs x classes).
"""

from __future__ import annotations

import math

from ..compile import register
from ..jit import inner
from .tables import ENDED, RUNS, WAITS, Classed

ClassedType = register(Classed, __name__)


@inner
def call(world: Classed) -> int:
    """Run the replay. Return the number of instants."""
    now, instants = 0.0, 0
    while now < math.inf:
        _end_jobs(world, now)
        _pass(world, now)
        instants += 1
        now = _next_instant(world, now)
    return instants


@inner
def _next_instant(world: Classed, now: float) -> float:
    """Return when the next job ends, now or later, or is submitted, later; infinity: nothing more happens."""
    time = math.inf
    for job in range(len(world.jobs)):
        row = world.jobs[job]
        if row.state == RUNS:
            time = min(time, row.start + row.run)
        elif row.state == WAITS and row.submit > now and world.unmet[job] == 0:
            time = min(time, row.submit)
    return time


@inner
def _end_jobs(world: Classed, now: float) -> None:
    """End the jobs whose time has come, and release those that waited for them."""
    kept = 0
    for i in range(world.count.running):
        job = world.ends[i]
        row = world.jobs[job]
        if row.start + row.run > now:
            world.ends[kept] = job
            kept += 1
            continue
        row.state = ENDED
        for k in range(len(world.free)):
            world.free[k] += world.held[job, k]
        for i_follower in range(world.follower0[job], world.follower0[job + 1]):
            world.unmet[world.followers[i_follower]] -= 1
    world.count.running = kept


@inner
def _pass(world: Classed, now: float) -> None:
    """Start the first jobs while they fit, reserve for the first that does not, and backfill behind it."""
    reserved, head = math.inf, -1
    for job in range(len(world.jobs)):
        row = world.jobs[job]
        if row.state != WAITS or row.submit > now or world.unmet[job] > 0:
            continue
        if _room(world, job, False) < row.size:
            if head < 0:
                reserved, head = _reserve(world, job, now), job
        elif head < 0 or now + row.wall <= reserved:
            _start(world, job, now, False)
        elif _room(world, job, True) >= row.size:
            _start(world, job, now, True)


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
    row, left = world.jobs[job], world.jobs[job].size
    for k in range(len(world.free)):
        if world.may[row.kind, k] == 1:
            taken = min(left, min(world.free[k], world.later[k]) if late else world.free[k])
            world.held[job, k] = taken
            world.free[k] -= taken
            if late:
                world.later[k] -= taken
            left -= taken
    row.start, row.state = now, RUNS
    at = world.count.running
    while at > 0 and _latest_end(world, world.ends[at - 1]) > now + row.wall:
        world.ends[at] = world.ends[at - 1]
        at -= 1
    world.ends[at] = job
    world.count.running += 1


@inner
def _latest_end(world: Classed, job: int) -> float:
    return world.jobs[job].start + world.jobs[job].wall


@inner
def _reserve(world: Classed, job: int, now: float) -> float:
    """Return when a job can start at the latest; `later` is then what is free at that time without it."""
    row, room, time = world.jobs[job], 0, now
    for k in range(len(world.free)):
        world.later[k] = world.free[k]
        room += world.free[k] if world.may[row.kind, k] == 1 else 0
    for i in range(world.count.running):
        end = _latest_end(world, world.ends[i])
        if room >= row.size and end > time:
            break
        time = end
        for k in range(len(world.free)):
            world.later[k] += world.held[world.ends[i], k]
            room += world.held[world.ends[i], k] if world.may[row.kind, k] == 1 else 0
    if room < row.size:  # it never fits, and keeps nothing from others
        return math.inf
    left = row.size
    for k in range(len(world.free)):
        if world.may[row.kind, k] == 1:
            taken = min(left, world.later[k])
            world.later[k] -= taken
            left -= taken
    return time


SIGNATURES = {"queue.classed": (ClassedType(),)}
