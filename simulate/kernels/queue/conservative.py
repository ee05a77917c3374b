"""Conservative backfilling: every waiting job has a reservation in the profile, on identified resources.

Rule: at each event every waiting job, in the order of the queue, moves to the earliest reservation possible, or keeps
its own, including its resources. Jobs are only re-examined if they could move: an earlier start must use time that was
freed by a job that ended before its walltime or by another move.
"""

from __future__ import annotations

import math

from numba import types

from ..block import int64
from ..compile import register
from ..jit import inlined, inner
from .availability_profile import advance, drop_before, find_earliest, find_gap, latest_end, occupy, release
from .dependencies import are_all_submitted, release_followers
from .network.tables import NetworkedReserving
from .replay_loop import replay_loop
from .resources import give_back, take
from .running import begin, end_first, ended_well
from .tables import BASIC, DONE, ENDED, GOES_ON, GROW, REJECTED, RUNS, Reserving
from .waiting import F1, f1, insert_by_rank

ReservingType = register(Reserving, __name__)
NetworkedReservingType = register(NetworkedReserving, __name__)


@inner
def _record_pieces(world: Reserving, job: int) -> None:
    """Record a job's resources as pieces."""
    row = world.jobs[job]
    for word in range(row.low_word, row.high_word + 1):
        world.free[word] = world.sets[row.set_row, word]
    world.count.lowest = row.low_word
    take(world, row.size, job)


@inner
def _put(world: Reserving, job: int, start: float) -> None:
    """Reserve a job's resources from `start` on."""
    row = world.jobs[job]
    row.start, row.until = start, latest_end(start, row.wall)
    occupy(world, start, row.until, row.size)


@inner
def _move(world: Reserving, job: int, before: float) -> bool:
    """Move a job's reservation to a start before a time if a gap has suitable resources. Return True if it moved."""
    count, row = world.count, world.jobs[job]
    start, old, low, high = row.start, row.set_row, row.low_word, row.high_word
    release(world, row.start, row.until, row.size)
    count.free_sets -= 1
    row.set_row = world.free_sets[count.free_sets]
    earlier = find_earliest(world, job, before)
    if earlier < before:
        start, world.free_sets[count.free_sets] = earlier, old
    else:
        row.set_row, row.low_word, row.high_word = old, low, high
    count.free_sets += 1
    _put(world, job, start)
    return earlier < before


@inner
def _compress(world: Reserving, freed: float) -> float:
    """Move reservations to earlier starts, in the order of the queue. Return the latest end of a vacated one.

    An earlier start lies before `freed`, the end of the freed time. The job's own reservation stays in the profile
    during the search: from its start on, its own resources are enough.
    A job is not examined if it needs at least as many resources for at least as long as the job examined before, and
    its reservation begins no earlier: every start before that one's reservation lacks resources for both.
    """
    vacated, first = -math.inf, world.count.first_slice
    known_size, known_wall, known_start = int64(0), 0.0, math.inf
    for i in range(world.count.waiting):
        job = world.queue[i]
        row = world.jobs[job]
        size, wall, start = row.size, row.wall, row.start
        before = min(start, freed)
        if before <= known_start <= start and known_size <= size and known_wall <= wall:
            continue
        k = find_gap(world, first, job, before, start)
        if k >= 0:
            until = row.until
            if world.count.allocation == BASIC:
                advance(world, job, k)
            elif not _move(world, job, before):
                continue
            vacated, freed = max(vacated, until), max(freed, until)
        known_size, known_wall = size, wall
        known_start = row.start if k < 0 or world.count.allocation == BASIC else math.inf
    return vacated


@inner
def _start_due(world: Reserving, now: float) -> float:
    """Start the jobs whose reservations begin now. Return when the next one begins."""
    waiting, soonest = 0, math.inf
    for i in range(world.count.waiting):
        job = world.queue[i]
        row = world.jobs[job]
        if row.start <= now:
            row.finish, row.state = now + row.run, RUNS
            if world.count.allocation == BASIC:
                take(world, row.size, job)
            else:
                _record_pieces(world, job)
            begin(world, job, row.finish)
        else:
            soonest = min(soonest, row.start)
            world.queue[waiting] = job
            waiting += 1
    world.count.waiting = waiting
    return soonest


# --- the steps of the loop ---
@inlined
def _has_room(world: Reserving) -> bool:
    """Return whether one more job fits into the tables.

    Each adds at most two boundaries to the profile, whose columns have four rows for each of `free_sets`: half of them
    may be in the past.
    """
    return len(world.free_sets) >= world.count.waiting + world.count.running + 2


@inlined
def _status(world: Reserving) -> int:
    count = world.count
    if are_all_submitted(world) and count.running == 0 and count.waiting == 0:
        return DONE
    full = count.pieces > len(world.pieces) - count.machine or not _has_room(world)
    return GROW if full else GOES_ON


@inlined
def _planned(world: Reserving) -> float:
    """Return the start of the next reservation."""
    return world.clock.due


@inlined
def _begin_instant(world: Reserving, now: float) -> bool:
    drop_before(world, now)
    return False


@inlined
def _end(world: Reserving, now: float) -> None:
    count, clock, job = world.count, world.clock, end_first(world)
    row = world.jobs[job]
    if row.until > now:
        release(world, now, row.until, row.size)
        clock.freed = max(clock.freed, row.until)
    if count.allocation == BASIC:
        give_back(world, job)
    row.state = ENDED
    release_followers(world, job, ended_well(world, job))
    world.free_sets[count.free_sets] = row.set_row
    count.free_sets += 1


@inlined
def _settle(world: Reserving, now: float) -> bool:
    world.clock.freed = _compress(world, world.clock.freed) if world.clock.freed > now else -math.inf
    return False


@inner
def _submit(world: Reserving, job: int, now: float, alone: bool) -> bool:
    """Submit a job and reserve its resources, or reject it if no gap fits it."""
    count, row = world.count, world.jobs[job]
    if row.size > count.machine:
        row.state = REJECTED
        return False
    if count.order == F1:
        row.rank = f1(world, job)
    count.free_sets -= 1
    row.set_row = world.free_sets[count.free_sets]
    start = find_earliest(world, job, math.inf)
    if start == math.inf:
        row.state = REJECTED
        world.free_sets[count.free_sets] = row.set_row
        count.free_sets += 1
        return False
    _put(world, job, start)
    insert_by_rank(world, job)
    return True


@inlined
def _decide(world: Reserving, now: float, changed: bool) -> None:
    """Start the jobs that are due; if the tables must grow first, this instant continues afterwards."""
    world.clock.due = _start_due(world, now) if _has_room(world) else now


_run = replay_loop(
    _status, _end, _submit, _decide, planned=_planned, begin=_begin_instant, settle=_settle, has_room=_has_room
)


@inner
def call(world: Reserving, instants: int) -> int:
    """Run the replay for a number of instants. Return DONE, GROW or PAUSED."""
    return _run(world, instants)


SIGNATURES = {
    "queue.conservative": (ReservingType(), types.int64),
    "queue.conservative_networked": (NetworkedReservingType(), types.int64),
}
