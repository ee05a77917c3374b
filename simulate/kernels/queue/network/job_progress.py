"""How a job goes on once it has its hosts: phase by phase, until its program is done or its walltime is over.

Rule: a phase begins when the one before has ended; what it sends has to get there first, by the slowest of its routes,
before it takes up its links. A job without a program takes its run time, to the last bit.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import RUNNING
from .demands import lay_out
from .heap import insert, rekey, remove_first
from .sharing import forget, join, leave, settle, shares, time_of
from .tables import BOOTS, GOES_ON, LATENCY, LATENT, NONE, TIME


@inner
def begin(world, job, finish):
    """A job has its hosts from now on, and starts at once or when they have booted; without a program it runs until
    `finish`."""
    course, now = world.courses[job], time_of(world)
    start = max(world.jobs[job].start, now)
    course.until, course.since, course.speed, course.first = start + world.jobs[job].wall, now, 1.0, NONE
    course.over, course.killed, course.state = 0, 0, GOES_ON
    if course.program == NONE:
        course.end = finish
        insert(world, job, finish)
        return
    program = world.programs[course.program]
    course.phase, course.rounds = program.first, program.rounds
    if start > now:
        course.state = BOOTS
        _run(course, start - now, now)
        course.end = start
    else:
        _enter(world, job, now)
    insert(world, job, min(course.end, course.until))


@inner
def next_end(world, before):
    """When the next job ends, if not after `before`; else infinite. What happens until then to its phases, happens."""
    while world.count[RUNNING] > 0:
        if world.heap_time[0] > time_of(world):
            settle(world)
        now, job = world.heap_time[0], world.heap_job[0]
        if now > before:
            break
        course = world.courses[job]
        if course.over == 1 or course.program == NONE or course.end > course.until:
            return now
        world.lags[TIME] = now
        _go_on(world, job, now)
        rekey(world, job, now if course.over == 1 else min(course.end, course.until))
    return math.inf


@inner
def end_first(world):
    """The job that ends first does so. O(log n + links)."""
    job, now = world.heap_job[0], world.heap_time[0]
    course = world.courses[job]
    if course.program != NONE:
        course.killed = 1 - course.over
        world.jobs[job].finish = now
    leave(world, job)
    remove_first(world)
    return job


@inner
def ended_well(world, job):
    """Whether a job was not killed by its walltime."""
    return world.courses[job].killed == 0


@inner
def _go_on(world, job, now):
    """A phase is over, or machines have booted, or first bytes have got there."""
    course = world.courses[job]
    course.since = now
    if course.state == BOOTS:
        course.state = GOES_ON
        _enter(world, job, now)
        return
    if course.state == LATENT:
        course.state = GOES_ON
        work = lay_out(world, job, world.phases[course.phase])
        join(world, job, work)
        _run(course, work, now)
        return
    leave(world, job)
    course.phase += 1
    _enter(world, job, now)


@inner
def _enter(world, job, now):
    """Begin the phase that a job has come to, if it takes any time, else the next that does."""
    course = world.courses[job]
    program = world.programs[course.program]
    while True:
        if course.phase == program.last:
            course.rounds -= 1
            course.phase = program.first
            if course.rounds <= 0:
                course.over, course.end = 1, now
                return
        work = lay_out(world, job, world.phases[course.phase])
        latency = world.lags[LATENCY]
        if work <= 0.0 or not shares(world):
            forget(world)
            work += latency
        elif latency > 0.0:
            forget(world)
            course.state, work = LATENT, latency
        else:
            join(world, job, work)
        if work > 0.0:
            _run(course, work, now)
            return
        course.phase += 1


@inner
def _run(course, work, now):
    course.left, course.speed, course.since, course.end = work, 1.0, now, now + work
