"""EASY backfilling on machines that are switched off and on, under a limit of power or energy.

Rule: at each instant all ends, then all submissions, then one pass, then machines are switched, so that the first that
waits is not delayed. An instant at which only switching is due has no pass. While nothing but the time changes
the head's reservation stands, and, unless energy is limited, who was refused stays refused.
"""

from __future__ import annotations

import math

from numba.core import types

from ...jit import inner
from ...native import BlockType, register
from ..dependents import next_submitted, release_followers, take_turn
from ..ends import next_end
from ..rich import some_wait
from ..running import pop
from ..scored import keep_queue, queue_up, rank_queue
from ..submission import submit
from ..tables import (
    DONE,
    FILLS,
    FREE,
    GROW,
    HEAD,
    IN_TURN,
    INSTANTS,
    MACHINE,
    NEXT,
    NOBODY,
    NOW,
    ORDER,
    PAUSED,
    PIECES,
    RESERVATION,
    RESERVED,
    SPARE,
    WAITING,
)
from ..waiting import nothing, remove, search
from .areas import insert_area, lay_areas, remove_area
from .balance import lay_out
from .budget import account, hold, in_window, may_begin, next_stage, still_held
from .horizon import decide, next_period, see, watch
from .machines import at_first, begin, boot_time, finish, is_wide, usable
from .outlook import when_free
from .paid import cannot_be_paid
from .switching import block, shut_down
from .tables import BUDGET, CAP, Clock, Count, Powered
from .tables import NOBODY as NO_KEEPER

#: Rows that an instant may add: changes to off, to kept or to idle, a power cap, the first.
ROOM = 6


class PoweredType(BlockType):
    """Numba's type of Powered."""


register(Powered, PoweredType)


@inner
def _load(world, rank):
    row = world.jobs[world.ranked[rank]]
    return row.size * row.wall


@inner
def _begin(world, rank, now):
    """Start a job that waits."""
    begin(world, world.ranked[rank], now)
    remove(world, rank)
    if world.count[Count.LIMIT] >= BUDGET:
        remove_area(world, rank)
    world.count[WAITING] -= 1
    world.clock[Clock.LOAD] = world.clock[Clock.LOAD] - _load(world, rank) if world.count[WAITING] > 0 else 0.0


@inner
def _heads(world, now, limited):
    """Start from the queue's head while it fits."""
    count = world.count
    while count[WAITING] > 0:
        row = world.least[count[HEAD]]
        if row.size > usable(world, row.size):
            return
        if limited and not may_begin(world, now, row.size, row.wall):
            return
        _begin(world, count[HEAD], now)
        count[RESERVED] = 0
        if count[WAITING] > 0:
            count[HEAD] = search(world, count[HEAD] + 1, NOBODY - 1, NOBODY - 1, 0.0, 0.0, nothing)


@inner
def _fill(world, rank, now, limited):
    """Start a job behind the head, which fits but for its boot, if it delays nothing."""
    count, row = world.count, world.least[rank]
    size, wall, boot = row.size, row.wall, boot_time(world, row.size)
    late = now + boot + wall > world.clock[RESERVATION]
    if late and size > count[SPARE]:
        return
    _begin(world, rank, now)
    if late:
        count[SPARE] -= size
    if limited:
        lay_out(world, now)
        count[Count.LEFT] = count[Count.STANDS] = 0


@inner
def _stands(world):
    """Whether the machines are still as they were when the reservation was made, where that matters to it."""
    count = world.count
    return count[Count.STANDS] == 1 or (count[Count.KEEPER] == NO_KEEPER and count[Count.LIMIT] < BUDGET)


@inner
def _wide_waits(world):
    """Whether the first that waits cannot do without machines that are kept off: what it could spare is back by its
    start, so that each pass finds as much to spare again."""
    count = world.count
    kept = count[Count.KEPT] + count[Count.KEEPING] > 0
    return kept and count[WAITING] > 0 and is_wide(world, world.least[count[HEAD]].size)


@inner
def _pass(world, now):
    """Start heads while they fit, reserve for the first that does not, and fill in behind it."""
    count, limited = world.count, in_window(world, now)
    stands = _stands(world) and (count[Count.AHEAD] >= 0 or not limited)
    _heads(world, now, limited)
    if count[WAITING] == 0:
        return
    head, wanted, guess = count[HEAD], world.least[count[HEAD]].size, world.clock[RESERVATION]
    held = count[RESERVED] == 1 and stands and not _wide_waits(world)
    if not held or (limited and not still_held(world, now, wanted, world.least[head].wall)):
        time, free = when_free(world, wanted, now)
        world.clock[RESERVATION], count[SPARE], world.clock[Clock.HELD] = time, free - wanted, 0.0
        if limited:
            hold(world, now, wanted, world.least[head].wall, guess)
    count[RESERVED] = count[Count.STANDS] = 1
    if count[FILLS] == 0:
        return
    if limited:
        count[Count.LEFT] = 0
    rank = head
    while count[FREE] > 0 and count[WAITING] > 1:
        reservation = world.clock[RESERVATION]
        if limited:
            rank = search(world, rank + 1, count[FREE], count[SPARE], now, reservation, cannot_be_paid)
        else:
            rank = search(world, rank + 1, count[FREE], count[SPARE], now, reservation, nothing)
        if rank < 0:
            break
        _fill(world, rank, now, limited)


