"""The availability profile: the number of free resources over time, if all jobs run until their walltimes.

Rule: slices ascend in time and the last has no end. A boundary exists as long as a job begins or ends at it. Blocks of
SPAN slices keep the fewest and the most free resources, so searches skip whole blocks; they are updated lazily from the
first changed slice on.
A job fits at the earliest slice from which enough resources are free for its walltime. The allocation BASIC needs only
counts: it takes the lowest free numbers when the job starts. The other variants choose among the resources that no
other job has in that time (thesis of Poquet, 2017, chapter 5).
"""

from __future__ import annotations

import math

import numpy as np

from ..jit import inner
from .tables import ALLOCATION, BASIC, CONTIGUOUS, LOCAL, MACHINE, NOW, RUNNING, SLICES, SPAN, STRICT, SURVEYED, WAITING


@inner
def changed(world, k):
    """Mark the slices from `k` on as changed."""
    if k < world.count[SURVEYED]:
        world.count[SURVEYED] = k


@inner
def survey(world):
    """Update the summaries of changed blocks. O(slices from the first of them on)."""
    slices, blocks, total = world.slices, world.blocks, world.count[SLICES]
    if world.count[SURVEYED] >= total:
        return
    first = world.count[SURVEYED] // SPAN * SPAN
    while first + SPAN <= total:
        least = most = slices[first].free
        for k in range(first + 1, first + SPAN):
            least, most = min(least, slices[k].free), max(most, slices[k].free)
        blocks[first // SPAN].least, blocks[first // SPAN].most = least, most
        first += SPAN
    world.count[SURVEYED] = total


@inner
def first_with(world, k, size, before):
    """Return the first slice from `k` on and before a time with `size` free resources, else the number of slices.

    O(slices / SPAN).
    """
    slices, total = world.slices, world.count[SLICES]
    while k < total and slices[k].time < before:
        if k % SPAN == 0 and k + SPAN <= total and world.blocks[k // SPAN].most < size:
            k += SPAN
        elif slices[k].free < size:
            k += 1
        else:
            return k
    return total


@inner
def first_without(world, k, size, end):
    """Return the first slice from `k` on and before `end` with fewer than `size` free; else -1. O(slices / SPAN)."""
    slices, total = world.slices, world.count[SLICES]
    while k < total and slices[k].time < end:
        if k % SPAN == 0 and k + SPAN <= total and world.blocks[k // SPAN].least >= size:
            k += SPAN
        elif slices[k].free >= size:
            k += 1
        else:
            return k
    return -1


@inner
def slice_of(world, time):
    """Return the slice that contains `time`. O(log slices)."""
    low, high = 0, world.count[SLICES]
    while high - low > 1:
        middle = (low + high) >> 1
        if world.slices[middle].time <= time:
            low = middle
        else:
            high = middle
    return low


@inner
def _split(world, time):
    """Add a user to the boundary at `time`, creating it if needed. Return the slice that begins there. O(slices)."""
    slices, count = world.slices, world.count
    k = slice_of(world, time)
    if slices[k].time != time:
        for i in range(count[SLICES], k + 1, -1):
            slices[i] = slices[i - 1]
        k += 1
        count[SLICES] += 1
        changed(world, k)
        slices[k].time, slices[k].free, slices[k].users = time, slices[k - 1].free, 0
    slices[k].users += 1
    return k


@inner
def drop_boundary(world, time):
    """Remove a user from the boundary at `time`, if it still exists, and the boundary with its last user. O(slices)."""
    slices, count = world.slices, world.count
    k = slice_of(world, time)
    if slices[k].time != time:
        return
    slices[k].users -= 1
    if slices[k].users > 0 or k == 0:
        return
    for i in range(k, count[SLICES] - 1):
        slices[i] = slices[i + 1]
    count[SLICES] -= 1
    changed(world, k)


@inner
def occupy(world, begin, end, size):
    """Reserve resources from `begin` to `end`, and create the boundaries. O(slices)."""
    first = _split(world, begin)
    changed(world, first)
    for k in range(first, _split(world, end)):
        world.slices[k].free -= size


@inner
def release(world, begin, end, size):
    """Release resources between two boundaries. O(slices)."""
    k = slice_of(world, begin)
    changed(world, k)
    while k < world.count[SLICES] and world.slices[k].time < end:
        world.slices[k].free += size
        k += 1


@inner
def drop_before(world, now):
    """Remove the part of the profile before `now`. O(slices) if slices have passed."""
    slices, count = world.slices, world.count
    passed = slice_of(world, now)
    if passed > 0:
        for k in range(count[SLICES] - passed):
            slices[k] = slices[k + passed]
        count[SLICES] -= passed
        changed(world, 0)
    slices[0].time = now


_ALL, _ONE, _NONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1), np.uint64(0)


@inner
def latest_end(start, wall):
    """Return the latest end of a job; a job of zero walltime holds its resources until the next representable time."""
    end = start + wall
    return end if end > start else start + (abs(start) * 2.0**-52 + 5e-324)


@inner
def _without(world, job, other, begin, end):
    """Remove from the free set the resources that another job has in that time."""
    row = world.jobs[other]
    if other != job and row.start < end and row.until > begin:
        for word in range(row.low_word, row.high_word + 1):
            world.free[word] &= ~world.sets[row.set_row, word]


@inner
def _find_free(world, job, begin, end):
    """Set the free set to the resources that no other job has from `begin` to `end`.

    O(words of the machine and of all jobs in that time).
    """
    machine = world.count[MACHINE]
    words = (machine + 63) // 64
    for word in range(words):
        world.free[word] = _ALL
    if machine % 64:
        world.free[words - 1] = _ALL >> np.uint64(64 - machine % 64)
    for i in range(world.count[RUNNING]):
        _without(world, job, world.heap_job[i], begin, end)
    for i in range(world.count[WAITING]):
        _without(world, job, world.queue[i], begin, end)


@inner
def _lowest(world, job, begin, end):
    """Choose the lowest free resources in [begin, end) for a job. Return False if there are not enough."""
    row, left = world.jobs[job].set_row, world.jobs[job].size
    low, high = begin // 64, (end - 1) // 64
    world.jobs[job].low_word = low
    for word in range(low, high + 1):
        bits = world.free[word]
        if word == low:
            bits &= _ALL << np.uint64(begin % 64)
        if word == high:
            bits &= _ALL >> np.uint64(63 - (end - 1) % 64)
        taken = _NONE
        while bits != _NONE and left > 0:
            lowest = bits & (~bits + _ONE)
            taken |= lowest
            bits ^= lowest
            left -= 1
        world.sets[row, word] = taken
        if left == 0:
            world.jobs[job].high_word = word
            return True
    return False


@inner
def _block(world, job):
    """Choose the lowest contiguous free resources for a job. Return False if no interval is long enough."""
    row, size, machine = world.jobs[job].set_row, world.jobs[job].size, world.count[MACHINE]
    run, begin = np.int64(0), np.int64(0)
    for word in range((machine + 63) // 64):
        bits = world.free[word]
        if bits == _ALL and run + 64 < size:
            begin = word * 64 if run == 0 else begin
            run += 64
            continue
        for bit in range(64):
            if bits >> np.uint64(bit) & _ONE:
                begin = word * 64 + bit if run == 0 else begin
                run += 1
                if run == size:
                    _fill(world, job, row, begin, begin + size - 1)
                    return True
            else:
                run = 0
    return False


@inner
def _fill(world, job, row, first, last):
    low, high = first // 64, last // 64
    for word in range(low, high + 1):
        world.sets[row, word] = _ALL
    world.sets[row, low] &= _ALL << np.uint64(first % 64)
    world.sets[row, high] &= _ALL >> np.uint64(63 - last % 64)
    world.jobs[job].low_word, world.jobs[job].high_word = low, high


@inner
def _choose(world, job, start, stop):
    """Choose resources in a gap by the allocation variant. Return False if it rejects the gap."""
    kind, machine = world.count[ALLOCATION], world.count[MACHINE]
    _find_free(world, job, start, stop)
    if kind == CONTIGUOUS and _block(world, job):
        return True
    if kind == LOCAL:
        for group in range(len(world.groups)):
            begin, end = np.int64(world.groups[group].first), np.int64(world.groups[group].last) + 1
            if _lowest(world, job, begin, end):
                return True
    if world.count[STRICT] == 1:
        return False
    return _lowest(world, job, np.int64(0), machine)


@inner
def find_earliest(world, job):
    """Return the earliest start of a job and fill its set; inf if no gap fits it."""
    slices, total = world.slices, world.count[SLICES]
    size, wall, now = world.jobs[job].size, world.jobs[job].wall, world.clock[NOW]
    survey(world)
    first = first_with(world, 0, size, math.inf)
    while first < total:
        begin = max(now, slices[first].time)
        end = latest_end(begin, wall)
        short = first_without(world, first, size, end)
        if short < 0:
            if world.count[ALLOCATION] == BASIC or _choose(world, job, begin, end):
                return begin
            short = first
        first = first_with(world, short + 1, size, math.inf)
    return math.inf
