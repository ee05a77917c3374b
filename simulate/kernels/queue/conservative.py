"""Conservative backfilling: every job that waits has its place in the profile, and starts on identified resources.

Rule: at an event each job that waits, in the queue's order, is taken out of the profile and put back at the earliest
place; who cannot go earlier keeps his place, resources included. That is only done where it can change anything: an
earlier start reaches into a time at which something was freed since, by an end before the walltime or by a move.
"""

from __future__ import annotations

import math

import numpy as np
from numba.core import types
from numba.cpython.unsafe.numbers import trailing_zeros

from ..jit import inner
from ..native import BlockType, register
from .blocks import room, shortage, survey
from .dependents import next_submitted, release_followers
from .ends import begin, end_first, next_end
from .free import give_back, take
from .holes import find, until
from .profile import leave, occupy, release, trim
from .rich import some_wait
from .scored import F1, f1
from .tables import (
    ALLOCATION,
    BASIC,
    DONE,
    DUE,
    ENDED,
    FREE_SETS,
    FREED,
    GROW,
    INSTANTS,
    MACHINE,
    NEXT,
    NOW,
    ORDER,
    PAUSED,
    PIECES,
    REJECTED,
    RUNNING,
    RUNS,
    SLICES,
    WAITING,
    Reserving,
)

_NONE, _ONE = np.uint64(0), np.uint64(1)


class ReservingType(BlockType):
    """Numba's type of Reserving."""


register(Reserving, ReservingType)


@inner
def _note_pieces(world, job):
    """Write down which resources a job has."""
    row, used = world.jobs[job].set_row, world.count[PIECES]
    world.jobs[job].piece0 = used
    last = np.int64(-2)
    for word in range(world.jobs[job].low_word, world.jobs[job].high_word + 1):
        bits = world.sets[row, word]
        while bits != _NONE:
            low = np.int64(trailing_zeros(bits))
            run = ~(bits >> np.uint64(low))
            length = np.int64(64) if run == _NONE else np.int64(trailing_zeros(run))
            first = word * 64 + low
            if first == last + 1:
                world.pieces[used - 1].last = first + length - 1
            else:
                world.pieces[used].first, world.pieces[used].last = first, first + length - 1
                used += 1
            last = first + length - 1
            bits = _NONE if low + length == 64 else bits >> np.uint64(low + length) << np.uint64(low + length)
    world.jobs[job].pieces = used - world.jobs[job].piece0
    world.count[PIECES] = used


@inner
def _put(world, job, start):
    """Give a job its place."""
    row = world.jobs[job]
    row.start, row.until = start, until(start, row.wall)
    occupy(world, start, row.until, row.size)


@inner
def _take_out(world, job):
    """Take a job out of the profile."""
    row = world.jobs[job]
    release(world, row.start, row.until, row.size)
    leave(world, row.start)
    leave(world, row.until)


@inner
def _may_move(world, job, freed):
    """Whether counts allow a job an earlier start, in a hole that reaches into what was freed: before `freed`.

    Nothing is taken out for the question: where the job has its own place, its own resources are enough.
    """
    row, total = world.jobs[job], world.count[SLICES]
    latest = min(row.start, freed)
    survey(world)
    first = room(world, 0, row.size, latest)
    while first < total:
        begin = max(world.clock[NOW], world.slices[first].time)
        short = shortage(world, first, row.size, min(until(begin, row.wall), row.start))
        if short < 0:
            return True
        first = room(world, short + 1, row.size, latest)
    return False


@inner
def _move(world, job):
    """Take a job out and put it back where it can start earlier, else where it was; True if it has moved."""
    count, row = world.count, world.jobs[job]
    before, old, low, high = row.start, row.set_row, row.low_word, row.high_word
    _take_out(world, job)
    count[FREE_SETS] -= 1
    row.set_row = world.free_sets[count[FREE_SETS]]
    start, spare = find(world, job), row.set_row
    if start < before:
        spare = old
    else:
        start, row.set_row, row.low_word, row.high_word = before, old, low, high
    world.free_sets[count[FREE_SETS]] = spare
    count[FREE_SETS] += 1
    _put(world, job, start)
    return start < before


