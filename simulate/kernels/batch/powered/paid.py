"""Who can be paid to go before the first that waits, and leave it the energy for its reservation.

Rule: what is left at some time must pay for what goes before has taken by then. Most are refused by three such times:
when the least is left before the first that waits begins and behind, and when there was too little for the last that
was looked at exactly: neighbours in the queue mostly fail where it did. An exact look begins at their own end, where
that is behind all others'.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import FIRST_END, HEAD, NOW, RESERVATION, RUNNING
from .balance import balance_at, least_at
from .machines import boot_time
from .tables import BUDGET, Clock, Count


@inner
def leave(world, now):
    """Note what the first that waits needs, and what that leaves, as things are now."""
    clock, head = world.clock, world.least[world.count[HEAD]]
    starts, lasts = clock[RESERVATION], clock[Clock.LASTS]
    if world.count[Count.LIMIT] == BUDGET:
        clock[Clock.OTHERS], clock[Clock.SINCE] = clock[Clock.EXTRA] * head.size, starts
        clock[Clock.UNTIL] = starts + head.wall
        lasts = max(lasts, clock[Clock.UNTIL])
    else:
        clock[Clock.OTHERS] = clock[Clock.HELD] / (starts - now) if starts > now else 0.0
        clock[Clock.SINCE], clock[Clock.UNTIL] = now, max(now, starts)
    clock[Clock.LOOKED] = min(lasts, clock[Clock.END])
    clock[Clock.LOW_BEFORE], row = _before(world, 0.0, now)
    clock[Clock.LEFT_BEFORE] = _left(world, clock[Clock.LOW_BEFORE], row)
    clock[Clock.LOW], row = _behind(world, 0.0, now)
    clock[Clock.LEFT] = _left(world, clock[Clock.LOW], row)
    clock[Clock.LEFT_LAST] = math.inf
    if now < clock[Clock.LAST] <= clock[Clock.LOOKED]:
        clock[Clock.LEFT_LAST] = _left(world, clock[Clock.LAST], row)
    world.count[Count.LEFT] = 1


@inner
def _before(world, watts, ends):
    """When the balance is least until the first that waits begins, with a job from now on; infinite: it begins now."""
    clock, now = world.clock, world.clock[NOW]
    end = min(clock[Clock.END], clock[Clock.SINCE])
    if end <= now:
        return math.inf, 0
    return least_at(world, now, end, watts, ends, 0.0, ends)


@inner
def _behind(world, watts, ends):
    """The same from then on, until all that then runs has ended; infinite: that is not in the window."""
    clock, now = world.clock, world.clock[NOW]
    low, end = max(now, clock[Clock.SINCE]), min(max(clock[Clock.LOOKED], ends), clock[Clock.END])
    if end < low:
        return math.inf, 0
    return least_at(world, low, end, watts, ends, clock[Clock.OTHERS], clock[Clock.UNTIL])


@inner
def _left(world, time, row):
    """What the first that waits leaves of the balance by then."""
    clock = world.clock
    if time == math.inf:
        return math.inf
    taken = clock[Clock.OTHERS] * max(0.0, min(time, clock[Clock.UNTIL]) - clock[Clock.SINCE])
    return balance_at(world, time, row) - taken


@inner
def cannot_be_paid(world, cell):
    """Whether there is too little energy for all that wait below a cell of their tree, would they start now."""
    clock, now = world.clock, world.clock[NOW]
    if world.count[Count.LEFT] == 0:
        leave(world, now)
    size, area = world.least[cell].size, world.areas[cell]
    if _exceeds(world, size, area, clock[Clock.LAST], clock[Clock.LEFT_LAST]):
        return True
    if _exceeds(world, size, area, clock[Clock.LOW], clock[Clock.LEFT]):
        return True
    if _exceeds(world, size, area, clock[Clock.LOW_BEFORE], clock[Clock.LEFT_BEFORE]):
        return True
    watts, ends = clock[Clock.EXTRA] * size, now + boot_time(world, size) + world.least[cell].wall
    behind = world.count[FIRST_END] + world.count[RUNNING]
    if ends >= clock[Clock.LASTS] and _lacks(world, min(ends, clock[Clock.END]), behind, watts, ends):
        return True
    time, row = _before(world, watts, ends)
    if _lacks(world, time, row, watts, ends):
        return True
    time, row = _behind(world, watts, ends)
    return _lacks(world, time, row, watts, ends)


@inner
def _lacks(world, time, row, watts, ends):
    """Whether too little is left then for who takes so many watts until it ends."""
    clock = world.clock
    left = _left(world, time, row)
    if left - watts * (min(time, ends) - clock[NOW]) >= 0.0:
        return False
    if time <= clock[Clock.LOOKED]:
        clock[Clock.LAST], clock[Clock.LEFT_LAST] = time, left
    return True


@inner
def _exceeds(world, size, area, time, left):
    """Whether all of that size and area, or more, take more by then than there is."""
    return world.clock[Clock.EXTRA] * min(area, size * (time - world.clock[NOW])) > left
