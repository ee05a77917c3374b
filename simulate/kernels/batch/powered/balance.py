"""The balance of energy in the time to come, by over-estimates of power and by walltimes, and who can be paid from it.

Rule: laid out from what runs, a row from each end on, and only as far as it is asked about; it stands until a job
starts or ends, or energy is measured. What runs lets the slope only ever rise, and who is asked about takes from it
for a time: the least balance is where the slope has made up for that, which is found by bisection: O(log rows).
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import FIRST_END, RUNNING
from .tables import Clock, Count


@inner
def lay_out(world, now):
    """Begin to lay out the balance from now on, where none stands."""
    count, clock, ends = world.count, world.clock, world.ends
    if count[Count.AHEAD] > 0:
        return
    first, last, used = count[FIRST_END], count[FIRST_END] + count[RUNNING], count[Count.ALLOCATED]
    while first < last and ends[first].time <= now:
        if ends[first].job < count[Count.TOTAL]:
            used -= ends[first].size
        first += 1
    while last > first and ends[last - 1].job >= count[Count.TOTAL]:
        last -= 1
    clock[Clock.LASTS] = ends[last - 1].time if last > first else now
    count[Count.AHEAD], count[Count.USED], count[Count.SEEN] = 1, used, first
    row = world.ahead[0]
    row.time, row.balance = now, clock[Clock.CREDIT] + clock[Clock.TIE]
    row.rise = clock[Clock.RATE] - (clock[Clock.BASE] + clock[Clock.EXTRA] * used)
    clock[Clock.EVEN] = _rises(world, 0.0)


@inner
def look_again(world):
    """Rows of `ends` may have moved, but none of a job was added or taken away."""
    count, ends = world.count, world.ends
    if count[Count.AHEAD] == 0:
        return
    low, high, time = count[FIRST_END], count[FIRST_END] + count[RUNNING], world.ahead[count[Count.AHEAD] - 1].time
    while low < high:
        middle = (low + high) >> 1
        if ends[middle].time <= time:
            low = middle + 1
        else:
            high = middle
    count[Count.SEEN] = low


@inner
def _go_on(world, watts, until):
    """Lay out rows, in the window, until the slope is at least that, and time; all that end at the last are in it."""
    count, clock, ends, ahead = world.count, world.clock, world.ends, world.ahead
    i, last, rows, used = count[Count.SEEN], count[FIRST_END] + count[RUNNING], count[Count.AHEAD], count[Count.USED]
    time, balance, rise = ahead[rows - 1].time, ahead[rows - 1].balance, ahead[rows - 1].rise
    while i < last:
        then = ends[i].time
        if then >= clock[Clock.END] or (rise >= watts and time >= until and then > time):
            break
        if ends[i].job < count[Count.TOTAL]:
            used -= ends[i].size
            balance += rise * (then - time)
            time, rise = then, clock[Clock.RATE] - (clock[Clock.BASE] + clock[Clock.EXTRA] * used)
            ahead[rows].time, ahead[rows].balance, ahead[rows].rise = time, balance, rise
            rows += 1
        i += 1
    count[Count.AHEAD], count[Count.USED], count[Count.SEEN] = rows, used, i


@inner
def _rises(world, watts):
    """When the slope is first at least that; infinite: not in the window."""
    ahead, last = world.ahead, world.count[Count.AHEAD] - 1
    if ahead[last].rise < watts:
        _go_on(world, watts, -math.inf)
        last = world.count[Count.AHEAD] - 1
        return ahead[last].time if ahead[last].rise >= watts else math.inf
    low, high = 0, last
    while low < high:
        middle = (low + high) >> 1
        if ahead[middle].rise >= watts:
            high = middle
        else:
            low = middle + 1
    return ahead[low].time


@inner
def balance_at(world, time):
    """What is there at that time."""
    ahead = world.ahead
    if ahead[world.count[Count.AHEAD] - 1].time < time:
        _go_on(world, -math.inf, time)
    low, high = 0, world.count[Count.AHEAD]
    while high - low > 1:
        middle = (low + high) >> 1
        if ahead[middle].time <= time:
            low = middle
        else:
            high = middle
    return ahead[low].balance + ahead[low].rise * (time - ahead[low].time)


@inner
def least_at(world, low, end, watts, ends, others, until):
    """When the balance is least, from `low` to `end`: `watts` are taken from it until `ends`, `others` until then."""
    time = max(low, _rises(world, watts + others))
    if time >= min(ends, until):
        time = max(low, min(ends, until), _rises(world, others if ends <= until else watts))
        if time >= max(ends, until):
            time = max(low, max(ends, until), world.clock[Clock.EVEN])
    return min(time, end)


@inner
def affords(world, begins, size, ends):
    """Whether the balance stays at 0 or above with a job that starts then and ends at `ends` at the latest.

    It is looked at from its start until all that then runs has ended, in the window.
    """
    clock = world.clock
    end, watts = min(clock[Clock.END], max(clock[Clock.LASTS], ends)), clock[Clock.EXTRA] * size
    if begins > end:
        return True
    time = least_at(world, begins, end, watts, ends, 0.0, ends)
    return balance_at(world, time) - watts * (min(time, ends) - begins) >= 0.0
