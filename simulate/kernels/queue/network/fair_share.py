"""Speeds of jobs that share links, under one of two rules.

MAX_MIN: max-min fairness on each link, every job at the speed of its bottleneck. On a link that cannot carry all
demands, jobs that demand less than the link's level get it, the others get the level; a job's speed is that of its
worst link. So each job has full speed, or a full link on which no other job sends more. Levels and demands depend on
each other and are iterated link by link to a relative change of 1e-12. Links that the changed links cannot affect are
not examined.
INCREMENTS: in rounds, each job that still gets more is raised by the least of its shares, where links divide what is
left among such jobs. Every round also takes the last increments of the jobs that get no more, as SimGrid does, so links
may be left unused.
Source: the same as models of shared memory bandwidth for one link; bottleneck max fairness (Bonald and Roberts 2014);
the fair-bottleneck solver of SimGrid 3.34 (its option host/solver).
"""

from __future__ import annotations

import math

from ....arrays import Row
from ...block import Block
from ...heap import rekey
from ...jit import inner
from ...shares import fair_level
from .tables import NONE

#: Rounds over the links before levels are damped, and the largest number of rounds.
PLAIN, MOST = 50, 1000
SAME = 1e-12
#: Under increments, less is nothing, bytes/s: SimGrid's precision/work-amount.
LEAST_RATE = 1e-5


@inner
def join_links(world: Block, job: int, work: float) -> None:
    """Add a job to the links that were touched."""
    links, uses, course, solver = world.links, world.uses, world.courses[job], world.solver
    for i in range(solver.touched):
        number, at = world.touched[i], solver.free_use
        link, use = links[number], uses[at]
        solver.free_use = use.next
        use.job, use.link, use.demand = job, number, link.bytes / work
        use.next, course.first = course.first, at
        use.before, use.after, link.first = NONE, link.first, at
        if use.after != NONE:
            uses[use.after].before = at
        _changed(world, number)
        link.bytes = 0.0
    solver.touched = 0


@inner
def clear_touched(world: Block) -> None:
    """Clear the links that were touched."""
    for i in range(world.solver.touched):
        world.links[world.touched[i]].bytes = 0.0
    world.solver.touched = 0


@inner
def leave_links(world: Block, job: int) -> None:
    """Remove a job from its links."""
    uses, course, solver = world.uses, world.courses[job], world.solver
    while course.first != NONE:
        at = course.first
        use = uses[at]
        course.first = use.next
        if use.before != NONE:
            uses[use.before].after = use.after
        else:
            world.links[use.link].first = use.after
        if use.after != NONE:
            uses[use.after].before = use.before
        _changed(world, use.link)
        use.next, solver.free_use = solver.free_use, at


@inner
def charge(world: Block, course: Row, now: float) -> None:
    """Add the energy of a job since the last change of its speed. The latency of a phase counts as the phase does."""
    if now > course.since:
        watts = course.lift + course.rise * course.speed
        course.joules += watts * (now - course.since + course.lag)
        if len(world.power_log) > 0 and watts > 0.0:
            row = world.power_log[world.solver.logged]
            row.begin, row.until, row.watts = course.since - course.lag, now, watts
            world.solver.logged += 1
        course.lag = 0.0


@inner
def log_is_full(world: Block) -> bool:
    """Return whether the power log must be emptied before the next instant, which adds at most a row for each job."""
    return 2 * world.solver.logged > len(world.power_log)


@inner
def _changed(world: Block, number: int) -> None:
    if world.links[number].changed == 0:
        world.links[number].changed = 1
        world.dirty[world.solver.dirty] = number
        world.solver.dirty += 1


@inner
def time_of(world: Block) -> float:
    """Return the present time: of the policy's instant, or of the last phase change if that is later."""
    return max(world.clock.now, world.lags.time)


@inner
def update_speeds(world: Block) -> None:
    """Update the speeds of all jobs that the changes may affect. O((users + links) x rounds)."""
    solve_links(world)
    for i in range(world.solver.met):
        _set_speed(world, world.met[i], world.courses[world.met[i]].raised, time_of(world))


@inner
def solve_links(world: Block) -> None:
    """Set `raised`, the new speed, of the `met` jobs that the changes may affect. O((users + links) x rounds)."""
    solver = world.solver
    solver.met = 0
    if solver.dirty == 0:
        return
    _seek(world)
    if world.rule.increments == 1:
        _raise_all(world)
        return
    number, rounds = solver.sought, 0
    while number > 0 and rounds < MOST and _fill_all(world, rounds >= PLAIN) and number > 1:
        rounds += 1
    for i in range(number):
        link = world.links[world.sought[i]]
        link.tight = 1 if link.level < math.inf else 0
    for i in range(solver.met):
        world.courses[world.met[i]].raised = _speed(world, world.met[i], NONE)


