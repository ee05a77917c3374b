"""How many machines are kept off: proportional and inertial shutdown (thesis of Poquet, 2017, 7.4).

Rule: it is decided at periods only; what is due is switched at once where it can be, and later where that is allowed.
The liquid load horizon is looked at after each instant and before the next; between them it counts as a straight line.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import MACHINE
from .liquid import liquid_load_horizon
from .switching import give_up, keep_off
from .tables import INERTIAL, NOBODY, PROPORTIONAL, ROSE, SWITCH_OFF, SWITCH_ON, Clock, Count


@inner
def next_period(world):
    """When is decided next."""
    if world.count[Count.KEEPER] == NOBODY:
        return math.inf
    return world.clock[Clock.FIRST] + world.count[Count.PERIOD] * world.clock[Clock.PERIOD_S]


@inner
def watch(world, now):
    """Before an instant: the horizon has been going down until now."""
    clock = world.clock
    if world.count[Count.KEEPER] == INERTIAL and now > clock[Clock.SEEN]:
        after, clock[Clock.HORIZON] = clock[Clock.HORIZON], liquid_load_horizon(world, now)
        clock[Clock.SUMMED] += (after + clock[Clock.HORIZON]) * 0.5 * (now - clock[Clock.SEEN])
        clock[Clock.SEEN] = now


@inner
def see(world, now):
    """After an instant."""
    if world.count[Count.KEEPER] == INERTIAL:
        world.clock[Clock.HORIZON] = liquid_load_horizon(world, now)


@inner
def _decide(world):
    """What inertial shutdown does next (algorithm 3)."""
    count, clock = world.count, world.clock
    mean, before = clock[Clock.SUMMED] / clock[Clock.PERIOD_S], clock[Clock.MEAN]
    if mean >= clock[Clock.BOUND] * (1.0 - ROSE):
        if count[Count.KIND] == SWITCH_OFF:
            count[Count.KIND], count[Count.SWITCHED] = SWITCH_ON, 0
        before = 0.0
    on = count[Count.KIND] == SWITCH_ON
    clock[Clock.MEAN], clock[Clock.SUMMED] = mean, 0.0
    if (mean > before * (1.0 + ROSE)) == on:
        last = count[Count.SWITCHED]
        most = _switchable(world, on)
        count[Count.DUE] = min(max(2 * last if count[Count.DOUBLES] == 1 else last + 1, 1), most)
    else:
        count[Count.KIND], count[Count.DUE] = SWITCH_OFF if on else SWITCH_ON, 0
    count[Count.SWITCHED] = 0


@inner
def _switchable(world, on):
    """How many machines could be switched: now, or, where that is allowed, at some time."""
    count = world.count
    if count[Count.LATER] == 0:
        return count[Count.KEPT] if on else count[Count.OFF] + count[Count.IDLE]
    kept = count[Count.KEPT] + count[Count.KEEPING]
    return kept if on else count[MACHINE] - kept


@inner
def decide(world, now, decides):
    """Decide where a period ends, and switch what is due."""
    count = world.count
    if count[Count.KEEPER] == NOBODY:
        return
    if decides:
        count[Count.PERIOD] += 1
        if count[Count.KEEPER] == PROPORTIONAL:
            kept = count[Count.KEPT] + count[Count.KEEPING]
            count[Count.DUE] = max(count[MACHINE] - count[Count.USABLE] - kept, 0)
        else:
            _decide(world)
    if count[Count.DUE] > 0:
        if count[Count.KIND] == SWITCH_OFF:
            keep_off(world, now)
        else:
            give_up(world, now)
        if count[Count.LATER] == 0:
            count[Count.DUE] = 0