@inner
def _compress(world, freed):
    """Move jobs that wait to earlier places, in the queue's order; returns until when places were left."""
    left = -math.inf
    for i in range(world.count[WAITING]):
        job = world.queue[i]
        end = world.jobs[job].until
        if _may_move(world, job, freed) and _move(world, job):
            left, freed = max(left, end), max(freed, end)
    return left


@inner
def _start_due(world, now):
    """Start jobs whose place begins now; returns when the next begins."""
    kept, soonest = 0, math.inf
    for i in range(world.count[WAITING]):
        job = world.queue[i]
        row = world.jobs[job]
        if row.start <= now:
            row.finish, row.state = now + row.run, RUNS
            if world.count[ALLOCATION] == BASIC:
                take(world, row.size, job)
            else:
                _note_pieces(world, job)
            begin(world, job, row.finish)
        else:
            soonest = min(soonest, row.start)
            world.queue[kept] = job
            kept += 1
    world.count[WAITING] = kept
    return soonest


@inner
def _insert(world, job):
    """Into the queue, by rank."""
    i = world.count[WAITING]
    while i > 0 and world.jobs[world.queue[i - 1]].rank > world.jobs[job].rank:
        world.queue[i] = world.queue[i - 1]
        i -= 1
    world.queue[i] = job
    world.count[WAITING] += 1


@inner
def _submit(world, job):
    """Take a job in, and give it its place; who has none is rejected."""
    count, row = world.count, world.jobs[job]
    if row.size > count[MACHINE]:
        row.state = REJECTED
        return
    if count[ORDER] == F1:
        row.rank = f1(world, job)
    count[FREE_SETS] -= 1
    row.set_row = world.free_sets[count[FREE_SETS]]
    start = find(world, job)
    if start == math.inf:
        row.state = REJECTED
        world.free_sets[count[FREE_SETS]] = row.set_row
        count[FREE_SETS] += 1
        return
    _put(world, job, start)
    _insert(world, job)


@inner
def _cramped(world):
    """Whether there may not be room for one more job: each has two boundaries in the profile at most."""
    jobs = world.count[WAITING] + world.count[RUNNING] + 1
    return len(world.slices) < 2 * jobs + 2 or len(world.free_sets) < jobs + 1


@inner
def call(world, instants):
    """Go on for so many instants; DONE, GROW or PAUSED."""
    jobs, count, clock, some = world.jobs, world.count, world.clock, some_wait(world)
    total, capacity = len(jobs), len(world.pieces) - count[MACHINE]
    while True:
        if count[NEXT] >= total and count[RUNNING] == 0 and count[WAITING] == 0:
            return DONE
        if count[PIECES] > capacity or _cramped(world):
            return GROW
        if instants == 0:
            return PAUSED
        instants -= 1
        count[INSTANTS] += 1
        now = min(jobs[count[NEXT]].submit if count[NEXT] < total else math.inf, clock[DUE])
        now = min(now, next_end(world, now))
        clock[NOW] = now
        trim(world, now)
        freed = clock[FREED]
        while next_end(world, now) == now:
            job = end_first(world)
            row = jobs[job]
            if row.until > now:
                release(world, now, row.until, row.size)
                leave(world, row.until)
                freed = max(freed, row.until)
            if count[ALLOCATION] == BASIC:
                give_back(world, job)
            row.state = ENDED
            if some:
                release_followers(world, job)
            world.free_sets[count[FREE_SETS]] = row.set_row
            count[FREE_SETS] += 1
        clock[FREED] = _compress(world, freed) if freed > now else -math.inf
        job = 0
        while job >= 0 and not _cramped(world):
            job = next_submitted(world, total, now, some)
            if job >= 0:
                _submit(world, job)
        if job >= 0:  # room first; this instant goes on afterwards
            clock[DUE] = now
            continue
        clock[DUE] = _start_due(world, now)


SIGNATURE = (ReservingType(), types.int64)
