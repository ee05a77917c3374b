"""Switching machines off and on: opportunistic, proportional and inertial shutdown (thesis of Poquet, 2017, 7.3, 7.4).

Rule: a switch is a row like a job's that occupies its machines for its duration. The first waiting job (the head) is
never delayed: machines that it needs stay on. Numbers of machines kept off are decided at periods only; due machines
are switched at once if possible, and later if that is allowed.
The liquid load horizon is the time in which all waiting jobs would finish if their work were spread freely over the
machines. It is updated from its last position, along the few rows that changed; it is evaluated after each instant and
before the next, and integrated by the trapezoidal rule.
"""

from __future__ import annotations

import math

import numpy as np

from ....arrays import Array
from ...block import int64
from ...compile import leading_zeros
from ...jit import inner
from ..resources import popcount, put_into, take_from, take_out, word_mask
from ..running import add_running
from .inertia import next_turn
from .machine_states import moved, used_again
from .tables import (
    BLOCKED,
    INERTIAL,
    NO_KEEPER,
    PROPORTIONAL,
    SWITCH_OFF,
    SWITCH_ON,
    TO_IDLE,
    TO_KEPT,
    TO_OFF,
    Powered,
)

_next_turn = inner(next_turn)
_ALL, _NONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0)


@inner
def change(world: Powered, kind: int, now: float, lasts: float, first_piece: int, size: int) -> None:
    """Begin a switch of machines.

    Args:
        world: the state.
        kind: state of the row.
        now: begin, seconds.
        lasts: duration, seconds.
        first_piece: first of the pieces with its machines.
        size: number of machines.
    """
    count = world.count
    job = count.rows
    count.rows = job + 1
    row = world.jobs[job]
    row.state, row.size, row.taken, row.start, row.run, row.wall = kind, size, now, now, lasts, lasts
    row.finish, row.piece0, row.pieces = now + lasts, first_piece, count.pieces - first_piece
    row.booted = count.pieces
    add_running(world, job, row.finish, now + lasts)
    moved(world, now + lasts, 1, 0 if kind == BLOCKED or kind == TO_KEPT else size)


@inner
def take_highest(world: Powered, free: Array, size: int, word: int) -> int:
    """Remove the `size` highest machines of a set and record them as pieces. O(words scanned).

    Args:
        world: the state.
        free: the set, with at least `size` machines.
        size: number of machines.
        word: last word of the set that may be non-empty.

    Returns:
        The last word that may be non-empty afterwards.
    """
    pieces, used, missing, below = world.pieces, world.count.pieces, size, int64(-2)
    while missing > 0:
        bits = free[word]
        while bits != _NONE and missing > 0:
            high = 63 - int64(leading_zeros(bits))
            run = ~(bits << np.uint64(63 - high))
            length = min(int64(64) if run == _NONE else int64(leading_zeros(run)), missing)
            bits &= ~((_ALL >> np.uint64(64 - length)) << np.uint64(high + 1 - length))
            missing -= length
            last = word * 64 + high
            if last == below:
                pieces[used - 1].first = last + 1 - length
            else:
                pieces[used].first, pieces[used].last = last + 1 - length, last
                used += 1
            below = last - length
        free[word] = bits
        word -= 1
    world.count.pieces = used
    return word + 1


