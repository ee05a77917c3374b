"""What will be free when, by the walltimes of all that runs and the ends of all changes.

Rule: machines on their way to being kept off come free only for who cannot do without them.
"""

from __future__ import annotations

from ...jit import inner
from ..tables import FIRST_END, RUNNING
from .machines import is_wide, usable
from .tables import TO_KEPT, Count


@inner
def _amount(world, i, skips):
    """What comes free at the end of a row."""
    row = world.ends[i]
    return 0 if skips and world.jobs[row.job].state == TO_KEPT else row.size


@inner
def when_free(world, wanted, now):
    """When a job of that size has its machines, and how many are free for it then. O(rows that end by then)."""
    ends, i = world.ends, world.count[FIRST_END]
    end, free = i + world.count[RUNNING], usable(world, wanted)
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
    skips = world.count[Count.KEEPING] > 0 and not is_wide(world, wanted)
    while i < end and ends[i].time <= time:
        free += _amount(world, i, skips)
        i += 1
    return free
