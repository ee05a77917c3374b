"""Energy that is made available bit by bit, and who may use it: energyBud and reducePC (thesis of Poquet, 2017, 6.4).

Rule: by the over-estimates of a machine's power and the walltimes of all that run, no start lets the balance fall below
0 before all that then runs has ended: there is never a debt. Who goes before the first that waits must leave it the
energy for its reservation: in energyBud by that same balance, in reducePC out of what is made available until then.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import MACHINE, RESERVATION, SPARE
from .balance import affords, lay_out
from .machines import boot_time, booted, usable
from .outlook import free_at
from .tables import BUDGET, Clock, Count


@inner
def in_window(world, now):
    """Whether energy is limited at that time."""
    clock = world.clock
    return world.count[Count.LIMIT] >= BUDGET and clock[Clock.BEGIN] <= now < clock[Clock.END]


@inner
def next_stage(world):
    """When energy is measured next."""
    if world.count[Count.LIMIT] < BUDGET or world.clock[Clock.CREDITED] >= world.clock[Clock.END]:
        return math.inf
    return _stage(world, world.count[Count.STAGE])


@inner
def _stage(world, number):
    """The time of a stage; the last is the window's end."""
    clock = world.clock
    return min(clock[Clock.BEGIN] + number * clock[Clock.STAGE_S], clock[Clock.END])


@inner
def _consume(world, now):
    """Count what has been consumed, as the states of the machines say, until then."""
    count, clock = world.count, world.clock
    others = count[Count.COMPUTING] + count[Count.BOOTING] + count[Count.ENDING] + count[Count.OFF] + count[Count.KEPT]
    watts = (
        clock[Clock.WATTS_COMPUTING] * count[Count.COMPUTING]
        + clock[Clock.WATTS_ON] * count[Count.BOOTING]
        + clock[Clock.WATTS_ENDING] * count[Count.ENDING]
        + clock[Clock.WATTS_OFF] * (count[Count.OFF] + count[Count.KEPT])
        + clock[Clock.WATTS_IDLE] * (count[MACHINE] - others)
    )
    since = max(clock[Clock.MEASURED], clock[Clock.BEGIN])
    if now > since:
        clock[Clock.ENERGY] += watts * (now - since)
    clock[Clock.MEASURED] = now


@inner
def account(world, now):
    """Bring energy and credit up to now. True: a stage, or the window's end or beginning, is now."""
    count, clock = world.count, world.clock
    limited = count[Count.LIMIT] >= BUDGET
    while count[Count.FIRST_BOOT] >= 0 and world.jobs[count[Count.FIRST_BOOT]].start <= now:
        if limited:
            _consume(world, min(world.jobs[count[Count.FIRST_BOOT]].start, clock[Clock.END]))
        booted(world)
    if not limited or now < clock[Clock.BEGIN] or clock[Clock.CREDITED] >= clock[Clock.END]:
        return False
    until = min(now, clock[Clock.END])
    _consume(world, until)
    since = max(clock[Clock.CREDITED], clock[Clock.BEGIN])
    estimate = clock[Clock.BASE] + clock[Clock.EXTRA] * count[Count.ALLOCATED]
    clock[Clock.CREDIT] += (clock[Clock.RATE] - estimate) * (until - since)
    clock[Clock.CREDITED] = until
    if now < _stage(world, count[Count.STAGE]):
        return False
    clock[Clock.CREDIT] = clock[Clock.RATE] * (until - clock[Clock.BEGIN]) - clock[Clock.ENERGY]
    count[Count.STAGE] += 1
    return True


@inner
def may_begin(world, now, size, wall):
    """Whether there is energy for the first that waits to start now."""
    lay_out(world, now)
    return affords(world, now, size, now + boot_time(world, size) + wall)


@inner
def hold(world, now, size, wall, guess):
    """Put the reservation of the first that waits to where there is energy for it, and keep that for it.

    After the moment at which it has machines, the first stage that will do is looked for from `guess` on, a time near
    which it may be. Where one will do all later ones will: as the balance rises; or, if it only falls, as only who runs
    on beyond the window can be paid then, who takes the less in it the later he starts.
    """
    clock = world.clock
    time = clock[RESERVATION]
    lay_out(world, now)
    if time < clock[Clock.END] and not affords(world, time, size, time + wall):
        low = int((time - clock[Clock.BEGIN]) / clock[Clock.STAGE_S]) + 1
        high = int((clock[Clock.END] - clock[Clock.BEGIN]) / clock[Clock.STAGE_S]) + 1
        low, high = _near(world, size, wall, low, high, guess)
        while low < high:
            middle = (low + high) >> 1
            if _at_stage(world, middle, size, wall):
                high = middle
            else:
                low = middle + 1
        time = clock[RESERVATION] = _stage(world, low)
        world.count[SPARE] = free_at(world, time, size) - size
    clock[Clock.HELD] = clock[Clock.EXTRA] * size * max(0.0, min(time + wall, clock[Clock.END]) - time)


@inner
def still_held(world, now, size, wall):
    """Whether the reservation of the first that waits stands, where the balance and the machines do."""
    if size > usable(world, size):
        return True
    return world.clock[RESERVATION] > now and not affords(world, now, size, now + wall)


@inner
def _at_stage(world, number, size, wall):
    time = _stage(world, number)
    return affords(world, time, size, time + wall)


@inner
def _near(world, size, wall, low, high, guess):
    """Narrow down the stages, the sooner the closer the guess is."""
    number, step = int((guess - world.clock[Clock.BEGIN]) / world.clock[Clock.STAGE_S] + 0.5), 1
    if number < low or number >= high:
        return low, high
    if _at_stage(world, number, size, wall):
        high = number
        while low < high:
            number = max(low, high - step)
            if not _at_stage(world, number, size, wall):
                return number + 1, high
            high, step = number, 2 * step
    else:
        low = number + 1
        while low < high:
            number = min(high - 1, low + step - 1)
            if _at_stage(world, number, size, wall):
                return low, number
            low, step = number + 1, 2 * step
    return low, high
