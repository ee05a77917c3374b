"""Progress of a placed job through its phases, until its program or its walltime ends.

Rule: a phase begins when the one before has ended; it uses its links only after the latency of its slowest route. A job
that waits until its walltime is killed, as in Batsim; other phases may end just then. A job
without a program takes its run time, to the last bit. A host draws `lift` while it computes, and the rest in proportion
to its speed; in SimGrid, the power of a phase also holds for its latency.
Source: SimGrid's documentation, "Host energy plugin".
"""

from __future__ import annotations

import math

from ....arrays import Row
from ...block import Block
from ...heap import push, remove_first
from ...jit import inner
from .demands import lay_out
from .fair_share import charge, clear_touched, join_links, leave_links, log_is_full, reschedule, time_of, update_speeds
from .tables import BOOTS, GOES_ON, LATENT, NONE, WAIT


@inner
def begin(world: Block, job: int, finish: float) -> None:
    """Start a job, at once or when its hosts have booted; without a program it runs until `finish`."""
    course, now = world.courses[job], time_of(world)
    start = max(world.jobs[job].start, now)
    course.until, course.since, course.speed, course.first = start + world.jobs[job].wall, now, 1.0, NONE
    course.over, course.killed, course.state = 0, 0, GOES_ON
    course.joules = course.lift = course.rise = course.lag = 0.0
    if course.program == NONE:
        course.end = finish
        _schedule(world, job, finish)
        return
    program = world.programs[course.program]
    course.phase, course.rounds = program.first, program.rounds
    if start > now:
        course.state = BOOTS
        _run(course, start - now, now)
        course.end = start
    else:
        enter(world, job, now)
    _schedule(world, job, min(course.end, course.until))


@inner
def _schedule(world: Block, job: int, time: float) -> None:
    """Add a job to the running ones, whose next event is at `time`."""
    push(world.heap_time, world.heap_job, world.courses["place"], world.count.running, time, job)
    world.count.running += 1


@inner
def _remove_first(world: Block) -> None:
    world.count.running -= 1
    remove_first(world.heap_time, world.heap_job, world.courses["place"], world.count.running)


@inner
def next_end(world: Block, before: float) -> float:
    """Return the next end of a job, if not after `before`, else infinity. Process all phase changes until then.

    Infinity also if the power log must be emptied before.
    """
    while world.count.running > 0:
        if world.heap_time[0] > time_of(world):
            if log_is_full(world):
                break
            update_speeds(world)
        now, job = world.heap_time[0], world.heap_job[0]
        if now > before:
            break
        course = world.courses[job]
        if course.over == 1 or course.program == NONE or course.end > course.until:
            return now
        if course.end == course.until and course.state == GOES_ON and world.program_phases[course.phase].kind == WAIT:
            return now
        world.lags.time = now
        go_on(world, job, now)
        reschedule(world, job, now if course.over == 1 else min(course.end, course.until))
    return math.inf


@inner
def end_first(world: Block) -> int:
    """End the job that ends first, and return it. O(log n + links)."""
    job, now = world.heap_job[0], world.heap_time[0]
    course = world.courses[job]
    charge(world, course, now)
    course.since = now
    if course.program != NONE:
        course.killed = 1 - course.over
        world.jobs[job].finish = now
    leave_links(world, job)
    _remove_first(world)
    return job


@inner
def kill(world: Block, job: int) -> float:
    """End a job now; return how much of its phase was done, 0 to 1. O(log n + links)."""
    course, now = world.courses[job], time_of(world)
    charge(world, course, now)
    share = 0.0
    if course.state == GOES_ON:
        work = lay_out(world, job, world.program_phases[course.phase])
        if world.solver.touched == 0:
            work += world.lags.latency
        clear_touched(world)
        work_left = max(course.left - course.speed * (now - course.since), 0.0)
        share = 1.0 - work_left / work if work > 0.0 else 1.0
    course.since = now
    leave_links(world, job)
    reschedule(world, job, -math.inf)
    _remove_first(world)
    return share


@inner
def ended_well(world: Block, job: int) -> bool:
    """Return whether a job ended before its walltime."""
    return world.courses[job].killed == 0


@inner
def go_on(world: Block, job: int, now: float) -> None:
    """Continue a job after the end of a phase, of the boot of its hosts, or of the latency."""
    course = world.courses[job]
    charge(world, course, now)
    course.since = now
    if course.state == BOOTS:
        course.state = GOES_ON
        enter(world, job, now)
        return
    if course.state == LATENT:
        course.state = GOES_ON
        work = lay_out(world, job, world.program_phases[course.phase])
        join_links(world, job, work)
        _warm(world, course, work)
        course.lag = world.lags.latency
        _run(course, work, now)
        return
    leave_links(world, job)
    course.phase += 1
    enter(world, job, now)


@inner
def enter(world: Block, job: int, now: float) -> None:
    """Begin the job's current phase, skipping phases of zero duration."""
    course = world.courses[job]
    program = world.programs[course.program]
    while True:
        if course.phase == program.last:
            course.rounds -= 1
            course.phase = program.first
            if course.rounds <= 0:
                course.over, course.end = 1, now
                return
        work = lay_out(world, job, world.program_phases[course.phase])
        latency = world.lags.latency
        _warm(world, course, work)
        at_once = len(world.ports) == 0 or world.lags.computing == 0.0  # on shared nodes, cores are idle in the latency
        if work <= 0.0 or (world.solver.touched == 0 and at_once):
            clear_touched(world)
            work += latency
        elif latency > 0.0:
            clear_touched(world)
            course.state, work, course.lift, course.rise = LATENT, latency, 0.0, 0.0
        else:
            join_links(world, job, work)
        if work > 0.0:
            _run(course, work, now)
            return
        course.phase += 1


@inner
def _warm(world: Block, course: Row, work: float) -> None:
    """Set the power of a job above that of idle hosts."""
    course.lift = world.lags.lift
    course.rise = world.lags.joules / work if work > 0.0 else 0.0


@inner
def _run(course: Row, work: float, now: float) -> None:
    course.left, course.speed, course.since, course.end = work, 1.0, now, now + work