@inner
def _mark_long_idle(world: Powered, now: float) -> None:
    """Mark the machines that have been idle for long enough. O(machines that became idle then).

    With an idle time of 0, all idle machines of the row are marked.
    """
    count, jobs, wait = world.count, world.jobs, world.clock.idle_for
    while world.became_idle.first >= 0:
        since = world.became_idle.first
        row = jobs[since]
        if row.finish + wait > now:
            break
        for i in range(row.piece0, row.piece0 + row.pieces):
            first, last = int64(world.pieces[i].first), int64(world.pieces[i].last)
            for word in range(first // 64, last // 64 + 1):
                bits = world.free[word] & word_mask(word, first, last)
                if bits != _NONE and wait > 0.0:
                    bits &= _since(world, max(first, 64 * word), min(last, 64 * word + 63), since)
                world.tired[word] |= bits
                count.highest_tired = max(count.highest_tired, word)
                count.tired += popcount(bits)
        world.became_idle.first = row.next


@inner
def _since(world: Powered, first: int, last: int, row: int) -> np.uint64:
    """Return which machines of a word became idle with that row."""
    bits = _NONE
    for number in range(first, last + 1):
        bits |= np.uint64(world.since[number] == row) << np.uint64(number % 64)
    return bits


@inner
def _take_spare(world: Powered, size: int, late: bool) -> int:
    """Return how many of `size` machines may be removed without delaying the head, and reduce its spare machines."""
    count = world.count
    if count.waiting == 0:
        return size
    if count.reserved == 0:
        return 0
    if not late:
        return size
    size = min(size, count.spare)
    count.spare -= size
    return size


@inner
def switch_off_idle(world: Powered, now: float) -> None:
    """Switch off machines that have been idle for long enough, the highest first, without delaying the head."""
    count, clock, pieces = world.count, world.clock, world.pieces
    _mark_long_idle(world, now)
    size = _take_spare(world, count.tired, now + clock.off_s > clock.reservation)
    if size == 0:
        return
    begin_piece = count.pieces
    count.highest_tired = take_highest(world, world.tired, size, count.highest_tired)
    for i in range(begin_piece, count.pieces):
        take_out(world.free, int64(pieces[i].first), int64(pieces[i].last))
    count.tired -= size
    count.idle -= size
    count.free -= size
    count.ending += size
    change(world, TO_OFF, now, clock.off_s, begin_piece, size)


@inner
def switch_off_kept(world: Powered, now: float) -> None:
    """Keep the due number of machines off: those already off, then the highest idle ones, without delaying the head."""
    count = world.count
    size = _take_spare(world, min(count.due, count.off + count.idle), True)
    off = min(size, count.off)
    if off > 0:
        begin_piece = count.pieces
        take_highest(world, world.off, off, len(world.off) - 1)
        for i in range(begin_piece, count.pieces):
            first, last = int64(world.pieces[i].first), int64(world.pieces[i].last)
            count.lowest_kept = put_into(world.kept, count.lowest_kept, first, last)
        count.pieces = begin_piece
        count.off -= off
        count.kept += off
    if size > off:
        begin_piece = count.pieces
        take_highest(world, world.free, size - off, len(world.free) - 1)
        used_again(world, begin_piece)
        count.idle -= size - off
        count.ending += size - off
        count.keeping += size - off
        change(world, TO_KEPT, now, world.clock.off_s, begin_piece, size - off)
    count.free -= size
    count.due -= size
    count.switched += size


@inner
def switch_on_kept(world: Powered, now: float) -> None:
    """Switch on the due number of machines that are kept off, the lowest first."""
    count = world.count
    size = min(count.due, count.kept)
    if size > 0:
        begin_piece = count.pieces
        count.lowest_kept = take_from(world, world.kept, count.lowest_kept, size)
        count.kept -= size
        count.booting += size
        change(world, TO_IDLE, now, world.clock.on_s, begin_piece, size)
        count.reserved = 0
        count.due -= size
        count.switched += size


@inner
def block_capped(world: Powered, now: float, until: float) -> None:
    """Block the machines that a power cap leaves unused, until the end of its window."""
    count = world.count
    size = count.machine - count.allowed
    if size > 0:
        change(world, BLOCKED, now, until - now, count.pieces, size)
        count.free -= size
        count.reserved = 0


@inner
def _amount(world: Powered, i: int) -> int:
    """Return the machines that become free for all jobs at the end of a row."""
    job = world.ends[i].job
    if job >= world.count.total and (world.jobs[job].state == TO_KEPT or world.jobs[job].state == BLOCKED):
        return 0
    return world.ends[i].size


@inner
def liquid_load_horizon(world: Powered, now: float) -> float:
    """Return the liquid load horizon in seconds from now. O(rows passed since the last call)."""
    count, clock, ends = world.count, world.clock, world.ends
    load, free, time = clock.load, max(count.free, 0), clock.reached
    if count.waiting == 0 or load <= 0.0:
        clock.reached = -math.inf
        return 0.0
    more, first = free - count.free_before, count.first_end
    if now == clock.looked_at and more == 0 and load == clock.load_before and count.flows == 0:
        return clock.horizon
    behind = first + count.running
    remainder = clock.undone + count.free_before * (now - clock.looked_at)
    remainder += load - clock.load_before - more * (time - now)
    then, i = count.free_then + more, first
    if time >= now:
        i = behind - count.behind
        while remainder <= 0.0 and i > first:
            back = ends[i - 1].time
            remainder += then * (time - back)
            time = back
            if remainder <= 0.0:
                i -= 1
                then -= _amount(world, i)
    if i == first or time <= now:
        i, time, remainder, then = first, now, load, free
    while i < behind:
        capacity = then * (ends[i].time - time)
        if capacity >= remainder:
            break
        remainder -= capacity
        time = ends[i].time
        then += _amount(world, i)
        i += 1
    count.free_before, count.free_then = free, then
    clock.looked_at, clock.load_before = now, load
    clock.reached, clock.undone = time, remainder
    count.behind, count.flows = behind - i, 0
    return math.inf if then == 0 else time + remainder / then - now


@inner
def next_period(world: Powered) -> float:
    """Return the time of the next decision."""
    if world.count.keeper == NO_KEEPER:
        return math.inf
    return world.clock.first + world.count.period * world.clock.period_s


@inner
def integrate_horizon(world: Powered, now: float) -> None:
    """Integrate the horizon until `now`, before an instant."""
    clock = world.clock
    if world.count.keeper == INERTIAL and now > clock.seen:
        after, clock.horizon = clock.horizon, liquid_load_horizon(world, now)
        clock.summed += (after + clock.horizon) * 0.5 * (now - clock.seen)
        clock.seen = now


@inner
def evaluate_horizon(world: Powered, now: float) -> None:
    """Evaluate the horizon after an instant."""
    if world.count.keeper == INERTIAL:
        world.clock.horizon = liquid_load_horizon(world, now)


@inner
def _decide(world: Powered) -> None:
    """Decide the next step of inertial shutdown."""
    count, clock = world.count, world.clock
    mean, before, last = clock.summed / clock.period_s, clock.mean, count.switched
    clock.mean, clock.summed, count.switched = mean, 0.0, 0
    on, number = _next_turn(mean, before, clock.bound, count.kind == SWITCH_ON, last, count.doubles == 1)
    count.kind, count.due = SWITCH_ON if on else SWITCH_OFF, min(number, _switchable(world, on))


@inner
def _switchable(world: Powered, on: bool) -> int:
    """Return the number of machines that could be switched now, or eventually if later switches are allowed."""
    count = world.count
    if count.later == 0:
        return count.kept if on else count.off + count.idle
    kept_count = count.kept + count.keeping
    return kept_count if on else count.machine - kept_count


@inner
def decide(world: Powered, now: float, decides: bool) -> None:
    """Decide at the end of a period, and switch the machines that are due."""
    count = world.count
    if count.keeper == NO_KEEPER:
        return
    if decides:
        count.period += 1
        if count.keeper == PROPORTIONAL:
            kept_count = count.kept + count.keeping
            count.due = max(count.machine - count.usable - kept_count, 0)
        else:
            _decide(world)
    if count.due > 0:
        if count.kind == SWITCH_OFF:
            switch_off_kept(world, now)
        else:
            switch_on_kept(world, now)
        if count.later == 0:
            count.due = 0
