"""EASY backfilling on machines that are switched off and on, under a limit of power or energy.

Rule: at each instant all ends are processed, then all submissions, then one pass, then machines are switched, without
delaying the first waiting job (the head). An instant has no pass if it has only switches, jobs that can never run, or
jobs that still wait for others before they are submitted. While only time passes, the head's reservation stands and,
unless energy is limited, rejected backfill candidates stay rejected.
"""

from __future__ import annotations

from numba import types

from ...compile import register
from ...jit import inlined, inner
from ..dependencies import are_all_submitted, assign_rank, release_followers
from ..easy import submit
from ..easy_pass import listed_pass, ranked_pass
from ..network.tables import NetworkedPowered
from ..replay_loop import replay_loop
from ..running import ended_well, pop_running
from ..tables import DONE, GOES_ON, GROW
from ..waiting import append_to_queue, never_refused, remove, search, sort_queue
from .budget import (
    account,
    cannot_afford,
    head_affordable,
    in_window,
    insert_area,
    lacks_energy,
    lay_out,
    next_stage,
    remove_area,
    reservation_stands,
    reserve_energy,
)
from .machine_states import at_first, begin, boot_time, finish, is_wide, usable, when_free
from .shutdown import block_capped, decide, evaluate_horizon, integrate_horizon, next_period, switch_off_idle
from .tables import BUDGET, CAP, NO_KEEPER, Powered

#: Most rows that an instant may add: changes to off, to kept or to idle, a power cap, the first row.
ROOM = 6


PoweredType = register(Powered, __name__)
NetworkedPoweredType = register(NetworkedPowered, __name__)


# --- the steps of a pass; their context is whether energy is limited now ---
@inlined
def _may_begin(world: Powered, limited: bool, job: int, now: float) -> bool:
    """Return whether the first waiting job can start."""
    row = world.jobs[job]
    return row.size <= usable(world, row.size) and not (limited and not head_affordable(world, now, row.size, row.wall))


@inner
def _begin(world: Powered, job: int, now: float) -> None:
    """Start a waiting job."""
    begin(world, job, now)
    count, area = world.count, world.jobs[job].size * world.jobs[job].wall
    count.loaded -= area > 0.0
    load = world.clock.load - area
    world.clock.load = load if count.loaded > 0 else 0.0  # no rounding error is left behind


@inlined
def _reserve(world: Powered, limited: bool, job: int, now: float) -> None:
    """Reserve machines and energy for the head, unless its reservation stands."""
    count, clock, size, wall = world.count, world.clock, world.jobs[job].size, world.jobs[job].wall
    held = count.reserved == 1 and not _head_is_wide(world)
    if not held or (limited and not reservation_stands(world, now, size, wall)):
        guess = clock.reservation
        time, free = when_free(world, size, now)
        clock.reservation, count.spare, clock.held = time, free - size, 0.0
        if limited:
            reserve_energy(world, now, size, wall, guess)
    count.stands, count.left, count.head_size, clock.head_wall = 1, 0, size, wall


@inlined
def _backfills(world: Powered, limited: bool, job: int, now: float) -> bool:
    """Backfill a job that fits, unless its boot makes it delay the head. Return whether it starts."""
    count, row = world.count, world.jobs[job]
    size, late = row.size, now + boot_time(world, row.size) + row.wall > world.clock.reservation
    if late and size > count.spare:
        return False
    _begin(world, job, now)
    if late:
        count.spare -= size
    if limited:
        lay_out(world, now)
        count.left = count.stands = 0
    return True


# --- along the tree ---
@inner
def _take_out(world: Powered, rank: int) -> None:
    remove(world, rank)
    if world.count.limit >= BUDGET:
        remove_area(world, rank)
    world.count.waiting -= 1


@inlined
def _begin_ranked(world: Powered, limited: bool, rank: int, now: float) -> None:
    _begin(world, world.ranked[rank], now)
    _take_out(world, rank)


@inlined
def _candidate(world: Powered, limited: bool, rank: int, now: float) -> int:
    count, reservation = world.count, world.clock.reservation
    if count.free <= 0 or count.waiting <= 1:
        return -1
    if limited:
        return search(world, rank, count.free, count.spare, now, reservation, cannot_afford)
    return search(world, rank, count.free, count.spare, now, reservation, never_refused)


@inlined
def _fill(world: Powered, limited: bool, rank: int, now: float) -> None:
    if _backfills(world, limited, world.ranked[rank], now):
        _take_out(world, rank)


# --- along the list ---
@inlined
def _starts(world: Powered, job: int, behind: bool, now: float) -> bool:
    count, row, limited = world.count, world.jobs[job], in_window(world, now)
    if not behind:
        starts = _may_begin(world, limited, job, now)
        if starts:
            _begin(world, job, now)
        return starts
    if count.fills == 0 or row.size > count.free:
        return False
    if now + row.wall > world.clock.reservation and row.size > count.spare:
        return False
    if limited and lacks_energy(world, row.size, row.wall, row.size * row.wall):
        return False
    return _backfills(world, limited, job, now)


