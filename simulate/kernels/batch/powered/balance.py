"""The balance of energy in the time to come, by over-estimates of power and by walltimes, and who can be paid from it.

Rule: laid out once for many questions, a row from each time on at which its slope changes. Under what runs the slope
only ever rises; with the first that waits it turns down once, at its reservation. So the least balance under one more
job stands where the slope turns, and is found by bisection: O(log rows) a question.
What was refused is remembered for a pass: in it the balance only goes down, so who is as large and as long is, too.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import FIRST_END, RESERVATION, RUNNING
from .tables import ALONE, BUDGET, WITH_HEAD, Clock, Count


@inner
def lay_out(world, now, size, wall):
    """Lay out the balance from now on; `size`, `wall`: of the first that waits, if it is to have its energy, else 0."""
    count, clock, ends, ahead = world.count, world.clock, world.ends, world.ahead
    i = count[FIRST_END]
    last, rows, time, balance = i + count[RUNNING], 0, now, clock[Clock.CREDIT]
    used, takes, lacks, begins, stops = count[Count.ALLOCATED], 0, 0.0, math.inf, math.inf
    if size > 0:
        begins = clock[RESERVATION]
        if count[Count.LIMIT] == BUDGET:
            takes, stops = size, begins + wall
        elif begins > now:
            lacks = clock[Clock.HELD] / (begins - now)
    count[Count.TURN], clock[Clock.LASTS] = 0, stops if takes > 0 else now
    while True:
        while i < last and ends[i].time <= time:
            if ends[i].job < count[Count.TOTAL]:
                used -= ends[i].size
            i += 1
        if takes > 0 and time == begins:
            count[Count.TURN] = rows
        mine = takes if begins <= time < stops else 0
        ahead[rows].time, ahead[rows].balance = time, balance
        rise = clock[Clock.RATE] - (clock[Clock.BASE] + clock[Clock.EXTRA] * (used + mine))
        ahead[rows].rise = rise - (lacks if time < begins else 0.0)
        then = ends[i].time if i < last else math.inf
        then = min(then, begins if begins > time else math.inf, stops if stops > time else math.inf)
        if then >= clock[Clock.END]:
            break
        balance += ahead[rows].rise * (then - time)
        time = then
        rows += 1
    count[Count.AHEAD] = rows + 1
    while last > count[FIRST_END] and ends[last - 1].job >= count[Count.TOTAL]:
        last -= 1
    if last > count[FIRST_END]:
        clock[Clock.LASTS] = max(clock[Clock.LASTS], ends[last - 1].time)
    count[Count.LAID] = WITH_HEAD if size > 0 else ALONE


@inner
def _rising(world, first, last, rise):
    """The first of these rows whose slope is at least that."""
    while first < last:
        middle = (first + last) >> 1
        if world.ahead[middle].rise >= rise:
            last = middle
        else:
            first = middle + 1
    return first


@inner
def _row_at(world, first, last, time):
    """The last of these rows that begins by then."""
    while last - first > 1:
        middle = (first + last) >> 1
        if world.ahead[middle].time <= time:
            first = middle
        else:
            last = middle
    return first


@inner
def _stays(world, first, last, end, begins, size, ends):
    """Whether the balance stays at 0 or above in these rows, up to `end`, with such a job."""
    ahead, draws = world.ahead, world.clock[Clock.EXTRA] * size
    low = max(ahead[first].time, begins)
    if low > end:
        return True
    turn = _rising(world, first, last, draws)
    time = ahead[turn].time if turn < last else end
    if time >= ends:
        turn = _rising(world, first, last, 0.0)
        time = max(ends, ahead[turn].time if turn < last else end)
    time = min(max(time, low), end)
    row = ahead[_row_at(world, first, last, time)]
    return row.balance + row.rise * (time - row.time) - draws * (min(time, ends) - begins) >= 0.0


@inner
def affords(world, begins, size, ends):
    """Whether the balance stays at 0 or above with a job that starts then and ends at `ends` at the latest.

    It is looked at from its start until all that then runs has ended, in the window.
    """
    count, clock = world.count, world.clock
    turn, end = count[Count.TURN], min(clock[Clock.END], max(clock[Clock.LASTS], ends))
    if turn > 0 and not _stays(world, 0, turn, min(end, world.ahead[turn].time), begins, size, ends):
        return False
    return _stays(world, turn, count[Count.AHEAD], end, begins, size, ends)


@inner
def refuse(world, size, wall):
    """Remember that a job of that size and walltime was refused. O(sizes that there are), mostly less."""
    for i in range(world.classes[size], len(world.refused)):
        if world.refused[i] <= wall:
            break
        world.refused[i] = wall


@inner
def was_refused(world, size, wall):
    """Whether one that is no larger and no longer was refused in this pass."""
    return wall >= world.refused[world.classes[size]]
