"""What will be free when, by the walltimes of all that runs and the ends of all changes.

Rule: machines on their way to being kept off come free only for who cannot do without them. Where a balance is laid
out and nothing changes its state, what is used from each row on is known: O(log rows).
"""

from __future__ import annotations

from ...jit import inner
from ..tables import FIRST_END, RUNNING
from .machines import is_wide, usable
from .rows import row_at
from .tables import TO_KEPT, Count


@inner
def _amount(world, i, skips):
    """What comes free at the end of a row."""
    row = world.ends[i]
    return 0 if skips and world.jobs[row.job].state == TO_KEPT else row.size


@inner
def _is_summed(world):
    """Whether only jobs run, and it is known of each row what is used until its end."""
    count = world.count
    return count[Count.AHEAD] >= 0 and count[Count.ACTIVE] == count[RUNNING] > 0


@inner
def _back(world, i):
    """What comes free before the end of a row."""
    ends, first = world.ends, world.count[FIRST_END]
    behind = ends[i].used if i < first + world.count[RUNNING] else 0
    return ends[first].used - behind


@inner
def when_free(world, wanted, now):
    """When a job of that size has its machines, and how many are free for it then. O(rows that end by then)."""
    ends, i = world.ends, world.count[FIRST_END]
    end, free = i + world.count[RUNNING], usable(world, wanted)
    if _is_summed(world):
        high = end
        while i < high:
            middle = (i + high) >> 1
            if free + _back(world, middle) >= wanted:
                high = middle
            else:
                i = middle + 1
        time = ends[i - 1].time if i > world.count[FIRST_END] else now
        while i < end and ends[i].time <= time:
            i += 1
        return time, free + _back(world, i)
    skips = world.count[Count.KEEPING] > 0 and not is_wide(world, wanted)
    time = now
    while free < wanted:
        time = ends[i].time
        free += _amount(world, i, skips)
        i += 1
    while i < end and ends[i].time <= time:
        free += _amount(world, i, skips)
        i += 1
    return time, free


@inner
def free_at(world, time, wanted):
    """How many are free for a job of that size then. O(rows that end by then)."""
    ends, i = world.ends, world.count[FIRST_END]
    end, free = i + world.count[RUNNING], usable(world, wanted)
    if _is_summed(world):
        return free + _back(world, row_at(world, time))
    skips = world.count[Count.KEEPING] > 0 and not is_wide(world, wanted)
    while i < end and ends[i].time <= time:
        free += _amount(world, i, skips)
        i += 1
    return free