@inner
def _reserve_listed(world: Powered, job: int, now: float) -> None:
    _reserve(world, in_window(world, now), job, now)
    world.count.reserved = 1


_pass = ranked_pass(
    inlined(lambda world, limited, rank, now: _may_begin(world, limited, world.ranked[rank], now)),
    _begin_ranked,
    inlined(lambda world, limited, rank, now: _reserve(world, limited, world.ranked[rank], now)),
    _candidate,
    _fill,
)
_pass_in_list = listed_pass(_starts, _reserve_listed)


@inner
def _stands(world: Powered) -> bool:
    """Return whether the reservation still stands as far as machines were switched since."""
    count = world.count
    return count.stands == 1 or (count.keeper == NO_KEEPER and count.limit < BUDGET)


@inner
def _head_is_wide(world: Powered) -> bool:
    """Return whether the job with the reservation needs machines that are kept off.

    Spare machines that were switched off are back by its start, so each pass finds as many spare ones again.
    """
    count = world.count
    return count.kept + count.keeping > 0 and count.waiting > 0 and is_wide(world, count.head_size)


@inner
def _pass_in_order(world: Powered, now: float) -> None:
    """Run a pass; for an order that changes with time, sort the queue first."""
    count, limited = world.count, in_window(world, now)
    if count.order > 0:
        count.reserved = 0
        sort_queue(world, count.order, now)
        _pass_in_list(world, now)
        return
    if not _stands(world) or (limited and count.ahead < 0):
        count.reserved = 0
    _pass(world, limited, now)


# --- the steps of the loop ---
@inner
def _status(world: Powered) -> int:
    count = world.count
    if are_all_submitted(world) and count.active == 0 and count.waiting == 0:
        return DONE
    if count.pieces > len(world.pieces) - 4 * count.machine or count.rows + ROOM > len(world.jobs):
        return GROW
    return GOES_ON


@inner
def _planned(world: Powered) -> float:
    """Return the next stage or period, and when idle machines are switched off or a power cap begins."""
    planned = min(next_stage(world), next_period(world))
    if world.became_idle.first >= 0:
        planned = min(planned, world.jobs[world.became_idle.first].finish + world.clock.idle_for)
    if world.count.limit == CAP and world.clock.begin > world.clock.now:
        planned = min(planned, world.clock.begin)
    return planned


@inner
def _begin_instant(world: Powered, now: float) -> bool:
    count, clock = world.count, world.clock
    if count.rows == count.total:
        at_first(world, now)
    integrate_horizon(world, now)
    before, clock.now = clock.now, now
    changed = account(world, now)
    if changed:
        count.reserved, count.ahead = 0, -1
    if count.limit == CAP and before < clock.begin <= now:
        block_capped(world, now, clock.end)
        changed = True
    return changed


@inner
def _end(world: Powered, now: float) -> None:
    job = pop_running(world)
    if finish(world, job):
        release_followers(world, job, ended_well(world, job))
    world.count.reserved = 0


@inner
def _submit(world: Powered, job: int, now: float, alone: bool) -> bool:
    row, count = world.jobs[job], world.count
    waiting = count.waiting
    assign_rank(world, job)
    if count.order > 0:
        needed = append_to_queue(world, job)
    else:
        direct = (count.in_turn == 1 or alone) and not in_window(world, now)
        direct = direct and (waiting == 0 or (_stands(world) and not _head_is_wide(world)))
        needed = submit(world, job, now, direct, begin, boot_time)
    if count.waiting > waiting:
        area = row.size * row.wall
        world.clock.load += area
        count.loaded += area > 0.0
        if count.limit >= BUDGET and count.order == 0:
            insert_area(world, row.rank, area)
    return needed


@inner
def _decide(world: Powered, now: float, changed: bool) -> None:
    """Run a pass if one is needed, then switch machines."""
    count, decides = world.count, next_period(world) <= now
    if decides and count.passes == 1:
        changed = True
    if changed and count.waiting > 0:
        _pass_in_order(world, now)
    free = count.free
    decide(world, now, decides)
    if count.shuts == 1:
        switch_off_idle(world, now)
    if count.free != free:
        count.stands = 0
    evaluate_horizon(world, now)


_run = replay_loop(_status, _end, _submit, _decide, planned=_planned, begin=_begin_instant)


@inner
def call(world: Powered, instants: int) -> int:
    """Run the replay for a number of instants. Return DONE, GROW or PAUSED."""
    return _run(world, instants)


SIGNATURES = {
    "queue.power.easy_power": (PoweredType(), types.int64),
    "queue.power_networked": (NetworkedPoweredType(), types.int64),
}
