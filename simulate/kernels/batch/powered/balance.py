"""The balance of energy in the time to come, by over-estimates of power and by walltimes, and who can be paid from it.

Rule: each row of `ends` knows what all that end later use from it on; that is summed from the last row backwards, and
stands for all rows behind the last that was added or taken away. What runs lets the slope of the balance only ever
rise, and who is asked about takes from it for a time: the least balance is where the slope has made up for that, which
is found by bisection: O(log rows).
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import FIRST_END, RUNNING
from .rows import row_at
from .tables import Clock, Count


@inner
def lay_out(world, now):
    """Make the balance from now on stand, where it does not. O(rows that end before the last that was moved)."""
    count, clock, ends = world.count, world.clock, world.ends
    if count[Count.AHEAD] >= 0:
        return
    first, last = count[FIRST_END], count[FIRST_END] + count[RUNNING]
    i, time, used, later = row_at(world, clock[Clock.WRONG]), clock[Clock.END], 0, 0.0
    if i < last:
        time, used, later = min(ends[i].time, time), ends[i].used, ends[i].later
    while i > first:
        i -= 1
        then = min(ends[i].time, time)
        later += used * (time - then)
        time = then
        if ends[i].job < count[Count.TOTAL]:
            used += ends[i].size
        ends[i].used, ends[i].later = used, later
    clock[Clock.WRONG] = -math.inf
    while i < last and ends[i].time <= now:
        i += 1
    count[Count.AHEAD], clock[Clock.LAID], clock[Clock.GROUND] = i, now, 0.0
    clock[Clock.GROUND] = clock[Clock.CREDIT] + clock[Clock.TIE] - balance_at(world, now, i)
    while last > i and ends[last - 1].used == 0:
        last -= 1
    clock[Clock.LASTS] = ends[last - 1].time if last > i else now
    count[Count.EVEN], clock[Clock.EVEN] = _rises(world, 0.0)


@inner
def _rises(world, watts):
    """From which row on the slope is at least that, and when it is; infinite: never."""
    count, clock, ends = world.count, world.clock, world.ends
    low, high = count[Count.AHEAD], count[FIRST_END] + count[RUNNING]
    if clock[Clock.RATE] - clock[Clock.BASE] < watts:
        return high, math.inf
    while low < high:
        middle = (low + high) >> 1
        if clock[Clock.RATE] - (clock[Clock.BASE] + clock[Clock.EXTRA] * ends[middle].used) >= watts:
            high = middle
        else:
            low = middle + 1
    return low, ends[low - 1].time if low > count[Count.AHEAD] else clock[Clock.LAID]


@inner
def balance_at(world, time, row):
    """What is there at that time, in the window. `row`: where that may be, it is looked for if it is not."""
    count, clock, ends = world.count, world.clock, world.ends
    first, last = count[Count.AHEAD], count[FIRST_END] + count[RUNNING]
    if (row > first and ends[row - 1].time > time) or (row < last and ends[row].time < time):
        row = row_at(world, time)
    joules = clock[Clock.GROUND] + (clock[Clock.RATE] - clock[Clock.BASE]) * (time - clock[Clock.LAID])
    if row < last:
        later = ends[row].later + ends[row].used * (min(ends[row].time, clock[Clock.END]) - time)
        joules += clock[Clock.EXTRA] * later
    return joules


@inner
def least_at(world, low, end, watts, ends, others, until):
    """When the balance is least, from `low` to `end`: `watts` are taken from it until `ends`, `others` until then; and
    the row where that may be."""
    first, second = min(ends, until), max(ends, until)
    if low < first:
        row, time = _rises(world, watts + others)
        if time < first:
            return min(max(low, time), end), row
        low = first
    if low < second:
        row, time = _rises(world, others if ends < until else watts)
        if time < second:
            return min(max(low, time), end), row
        low = second
    return min(max(low, world.clock[Clock.EVEN]), end), world.count[Count.EVEN]


@inner
def affords(world, begins, size, ends):
    """Whether the balance stays at 0 or above with a job that starts then and ends at `ends` at the latest.

    It is looked at from its start until all that then runs has ended, in the window.
    """
    clock = world.clock
    end, watts = min(clock[Clock.END], max(clock[Clock.LASTS], ends)), clock[Clock.EXTRA] * size
    if begins > end:
        return True
    time, row = least_at(world, begins, end, watts, ends, 0.0, ends)
    return balance_at(world, time, row) - watts * (min(time, ends) - begins) >= 0.0
