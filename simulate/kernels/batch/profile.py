"""The profile: which resources are free from when on, if all run until their walltimes.

Rule: slices of time, ascending; the last is without end. A boundary is there as long as some job begins or ends at it.
"""

from __future__ import annotations

from ..jit import inner
from .tables import FREE_ROWS, SLICES


@inner
def slice_of(world, time):
    """The slice that `time` is in. O(log slices)."""
    low, high = 0, world.count[SLICES]
    while high - low > 1:
        middle = (low + high) >> 1
        if world.slices[middle].time <= time:
            low = middle
        else:
            high = middle
    return low


@inner
def split(world, time):
    """Make a boundary at `time`, counted once more; returns the slice that begins there. O(slices + words)."""
    slices, count = world.slices, world.count
    k = slice_of(world, time)
    if slices[k].time != time:
        for i in range(count[SLICES], k + 1, -1):
            slices[i] = slices[i - 1]
        k += 1
        count[SLICES] += 1
        count[FREE_ROWS] -= 1
        row = world.free_rows[count[FREE_ROWS]]
        source = slices[k - 1].row
        for word in range(world.bits.shape[1]):
            world.bits[row, word] = world.bits[source, word]
        slices[k].time, slices[k].free = time, slices[k - 1].free
        slices[k].row, slices[k].users = row, 0
    slices[k].users += 1
    return k


@inner
def leave(world, time):
    """One user less of the boundary at `time`, if it still is one; the last takes it away. O(slices)."""
    slices, count = world.slices, world.count
    k = slice_of(world, time)
    if slices[k].time != time:
        return
    slices[k].users -= 1
    if slices[k].users > 0 or k == 0:
        return
    _drop_row(world, slices[k].row)
    for i in range(k, count[SLICES] - 1):
        slices[i] = slices[i + 1]
    count[SLICES] -= 1


@inner
def _drop_row(world, row):
    world.free_rows[world.count[FREE_ROWS]] = row
    world.count[FREE_ROWS] += 1


@inner
def occupy(world, job, begin, end):
    """Take a job's resources from `begin` to `end`. O(slices between x words of the job)."""
    first, last = split(world, begin), split(world, end)
    # the second split may have moved nothing before it
    row, size = world.jobs[job].set_row, world.jobs[job].size
    low, high = world.jobs[job].low_word, world.jobs[job].high_word
    for k in range(first, last):
        world.slices[k].free -= size
        target = world.slices[k].row
        for word in range(low, high + 1):
            world.bits[target, word] &= ~world.sets[row, word]


@inner
def release(world, job, begin, end):
    """Give them back, from `begin` on, where a boundary is made, to `end`, where one is. O(as `occupy`)."""
    row, size = world.jobs[job].set_row, world.jobs[job].size
    low, high = world.jobs[job].low_word, world.jobs[job].high_word
    k = slice_of(world, begin)
    while k < world.count[SLICES] and world.slices[k].time < end:
        world.slices[k].free += size
        target = world.slices[k].row
        for word in range(low, high + 1):
            world.bits[target, word] |= world.sets[row, word]
        k += 1


@inner
def trim(world, now):
    """Let the profile begin at `now`. O(slices), where slices have passed."""
    slices, count = world.slices, world.count
    passed = slice_of(world, now)
    if passed > 0:
        for k in range(passed):
            _drop_row(world, slices[k].row)
        for k in range(count[SLICES] - passed):
            slices[k] = slices[k + passed]
        count[SLICES] -= passed
    slices[0].time = now
