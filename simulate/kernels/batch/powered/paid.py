"""Who can be paid to go before the first that waits, and leave it the energy for its reservation.

Rule: what is left when the balance is least without it must pay for who goes before; most are refused by that. Who is
as large and as long as one that was refused in a pass is, too, as the balance only goes down in it; who is no larger
and no longer than one that can be paid can be, until a job starts.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import HEAD, NOW, RESERVATION
from .balance import balance_at, least_at
from .machines import boot_time
from .tables import BUDGET, Clock, Count


@inner
def leave(world, now):
    """Note what the first that waits needs, as things are now."""
    clock, head = world.clock, world.least[world.count[HEAD]]
    starts = clock[RESERVATION]
    if world.count[Count.LIMIT] == BUDGET:
        clock[Clock.OTHERS], clock[Clock.SINCE] = clock[Clock.EXTRA] * head.size, starts
        clock[Clock.UNTIL] = starts + head.wall
    else:
        clock[Clock.OTHERS] = clock[Clock.HELD] / (starts - now) if starts > now else 0.0
        clock[Clock.SINCE], clock[Clock.UNTIL] = now, max(now, starts)
    clock[Clock.LOW_BEFORE], clock[Clock.LEFT_BEFORE] = _before(world, 0.0, now)
    clock[Clock.LOW], clock[Clock.LEFT] = _behind(world, 0.0, now)
    world.count[Count.LEFT], world.granted[:] = 1, -math.inf


@inner
def _before(world, watts, ends):
    """When the balance is least until the first that waits begins, with a job from now on, and how much it is then."""
    clock, now = world.clock, world.clock[NOW]
    end = min(clock[Clock.END], clock[Clock.SINCE])
    if end <= now:
        return now, math.inf
    time = least_at(world, now, end, watts, ends, 0.0, ends)
    return time, balance_at(world, time) - watts * (min(time, ends) - now)


@inner
def _behind(world, watts, ends):
    """The same from then on, until all that then runs has ended."""
    clock, now = world.clock, world.clock[NOW]
    low, end = max(now, clock[Clock.SINCE]), max(clock[Clock.LASTS], ends)
    if world.count[Count.LIMIT] == BUDGET:
        end = max(end, clock[Clock.UNTIL])
    end = min(end, clock[Clock.END])
    if end < low:
        return low, math.inf
    time = least_at(world, low, end, watts, ends, clock[Clock.OTHERS], clock[Clock.UNTIL])
    taken = clock[Clock.OTHERS] * (min(time, clock[Clock.UNTIL]) - clock[Clock.SINCE])
    return time, balance_at(world, time) - taken - watts * (min(time, ends) - now)


@inner
def cannot_be_paid(world, cell):
    """Whether there is too little energy for all that wait below a cell of their tree, would they start now."""
    clock, now = world.clock, world.clock[NOW]
    if world.count[Count.LEFT] == 0:
        leave(world, now)
    size, wall, area = world.least[cell].size, world.least[cell].wall, world.areas[cell]
    if _exceeds(world, size, area, clock[Clock.LOW], clock[Clock.LEFT]):
        return True
    if _exceeds(world, size, area, clock[Clock.LOW_BEFORE], clock[Clock.LEFT_BEFORE]):
        return True
    kind = world.classes[size]
    if wall >= world.refused[kind]:
        return True
    if wall <= world.granted[kind]:
        return False
    watts, ends = clock[Clock.EXTRA] * size, now + boot_time(world, size) + wall
    if _before(world, watts, ends)[1] >= 0.0 and _behind(world, watts, ends)[1] >= 0.0:
        while kind >= 0 and world.granted[kind] < wall:
            world.granted[kind] = wall
            kind -= 1
        return False
    while kind < len(world.refused) and world.refused[kind] > wall:
        world.refused[kind] = wall
        kind += 1
    return True


@inner
def _exceeds(world, size, area, low, left):
    """Whether all of that size and area, or more, take more by then than there is."""
    return world.clock[Clock.EXTRA] * min(area, size * (low - world.clock[NOW])) > left
