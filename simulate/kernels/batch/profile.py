"""The profile: how many resources are free from when on, if all run until their walltimes.

Rule: slices of time, ascending; the last is without end. A boundary is there as long as some job begins or ends at it.
"""

from __future__ import annotations

from ..jit import inner
from .blocks import changed
from .tables import SLICES


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
def _split(world, time):
    """Make a boundary at `time`, counted once more; returns the slice that begins there. O(slices)."""
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
def leave(world, time):
    """One user less of the boundary at `time`, if it still is one; the last takes it away. O(slices)."""
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
    """Take resources from `begin` to `end`, and make boundaries there. O(slices)."""
    first = _split(world, begin)
    changed(world, first)
    for k in range(first, _split(world, end)):
        world.slices[k].free -= size


@inner
def release(world, begin, end, size):
    """Give them back between two boundaries. O(slices)."""
    k = slice_of(world, begin)
    changed(world, k)
    while k < world.count[SLICES] and world.slices[k].time < end:
        world.slices[k].free += size
        k += 1


@inner
def trim(world, now):
    """Let the profile begin at `now`. O(slices), where slices have passed."""
    slices, count = world.slices, world.count
    passed = slice_of(world, now)
    if passed > 0:
        for k in range(count[SLICES] - passed):
            slices[k] = slices[k + passed]
        count[SLICES] -= passed
        changed(world, 0)
    slices[0].time = now
