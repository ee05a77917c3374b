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
from ..easy_pass import ranked_pass
from ..network.tables import NetworkedPowered
from ..replay_loop import replay_loop
from ..running import ended_well, pop_running
from ..tables import DONE, GOES_ON, GROW
from ..waiting import append_to_queue, never_refused, rank_queue, remove, restore_queue, search
from .budget import (
    account,
    cannot_afford,
    head_affordable,
    in_window,
    insert_area,
    lay_out,
    next_stage,
    rebuild_areas,
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


@inner
def _load(world: Powered, rank: int) -> float:
    row = world.jobs[world.ranked[rank]]
    return row.size * row.wall


# --- the steps of a pass; their context is whether energy is limited now ---
@inlined
def _fits(world: Powered, limited: bool, rank: int, now: float) -> bool:
    row = world.least[rank]
    return row.size <= usable(world, row.size) and not (limited and not head_affordable(world, now, row.size, row.wall))


@inner
def _begin(world: Powered, limited: bool, rank: int, now: float) -> None:
    """Start a waiting job."""
    begin(world, world.ranked[rank], now)
    remove(world, rank)
    count = world.count
    if count.limit >= BUDGET:
        remove_area(world, rank)
    count.waiting -= 1
    area = _load(world, rank)
    count.loaded -= area > 0.0
    load = world.clock.load - area
    world.clock.load = load if count.loaded > 0 else 0.0  # no rounding error is left behind


@inlined
def _hold(world: Powered, limited: bool, rank: int, now: float) -> None:
    """Reserve machines and energy for the head, unless its reservation stands."""
    count, clock, row = world.count, world.clock, world.least[rank]
    held = count.reserved == 1 and not _head_is_wide(world)
    if not held or (limited and not reservation_stands(world, now, row.size, row.wall)):
        guess = clock.reservation
        time, free = when_free(world, row.size, now)
        clock.reservation, count.spare, clock.held = time, free - row.size, 0.0
        if limited:
            reserve_energy(world, now, row.size, row.wall, guess)
    count.stands = 1
    if limited and count.fills == 1:
        count.left = 0


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
    """Backfill a job that fits, unless its boot makes it delay the head."""
    count, row = world.count, world.least[rank]
    size, late = row.size, now + boot_time(world, row.size) + row.wall > world.clock.reservation
    if late and size > count.spare:
        return
    _begin(world, limited, rank, now)
    if late:
        count.spare -= size
    if limited:
        lay_out(world, now)
        count.left = count.stands = 0


_ranked_pass = ranked_pass(_fits, _begin, _hold, _candidate, _fill)


@inner
def _stands(world: Powered) -> bool:
    """Return whether the reservation still stands as far as machines were switched since."""
    count = world.count
    return count.stands == 1 or (count.keeper == NO_KEEPER and count.limit < BUDGET)


@inner
def _head_is_wide(world: Powered) -> bool:
    """Return whether the head needs machines that are kept off.

    Spare machines that were switched off are back by its start, so each pass finds as many spare ones again.
    """
    count = world.count
    any_kept = count.kept + count.keeping > 0
    return any_kept and count.waiting > 0 and is_wide(world, world.least[count.head].size)


@inner
def _pass(world: Powered, now: float) -> None:
    count, limited = world.count, in_window(world, now)
    if not _stands(world) or (limited and count.ahead < 0):
        count.reserved = 0
    _ranked_pass(world, limited, now)


@inner
def _pass_in_order(world: Powered, now: float) -> None:
    """Run a pass; for an order that changes with time, sort the queue first."""
    count = world.count
    waiting = count.waiting
    if count.order > 0:
        rank_queue(world, count.order, now)
        if count.limit >= BUDGET:
            rebuild_areas(world, waiting)
    _pass(world, now)
    if count.order > 0:
        restore_queue(world, waiting)


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
