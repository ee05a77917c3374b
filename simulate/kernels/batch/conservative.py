"""Conservative backfilling with identified resources: every job that waits has its place in the profile.

Rule: at an event each job that waits, in the queue's order, is taken out of the profile and put back at the earliest
place, which is never later than the one it had. That is left out where it could change nothing: nobody ended before
his walltime since, and in the last such pass nobody moved.
"""

from __future__ import annotations

import math

import numpy as np
from numba.core import types
from numba.cpython.unsafe.numbers import trailing_zeros

from ..jit import inner
from ..native import BlockType, register
from .holes import find, until
from .profile import leave, occupy, release, trim
from .running import ends_at, heap_pop, heap_push
from .tables import (
    DONE,
    DUE,
    ENDED,
    FREE_SETS,
    GROW,
    INSTANTS,
    MACHINE,
    MOVED,
    NEXT,
    NOW,
    PAUSED,
    PIECES,
    REJECTED,
    RUNNING,
    RUNS,
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
def _put(world, job):
    """Give a job its place."""
    row = world.jobs[job]
    row.start = find(world, job)
    if row.start < math.inf:
        occupy(world, job, row.start, until(row.start, row.wall))


@inner
def _take_out(world, job, begin):
    """Take a job out of the profile from `begin` on."""
    row = world.jobs[job]
    end = until(row.start, row.wall)
    release(world, job, begin, end)
    leave(world, row.start)
    leave(world, end)


@inner
def _compress(world):
    """Move jobs that wait to earlier places, in the queue's order."""
    world.count[MOVED] = 0
    for i in range(world.count[WAITING]):
        job = world.queue[i]
        before = world.jobs[job].start
        _take_out(world, job, before)
        _put(world, job)
        if world.jobs[job].start < before:
            world.count[MOVED] = 1


@inner
def _start_due(world, now):
    """Start jobs whose place begins now; returns when the next begins."""
    kept, soonest = 0, math.inf
    for i in range(world.count[WAITING]):
        job = world.queue[i]
        row = world.jobs[job]
        if row.start <= now:
            row.finish, row.state = now + row.run, RUNS
            _note_pieces(world, job)
            heap_push(world, job, row.finish)
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
def _cramped(world):
    """Whether there may not be room for one more job: each has two boundaries in the profile at most."""
    jobs = world.count[WAITING] + world.count[RUNNING] + 1
    return len(world.free_rows) < 2 * jobs + 2 or len(world.free_sets) < jobs


@inner
def call(world, instants):
    """Go on for so many instants; DONE, GROW or PAUSED."""
    jobs, count, clock = world.jobs, world.count, world.clock
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
        if count[RUNNING] > 0:
            now = min(now, ends_at(world))
        clock[NOW] = now
        trim(world, now)
        early = count[MOVED] == 1
        while count[RUNNING] > 0 and ends_at(world) == now:
            job = heap_pop(world)
            row = jobs[job]
            end = until(row.start, row.wall)
            if end > now:
                release(world, job, now, end)
                leave(world, end)
                early = True
            row.state = ENDED
            world.free_sets[count[FREE_SETS]] = row.set_row
            count[FREE_SETS] += 1
        if early:
            _compress(world)
        while count[NEXT] < total and jobs[count[NEXT]].submit == now:
            job = count[NEXT]
            count[NEXT] = job + 1
            if jobs[job].size > count[MACHINE]:
                jobs[job].state = REJECTED
                continue
            if _cramped(world):  # room first; this instant goes on afterwards
                count[NEXT] = job
                break
            count[FREE_SETS] -= 1
            jobs[job].set_row = world.free_sets[count[FREE_SETS]]
            _put(world, job)
            if jobs[job].start == math.inf:
                jobs[job].state = REJECTED
                world.free_sets[count[FREE_SETS]] = jobs[job].set_row
                count[FREE_SETS] += 1
                continue
            _insert(world, job)
        clock[DUE] = _start_due(world, now)


SIGNATURE = (ReservingType(), types.int64)
