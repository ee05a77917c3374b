"""The balance of energy in the time to come, by over-estimates of power and by walltimes, and who can be paid from it.

Rule: laid out from what runs, a row from each end on, and only as far as it is asked about; it stands until a job
starts or ends, or energy is measured. What runs lets the slope only ever rise, and who is asked about takes from it
for a time: the least balance is where the slope has made up for that, which is found by bisection: O(log rows).
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import FIRST_END, HEAD, RESERVATION, RUNNING
from .tables import BUDGET, Clock, Count


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
    row.time, row.balance = now, clock[Clock.CREDIT]
    row.rise = clock[Clock.RATE] - (clock[Clock.BASE] + clock[Clock.EXTRA] * used)


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
def _further(world):
    """Lay out a row more; False: nobody else ends in the window."""
    count, clock, ends, ahead = world.count, world.clock, world.ends, world.ahead
    i, last, rows, used = count[Count.SEEN], count[FIRST_END] + count[RUNNING], count[Count.AHEAD], count[Count.USED]
    while i < last and ends[i].job >= count[Count.TOTAL]:
        i += 1
    if i == last or ends[i].time >= clock[Clock.END]:
        return False
    time = ends[i].time
    while i < last and ends[i].time == time:
        if ends[i].job < count[Count.TOTAL]:
            used -= ends[i].size
        i += 1
    before = ahead[rows - 1]
    ahead[rows].time, ahead[rows].balance = time, before.balance + before.rise * (time - before.time)
    ahead[rows].rise = clock[Clock.RATE] - (clock[Clock.BASE] + clock[Clock.EXTRA] * used)
    count[Count.AHEAD], count[Count.USED], count[Count.SEEN] = rows + 1, used, i
    return True


@inner
def _rises(world, watts):
    """When the slope is first at least that; infinite: not in the window."""
    count, ahead = world.count, world.ahead
    while ahead[count[Count.AHEAD] - 1].rise < watts:
        if not _further(world):
            return math.inf
    low, high = 0, count[Count.AHEAD] - 1
    while low < high:
        middle = (low + high) >> 1
        if ahead[middle].rise >= watts:
            high = middle
        else:
            low = middle + 1
    return ahead[low].time


@inner
def _balance(world, time):
    """What is there at that time."""
    count, ahead = world.count, world.ahead
    while ahead[count[Count.AHEAD] - 1].time < time:
        if not _further(world):
            break
    low, high = 0, count[Count.AHEAD]
    while high - low > 1:
        middle = (low + high) >> 1
        if ahead[middle].time <= time:
            low = middle
        else:
            high = middle
    return ahead[low].balance + ahead[low].rise * (time - ahead[low].time)


@inner
def _stays(world, low, end, watts, begins, ends, others, since, until):
    """Whether the balance stays at 0 or above from `low` to `end`.

    A job takes `watts` from `begins` to `ends`, and `others` are taken from `since` to `until`; both have begun by then.
    """
    if low > end:
        return True
    time = max(low, _rises(world, watts + others))
    if time >= min(ends, until):
        time = max(low, min(ends, until), _rises(world, others if ends <= until else watts))
        if time >= max(ends, until):
            time = max(low, max(ends, until), _rises(world, 0.0))
    time = min(time, end)
    taken = watts * (min(time, ends) - begins) + others * (min(time, until) - since)
    return _balance(world, time) - taken >= 0.0


@inner
def affords(world, begins, size, ends):
    """Whether the balance stays at 0 or above with a job that starts then and ends at `ends` at the latest.

    It is looked at from its start until all that then runs has ended, in the window.
    """
    clock = world.clock
    end = min(clock[Clock.END], max(clock[Clock.LASTS], ends))
    return _stays(world, begins, end, clock[Clock.EXTRA] * size, begins, ends, 0.0, begins, ends)


@inner
def affords_both(world, now, size, ends):
    """Whether it does so with a job that starts now, and the first that waits gets what is reserved for it."""
    clock, head = world.clock, world.least[world.count[HEAD]]
    watts, starts = clock[Clock.EXTRA] * size, clock[RESERVATION]
    end = min(clock[Clock.END], max(clock[Clock.LASTS], ends))
    if world.count[Count.LIMIT] != BUDGET:
        lacks = clock[Clock.HELD] / (starts - now) if starts > now else 0.0
        return _stays(world, now, end, watts, now, ends, lacks, now, max(now, starts))
    if not _stays(world, now, min(end, starts), watts, now, ends, 0.0, now, ends):
        return False
    end = min(clock[Clock.END], max(end, starts + head.wall))
    return _stays(
        world, max(now, starts), end, watts, now, ends, clock[Clock.EXTRA] * head.size, starts, starts + head.wall
    )