@inner
def _seek(world: Block) -> None:
    """Find the links whose levels may have changed, and the jobs whose speeds may change."""
    solver, links, uses = world.solver, world.links, world.uses
    solver.solution += 1
    solver.sought = 0
    for i in range(solver.dirty):
        links[world.dirty[i]].changed = 0
        _consider(world, world.dirty[i])
    solver.dirty = 0
    i = 0
    while i < solver.sought:
        at = links[world.sought[i]].first
        i += 1
        while at != NONE:
            course = world.courses[uses[at].job]
            if course.met != solver.solution:
                course.met = solver.solution
                world.met[solver.met] = uses[at].job
                solver.met += 1
                other = course.first
                while other != NONE:
                    _consider(world, uses[other].link)
                    other = uses[other].next
            at = uses[at].after


@inner
def _consider(world: Block, number: int) -> None:
    """Add a link to the search if it was tight, or could be; under increments every link."""
    link, solver, uses = world.links[number], world.solver, world.uses
    if link.seen == solver.solution:
        return
    link.seen = solver.solution
    demand, at = 0.0, link.first
    while at != NONE:
        demand += uses[at].demand
        at = uses[at].after
    if demand > link.bandwidth or link.tight == 1 or world.rule.increments == 1:
        link.level = math.inf
        world.sought[solver.sought] = number
        solver.sought += 1


@inner
def _fill_all(world: Block, slowly: bool) -> bool:
    """Run one round over the links. Return True if a level has changed."""
    changed = False
    for i in range(world.solver.sought):
        number = world.sought[i]
        before = world.links[number].level
        level = _fill(world, number)
        if slowly and before < math.inf and level < math.inf:
            level = math.sqrt(before * level)
        world.links[number].level = level
        if abs(level - before) > SAME * before if before < math.inf else level < math.inf:
            changed = True
    return changed


@inner
def _fill(world: Block, number: int) -> float:
    """Return the level of a link, given those of the others. O(users x levels)."""
    uses, bandwidth, total, users = world.uses, world.links[number].bandwidth, 0.0, 0
    at = world.links[number].first
    while at != NONE:
        use = uses[at]
        world.wanted[users] = use.demand * _speed(world, use.job, number)
        total += world.wanted[users]
        users += 1
        at = use.after
    return math.inf if total <= bandwidth else fair_level(world.wanted, None, users, bandwidth)


@inner
def _speed(world: Block, job: int, but: int) -> float:
    """Return the speed that a job's links allow, ignoring the link `but`."""
    speed, at = 1.0, world.courses[job].first
    while at != NONE:
        use = world.uses[at]
        if use.link != but:
            level = world.links[use.link].level
            if level < use.demand:
                speed = min(speed, level / use.demand)
        at = use.next
    return speed


@inner
def _raise_all(world: Block) -> None:
    """Set `raised` of the jobs that were met, by increments. O(rounds x users)."""
    solver, links, uses, courses, rounds = world.solver, world.links, world.uses, world.courses, 0
    for i in range(solver.met):
        course = courses[world.met[i]]
        course.raised, course.step, course.open = 0.0, 0.0, 1
    for i in range(solver.sought):
        link = links[world.sought[i]]
        link.rest, link.tight = link.bandwidth, 1  # tight: it still shares
    open_count = solver.met
    while open_count > 0 and rounds < MOST:
        rounds += 1
        for i in range(solver.sought):
            _share_rest(world, links[world.sought[i]])
        for i in range(solver.met):
            course = courses[world.met[i]]
            if course.open == 0:
                continue
            step, at = 1.0 - course.raised, course.first
            while at != NONE:
                step = min(step, links[uses[at].link].level / uses[at].demand)
                at = uses[at].next
            course.step = step
            course.raised += step
            if course.raised == 1.0:
                course.open = 0
                open_count -= 1
        for i in range(solver.sought):
            open_count -= _take_steps(world, links[world.sought[i]])
    for i in range(solver.sought):
        links[world.sought[i]].tight = 0


@inner
def _share_rest(world: Block, link: Row) -> None:
    """Set the level of a link: what is left of it, for each job that still gets more."""
    if link.tight == 0:
        return
    users, at = 0, link.first
    while at != NONE:
        users += world.courses[world.uses[at].job].open
        at = world.uses[at].after
    if users > 0:
        link.level = link.rest / users
    else:
        link.tight = 0


@inner
def _take_steps(world: Block, link: Row) -> int:
    """Take the last increments of all jobs from a link; return how many get no more because nothing is left."""
    if link.tight == 0:
        return 0
    at, ended = link.first, 0
    while at != NONE:
        link.rest -= world.uses[at].demand * world.courses[world.uses[at].job].step
        if link.rest < LEAST_RATE:
            link.rest = 0.0
        at = world.uses[at].after
    if link.rest > 0.0:
        return 0
    link.tight, at = 0, link.first
    while at != NONE:
        course = world.courses[world.uses[at].job]
        ended += course.open
        course.open = 0
        at = world.uses[at].after
    return ended


@inner
def _set_speed(world: Block, job: int, speed: float, now: float) -> None:
    course = world.courses[job]
    if speed != course.speed:
        charge(world, course, now)
        course.left = max(course.left - course.speed * (now - course.since), 0.0)
        course.speed, course.since = speed, now
        course.end = now + course.left / speed
        reschedule(world, job, min(course.end, course.until))


@inner
def reschedule(world: Block, job: int, time: float) -> None:
    """Change the time of a running job's next event."""
    rekey(world.heap_time, world.heap_job, world.courses["place"], world.count.running, time, job)
