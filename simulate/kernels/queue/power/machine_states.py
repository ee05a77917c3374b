"""Which machines are idle, off or kept off, who is given which, and what becomes of them at the end.

Rule: given out first is what is idle, then what is off, then, to who cannot do without, what is kept off; of each the
lowest numbers.
"""

from __future__ import annotations

import numpy as np

from ...jit import inner
from ..free import popcount, put_into, take_from, word_mask
from ..running import add
from ..tables import ENDED, FREE, LOWEST, MACHINE, PIECES, RUNS
from .rows import moved
from .tables import AT_FIRST, BLOCKED, TO_IDLE, TO_KEPT, TO_OFF, Clock, Count


@inner
def boot_time(world, size):
    """How long a job that is given so many machines now waits for them."""
    return world.clock[Clock.ON_S] if size > world.count[Count.IDLE] else 0.0


@inner
def is_wide(world, size):
    """Whether a job cannot do without machines that are kept off."""
    count = world.count
    return size > count[MACHINE] - count[Count.KEPT] - count[Count.KEEPING]


@inner
def usable(world, size):
    """Machines that a job of that size may be given now; under a power cap it may be less than none."""
    count = world.count
    return count[FREE] + (count[Count.KEPT] if is_wide(world, size) else 0)


@inner
def begin(world, job, now):
    """Give a job its machines."""
    row, count = world.jobs[job], world.count
    size = row.size
    idle = min(size, count[Count.IDLE])
    off = min(size - idle, count[Count.OFF])
    row.taken, row.piece0 = now, count[PIECES]
    if idle > 0:
        take_from(world, world.free, LOWEST, idle)
        used_again(world, row.piece0)
    row.booted = count[PIECES]
    if off > 0:
        take_from(world, world.off, Count.LOWEST_OFF, off)
    if size > idle + off:
        take_from(world, world.kept, Count.LOWEST_KEPT, size - idle - off)
    row.pieces = count[PIECES] - row.piece0
    row.start = now + (world.clock[Clock.ON_S] if size > idle else 0.0)
    row.finish, row.state = row.start + row.run, RUNS
    count[Count.IDLE] -= idle
    count[Count.OFF] -= off
    count[Count.KEPT] -= size - idle - off
    count[FREE] -= idle + off
    count[Count.ACTIVE] += 1
    count[Count.ALLOCATED] += size
    if size > idle:
        count[Count.BOOTING] += size - idle
        _append(world, job, Count.FIRST_BOOT, Count.LAST_BOOT)
    else:
        count[Count.COMPUTING] += size
    add(world, job, row.finish, row.start + row.wall)
    moved(world, row.start + row.wall, 1, size)


@inner
def used_again(world, piece):
    """The machines of the pieces from that one on are idle no more, so none of them has been for long. O(words)."""
    if world.count[Count.TIRED] == 0:
        return
    for i in range(piece, world.count[PIECES]):
        first, last = np.int64(world.pieces[i].first), np.int64(world.pieces[i].last)
        for word in range(first // 64, last // 64 + 1):
            mask = word_mask(word, first, last)
            world.count[Count.TIRED] -= popcount(world.tired[word] & mask)
            world.tired[word] &= ~mask


@inner
def _append(world, job, first, last):
    """To one of the two lists; nobody is in both at a time."""
    count = world.count
    if count[first] < 0:
        count[first] = job
    else:
        world.jobs[count[last]].next = job
    count[last], world.jobs[job].next = job, -1


@inner
def booted(world):
    """The next job has booted its machines: it computes."""
    count = world.count
    job = count[Count.FIRST_BOOT]
    row = world.jobs[job]
    for i in range(row.booted, row.piece0 + row.pieces):
        count[Count.BOOTING] -= world.pieces[i].last - world.pieces[i].first + 1
    count[Count.COMPUTING] += row.size
    count[Count.FIRST_BOOT] = row.next


@inner
def become_idle(world, job):
    """The machines of a row are on and have nothing to do."""
    count, row = world.count, world.jobs[job]
    for i in range(row.piece0, row.piece0 + row.pieces):
        first, last = np.int64(world.pieces[i].first), np.int64(world.pieces[i].last)
        put_into(world, world.free, LOWEST, first, last)
        if count[Count.SHUTS] == 1 and world.clock[Clock.IDLE_FOR] > 0.0:
            world.since[first : last + 1] = job
    count[Count.IDLE] += row.size
    count[FREE] += row.size
    if count[Count.SHUTS] == 1:
        _append(world, job, Count.FIRST_IDLE, Count.LAST_IDLE)


@inner
def finish(world, job):
    """A row has come to its end. True: it was a job."""
    count, row = world.count, world.jobs[job]
    moved(world, row.start + row.wall, -1, 0 if row.state == BLOCKED or row.state == TO_KEPT else row.size)
    if row.state == BLOCKED:
        count[FREE] += row.size
        return False
    if row.state == TO_OFF or row.state == TO_KEPT:
        to_off = row.state == TO_OFF
        for i in range(row.piece0, row.piece0 + row.pieces):
            first, last = np.int64(world.pieces[i].first), np.int64(world.pieces[i].last)
            if to_off:
                put_into(world, world.off, Count.LOWEST_OFF, first, last)
            else:
                put_into(world, world.kept, Count.LOWEST_KEPT, first, last)
        count[Count.ENDING] -= row.size
        if to_off:
            count[Count.OFF] += row.size
            count[FREE] += row.size
        else:
            count[Count.KEPT] += row.size
            count[Count.KEEPING] -= row.size
        return False
    if row.state == TO_IDLE:
        count[Count.BOOTING] -= row.size
        become_idle(world, job)
        return False
    row.state = ENDED
    count[Count.ACTIVE] -= 1
    count[Count.ALLOCATED] -= row.size
    count[Count.COMPUTING] -= row.size
    become_idle(world, job)
    return True


@inner
def at_first(world, now):
    """All machines are idle from now on."""
    count = world.count
    job = count[Count.ROWS]
    count[Count.ROWS] = job + 1
    row = world.jobs[job]
    row.state, row.taken, row.start, row.finish, row.size = AT_FIRST, now, now, now, 0
    row.piece0, row.pieces, row.booted = count[PIECES], 1, count[PIECES] + 1
    world.pieces[count[PIECES]].first, world.pieces[count[PIECES]].last = 0, count[MACHINE] - 1
    count[PIECES] += 1
    world.since[:] = job
    if count[Count.SHUTS] == 1:
        _append(world, job, Count.FIRST_IDLE, Count.LAST_IDLE)