@inner
def _pass_in_order(world, now):
    """A pass; where the order changes with time, over the queue as it is now."""
    count = world.count
    waiting = count[WAITING]
    if count[ORDER] > 0:
        rank_queue(world, count[ORDER], now)
        if count[Count.LIMIT] >= BUDGET:
            lay_areas(world, waiting)
    _pass(world, now)
    if count[ORDER] > 0:
        keep_queue(world, waiting)


@inner
def _submit(world, job, now, direct):
    """Take a job in; True if a pass has to look at it."""
    row, count = world.jobs[job], world.count
    waiting = count[WAITING]
    looked_at = queue_up(world, job) if count[ORDER] > 0 else submit(world, job, now, direct, begin, boot_time)
    if count[WAITING] > waiting:
        area = row.size * row.wall
        world.clock[Clock.LOAD] += area
        if count[Count.LIMIT] >= BUDGET and count[ORDER] == 0:
            insert_area(world, row.rank, area)
    return looked_at


@inner
def _next_instant(world):
    count, jobs = world.count, world.jobs
    now = jobs[count[NEXT]].submit if count[NEXT] < count[Count.TOTAL] else math.inf
    now = min(now, next_stage(world), next_period(world))
    if count[Count.FIRST_IDLE] >= 0:
        now = min(now, jobs[count[Count.FIRST_IDLE]].finish + world.clock[Clock.IDLE_FOR])
    if count[Count.LIMIT] == CAP and world.clock[Clock.BEGIN] > world.clock[NOW]:
        now = min(now, world.clock[Clock.BEGIN])
    return min(now, next_end(world, now))


@inner
def _instant(world, now, some):
    """All that happens at an instant; `some`: see `some_wait`."""
    count, clock, total = world.count, world.clock, world.count[Count.TOTAL]
    watch(world, now)
    before = clock[NOW]
    clock[NOW] = now
    unsettled = account(world, now)
    if unsettled:
        count[RESERVED], count[Count.AHEAD] = 0, -1
    if count[Count.LIMIT] == CAP and before < clock[Clock.BEGIN] <= now:
        block(world, now, clock[Clock.END])
        unsettled = True
    while next_end(world, now) == now:
        job = pop(world)
        if finish(world, job) and some:
            release_followers(world, job)
        count[RESERVED], unsettled = 0, True
    limited = in_window(world, now)
    decides = next_period(world) <= now
    if decides and count[Count.PASSES] == 1:
        unsettled = True
    first = count[NEXT]
    job = next_submitted(world, total, now, some)
    while job >= 0:
        if some:
            take_turn(world, job)
        alone = job == first and (job + 1 == total or world.jobs[job + 1].submit != now)
        direct = (count[IN_TURN] == 1 or alone) and not limited
        direct = direct and (count[WAITING] == 0 or (_stands(world) and not _wide_waits(world)))
        if _submit(world, job, now, direct):
            unsettled = True
        job = next_submitted(world, total, now, some)
    moved = limited or count[RESERVED] == 0 or not _stands(world) or count[ORDER] > 0  # time may put another first
    unsettled = unsettled or (count[NEXT] > first and moved)
    if unsettled and count[WAITING] > 0:
        _pass_in_order(world, now)
    free = count[FREE]
    decide(world, now, decides)
    if count[Count.SHUTS] == 1:
        shut_down(world, now)
    if count[FREE] != free:
        count[Count.STANDS] = 0
    see(world, now)


@inner
def call(world, instants):
    """Go on for so many instants; DONE, GROW or PAUSED."""
    count, capacity, some = world.count, len(world.pieces) - 4 * world.count[MACHINE], some_wait(world)
    while True:
        if count[NEXT] >= count[Count.TOTAL] and count[Count.ACTIVE] == 0 and count[WAITING] == 0:
            return DONE
        if count[PIECES] > capacity or count[Count.ROWS] + ROOM > len(world.jobs):
            return GROW
        if instants == 0:
            return PAUSED
        instants -= 1
        count[INSTANTS] += 1
        now = _next_instant(world)
        if count[Count.ROWS] == count[Count.TOTAL]:
            at_first(world, now)
        _instant(world, now, some)


SIGNATURE = (PoweredType(), types.int64)
