"""Machines are switched off and on: those that have been idle for long enough, and those that are to be kept off.

Rule: a change is a row like a job's, with its machines for as long as it takes. The first that waits is never delayed:
what it cannot spare stays on.
"""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros

from ...jit import inner
from ..free import popcount, put_into, take_from, take_out, word_mask
from ..running import add
from ..tables import FREE, MACHINE, PIECES, RESERVATION, RESERVED, SPARE, WAITING
from .machines import used_again
from .rows import moved
from .tables import BLOCKED, TO_IDLE, TO_KEPT, TO_OFF, Clock, Count

_ALL, _NONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0)


@inner
def change(world, kind, now, lasts, first_piece, size):
    """Machines, written down from `first_piece` on, begin to change."""
    count = world.count
    job = count[Count.ROWS]
    count[Count.ROWS] = job + 1
    row = world.jobs[job]
    row.state, row.size, row.taken, row.start, row.run, row.wall = kind, size, now, now, lasts, lasts
    row.finish, row.piece0, row.pieces = now + lasts, first_piece, count[PIECES] - first_piece
    row.booted = count[PIECES]
    add(world, job, row.finish, now + lasts)
    moved(world, now + lasts, 1, 0 if kind == BLOCKED or kind == TO_KEPT else size)


@inner
def take_highest(world, free, size, word):
    """Take the highest `size` of a set, which has as many, and write them down as pieces. O(words looked at).

    Args:
        word: behind which the set has none. Returned is the word behind which it has none then.
    """
    pieces, used, left, below = world.pieces, world.count[PIECES], size, np.int64(-2)
    while left > 0:
        bits = free[word]
        while bits != _NONE and left > 0:
            high = 63 - np.int64(leading_zeros(bits))
            run = ~(bits << np.uint64(63 - high))
            length = min(np.int64(64) if run == _NONE else np.int64(leading_zeros(run)), left)
            bits &= ~((_ALL >> np.uint64(64 - length)) << np.uint64(high + 1 - length))
            left -= length
            last = word * 64 + high
            if last == below:
                pieces[used - 1].first = last + 1 - length
            else:
                pieces[used].first, pieces[used].last = last + 1 - length, last
                used += 1
            below = last - length
        free[word] = bits
        word -= 1
    world.count[PIECES] = used
    return word + 1


@inner
def _note_tired(world, now):
    """Mark the machines that have been idle for long enough. O(machines that became idle then).

    Who is switched off at once is so by the very row by which it became idle.
    """
    count, jobs, wait = world.count, world.jobs, world.clock[Clock.IDLE_FOR]
    while count[Count.FIRST_IDLE] >= 0:
        since = count[Count.FIRST_IDLE]
        row = jobs[since]
        if row.finish + wait > now:
            break
        for i in range(row.piece0, row.piece0 + row.pieces):
            first, last = np.int64(world.pieces[i].first), np.int64(world.pieces[i].last)
            for word in range(first // 64, last // 64 + 1):
                bits = world.free[word] & word_mask(word, first, last)
                if bits != _NONE and wait > 0.0:
                    bits &= _since(world, max(first, 64 * word), min(last, 64 * word + 63), since)
                world.tired[word] |= bits
                count[Count.HIGHEST_TIRED] = max(count[Count.HIGHEST_TIRED], word)
                count[Count.TIRED] += popcount(bits)
        count[Count.FIRST_IDLE] = row.next


@inner
def _since(world, first, last, row):
    """Which machines of a word became idle by that row."""
    bits = _NONE
    for number in range(first, last + 1):
        bits |= np.uint64(world.since[number] == row) << np.uint64(number % 64)
    return bits


@inner
def _spared(world, size, late):
    """How many of `size` machines may be taken away: those that the first that waits can spare, all if it need not."""
    count = world.count
    if count[WAITING] == 0:
        return size
    if count[RESERVED] == 0:
        return 0
    if not late:
        return size
    size = min(size, count[SPARE])
    count[SPARE] -= size
    return size


@inner
def shut_down(world, now):
    """Switch off what has been idle for long enough, the highest first; the first that waits is not delayed by it."""
    count, clock, pieces = world.count, world.clock, world.pieces
    _note_tired(world, now)
    size = _spared(world, count[Count.TIRED], now + clock[Clock.OFF_S] > clock[RESERVATION])
    if size == 0:
        return
    begin_piece = count[PIECES]
    count[Count.HIGHEST_TIRED] = take_highest(world, world.tired, size, count[Count.HIGHEST_TIRED])
    for i in range(begin_piece, count[PIECES]):
        take_out(world.free, np.int64(pieces[i].first), np.int64(pieces[i].last))
    count[Count.TIRED] -= size
    count[Count.IDLE] -= size
    count[FREE] -= size
    count[Count.ENDING] += size
    change(world, TO_OFF, now, clock[Clock.OFF_S], begin_piece, size)


@inner
def keep_off(world, now):
    """Keep machines off that are due: those that are off, then the highest that are idle; nobody is delayed by it."""
    count = world.count
    size = _spared(world, min(count[Count.DUE], count[Count.OFF] + count[Count.IDLE]), True)
    off = min(size, count[Count.OFF])
    if off > 0:
        begin_piece = count[PIECES]
        take_highest(world, world.off, off, len(world.off) - 1)
        for i in range(begin_piece, count[PIECES]):
            first, last = np.int64(world.pieces[i].first), np.int64(world.pieces[i].last)
            put_into(world, world.kept, Count.LOWEST_KEPT, first, last)
        count[PIECES] = begin_piece
        count[Count.OFF] -= off
        count[Count.KEPT] += off
    if size > off:
        begin_piece = count[PIECES]
        take_highest(world, world.free, size - off, len(world.free) - 1)
        used_again(world, begin_piece)
        count[Count.IDLE] -= size - off
        count[Count.ENDING] += size - off
        count[Count.KEEPING] += size - off
        change(world, TO_KEPT, now, world.clock[Clock.OFF_S], begin_piece, size - off)
    count[FREE] -= size
    count[Count.DUE] -= size
    count[Count.SWITCHED] += size


@inner
def give_up(world, now):
    """Switch kept machines on that are due, the lowest."""
    count = world.count
    size = min(count[Count.DUE], count[Count.KEPT])
    if size > 0:
        begin_piece = count[PIECES]
        take_from(world, world.kept, Count.LOWEST_KEPT, size)
        count[Count.KEPT] -= size
        count[Count.BOOTING] += size
        change(world, TO_IDLE, now, world.clock[Clock.ON_S], begin_piece, size)
        count[RESERVED] = 0
        count[Count.DUE] -= size
        count[Count.SWITCHED] += size


@inner
def block(world, now, until):
    """A power cap leaves machines unused from now on."""
    count = world.count
    size = count[MACHINE] - count[Count.ALLOWED]
    if size > 0:
        change(world, BLOCKED, now, until - now, count[PIECES], size)
        count[FREE] -= size
        count[RESERVED] = 0
