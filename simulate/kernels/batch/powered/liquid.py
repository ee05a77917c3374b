"""In how long all that waits would be done, could it be spread freely over the machines: the liquid load horizon.

Rule: it is looked for from where it was last. What is left to do at that time changes by known amounts where time
passes, jobs come and go, and rows of `ends` are added or taken away; from there on mostly few rows are walked along.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import FIRST_END, FREE, RUNNING, WAITING
from .tables import BLOCKED, TO_KEPT, Clock, Count


@inner
def _amount(world, i):
    """What comes free at the end of a row."""
    job = world.ends[i].job
    if job >= world.count[Count.TOTAL] and (world.jobs[job].state == TO_KEPT or world.jobs[job].state == BLOCKED):
        return 0
    return world.ends[i].size


@inner
def liquid_load_horizon(world, now):
    """In how long it is, by the rows as they are now. O(rows walked along)."""
    count, clock, ends = world.count, world.clock, world.ends
    load, free, time = clock[Clock.LOAD], max(count[FREE], 0), clock[Clock.REACHED]
    if count[WAITING] == 0 or load <= 0.0:
        clock[Clock.REACHED] = -math.inf
        return 0.0
    more, first = free - count[Count.FREE_BEFORE], count[FIRST_END]
    if now == clock[Clock.LOOKED_AT] and more == 0 and load == clock[Clock.LOAD_BEFORE] and count[Count.FLOWS] == 0:
        return clock[Clock.HORIZON]
    behind = first + count[RUNNING]
    left = clock[Clock.UNDONE] + count[Count.FREE_BEFORE] * (now - clock[Clock.LOOKED_AT])
    left += load - clock[Clock.LOAD_BEFORE] - more * (time - now)
    then, i = count[Count.FREE_THEN] + more, first
    if time >= now:
        i = behind - count[Count.BEHIND]
        while left <= 0.0 and i > first:
            back = ends[i - 1].time
            left += then * (time - back)
            time = back
            if left <= 0.0:
                i -= 1
                then -= _amount(world, i)
    if i == first or time <= now:
        i, time, left, then = first, now, load, free
    while i < behind:
        done = then * (ends[i].time - time)
        if done >= left:
            break
        left -= done
        time = ends[i].time
        then += _amount(world, i)
        i += 1
    count[Count.FREE_BEFORE], count[Count.FREE_THEN] = free, then
    clock[Clock.LOOKED_AT], clock[Clock.LOAD_BEFORE] = now, load
    clock[Clock.REACHED], clock[Clock.UNDONE] = time, left
    count[Count.BEHIND], count[Count.FLOWS] = behind - i, 0
    return math.inf if then == 0 else time + left / then - now
