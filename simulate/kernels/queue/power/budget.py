"""Energy budgets that accrue over time: energyBud and reducePC (thesis of Poquet, 2017, 6.4).

Rule: with conservative power estimates and walltimes, no start may let the balance fall below 0 before all jobs running
then have ended. A backfilled job must leave the first waiting job (the head) the energy of its reservation: in
energyBud within the same balance, in reducePC out of what accrues until the reservation.

Balance: each row of `ends` holds the machine-seconds used after it, summed backwards. Running jobs let the slope of the
balance only rise, and a candidate job lowers it until its end, so the least balance is where the slope becomes 0: found
by bisection in O(log rows).
Backfilling: most candidates are rejected by the balance at three times: the least before the head's start, the least
after it, and the time at which the last exact check failed.
"""

from __future__ import annotations

import math

from ...jit import inner
from .machine_states import boot_time, booted, free_at, row_at, usable
from .tables import BUDGET, Powered


@inner
def lay_out(world: Powered, now: float) -> None:
    """Update the balance from now on if it is out of date. O(rows that end before the last changed one)."""
    count, clock, ends = world.count, world.clock, world.ends
    if count.ahead >= 0:
        return
    first, last = count.first_end, count.first_end + count.running
    i, time, used, later = last, clock.end, 0, 0.0
    while i > first:
        i -= 1
        then = min(ends[i].time, time)
        later += used * (time - then)
        time = then
        if ends[i].job < count.total:
            used += ends[i].size
        ends[i].used, ends[i].later = used, later
    count.ahead, clock.laid, clock.ground = row_at(world, now), now, 0.0
    clock.ground = clock.credit + clock.tie - balance_at(world, now)
    while last > count.ahead and ends[last - 1].used == 0:
        last -= 1
    clock.lasts = ends[last - 1].time if last > count.ahead else now
    clock.even = _rises(world, 0.0)


@inner
def _rises(world: Powered, watts: float) -> float:
    """Return from which time on the slope of the balance is at least `watts`; infinite: never."""
    count, clock, ends = world.count, world.clock, world.ends
    low, high = count.ahead, count.first_end + count.running
    if clock.rate - clock.base < watts:
        return math.inf
    while low < high:
        middle = (low + high) >> 1
        if clock.rate - (clock.base + clock.extra * ends[middle].used) >= watts:
            high = middle
        else:
            low = middle + 1
    return ends[low - 1].time if low > count.ahead else clock.laid


@inner
def balance_at(world: Powered, time: float) -> float:
    """Return the balance in joules at a time in the window."""
    clock, row = world.clock, row_at(world, time)
    joules = clock.ground + (clock.rate - clock.base) * (time - clock.laid)
    if row < world.count.first_end + world.count.running:
        end = world.ends[row]
        joules += clock.extra * (end.later + end.used * (min(end.time, clock.end) - time))
    return joules


@inner
def least_at(world: Powered, low: float, end: float, watts: float, ends: float, others: float, until: float) -> float:
    """Return when the balance is least in [`low`, `end`].

    Args:
        world: the state.
        low: begin of the interval, seconds.
        end: end of the interval, seconds.
        watts: power that a candidate draws, watts.
        ends: when the candidate ends, seconds.
        others: power kept for the head, watts.
        until: when the head's power ends, seconds.
    """
    first, second = min(ends, until), max(ends, until)
    if low < first:
        time = _rises(world, watts + others)
        if time < first:
            return min(max(low, time), end)
        low = first
    if low < second:
        time = _rises(world, others if ends < until else watts)
        if time < second:
            return min(max(low, time), end)
        low = second
    return min(max(low, world.clock.even), end)


@inner
def affords(world: Powered, begins: float, size: int, ends: float) -> bool:
    """Return whether the balance stays at 0 or above with another job, until all jobs running then have ended.

    Args:
        world: the state.
        begins: start of the job, seconds.
        size: machines of the job.
        ends: latest end of the job, seconds.
    """
    clock = world.clock
    end, watts = min(clock.end, max(clock.lasts, ends)), clock.extra * size
    if begins > end:
        return True
    time = least_at(world, begins, end, watts, ends, 0.0, ends)
    return balance_at(world, time) - watts * (min(time, ends) - begins) >= 0.0


@inner
def in_window(world: Powered, now: float) -> bool:
    """Return whether energy is limited at that time."""
    clock = world.clock
    return world.count.limit >= BUDGET and clock.begin <= now < clock.end


@inner
def next_stage(world: Powered) -> float:
    """Return when energy is measured next."""
    if world.count.limit < BUDGET or world.clock.credited >= world.clock.end:
        return math.inf
    return _stage(world, world.count.stage)


@inner
def _stage(world: Powered, number: int) -> float:
    """Return the time of a stage; the last is the end of the window."""
    clock = world.clock
    return min(clock.begin + number * clock.stage_s, clock.end)


@inner
def _consume(world: Powered, now: float) -> None:
    """Add the energy consumed until `now`, from the states of the machines."""
    count, clock = world.count, world.clock
    others = count.computing + count.booting + count.ending + count.off + count.kept
    watts = (
        clock.watts_computing * count.computing
        + clock.watts_on * count.booting
        + clock.watts_ending * count.ending
        + clock.watts_off * (count.off + count.kept)
        + clock.watts_idle * (count.machine - others)
    )
    since = max(clock.measured, clock.begin)
    if now > since:
        clock.energy += watts * (now - since)
    clock.measured = now


@inner
def account(world: Powered, now: float) -> bool:
    """Update energy and credit to `now`. Return True at a stage, or at the beginning or end of the window."""
    count, clock = world.count, world.clock
    limited = count.limit >= BUDGET
    while world.boots.first >= 0 and world.jobs[world.boots.first].start <= now:
        if limited:
            _consume(world, min(world.jobs[world.boots.first].start, clock.end))
        booted(world)
    if not limited or now < clock.begin or clock.credited >= clock.end:
        return False
    until = min(now, clock.end)
    _consume(world, until)
    since = max(clock.credited, clock.begin)
    estimate = clock.base + clock.extra * count.allocated
    clock.credit += (clock.rate - estimate) * (until - since)
    clock.credited = until
    if now < _stage(world, count.stage):
        return False
    clock.credit = clock.rate * (until - clock.begin) - clock.energy
    count.stage += 1
    return True


@inner
def head_affordable(world: Powered, now: float, size: int, wall: float) -> bool:
    """Return whether there is enough energy for the head to start now."""
    lay_out(world, now)
    return affords(world, now, size, now + boot_time(world, size) + wall)


@inner
def reserve_energy(world: Powered, now: float, size: int, wall: float) -> None:
    """Move the head's reservation to a time with enough energy for it, and set that energy aside.

    The reservation is at the time at which machines are available, or at the first sufficient stage after it. If a
    stage is sufficient, all later ones are: the balance rises; or, if it only falls, only a job that runs beyond the
    window is affordable, and it consumes less within the window the later it starts.

    Args:
        world: the state.
        now: seconds.
        size: machines of the head.
        wall: walltime of the head, seconds.
    """
    clock = world.clock
    time = clock.reservation
    lay_out(world, now)
    if time < clock.end and not affords(world, time, size, time + wall):
        low = int((time - clock.begin) / clock.stage_s) + 1
        high = int((clock.end - clock.begin) / clock.stage_s) + 1
        while low < high:
            middle = (low + high) >> 1
            if affords(world, _stage(world, middle), size, _stage(world, middle) + wall):
                high = middle
            else:
                low = middle + 1
        time = clock.reservation = _stage(world, low)
        world.count.spare = free_at(world, time, size) - size
    clock.held = clock.extra * size * max(0.0, min(time + wall, clock.end) - time)


@inner
def reservation_stands(world: Powered, now: float, size: int, wall: float) -> bool:
    """Return whether the head's reservation stands, if balance and machines are unchanged."""
    if size > usable(world, size):
        return True
    return world.clock.reservation > now and not affords(world, now, size, now + wall)


@inner
def note_head(world: Powered, now: float) -> None:
    """Compute the energy that the head needs, and what it leaves of the balance, before others are backfilled."""
    clock, head = world.clock, world.least[world.count.head]
    starts, lasts = clock.reservation, clock.lasts
    if world.count.limit == BUDGET:
        clock.others, clock.since = clock.extra * head.size, starts
        clock.until = starts + head.wall
        lasts = max(lasts, clock.until)
    else:
        clock.others = clock.held / (starts - now) if starts > now else 0.0
        clock.since, clock.until = now, max(now, starts)
    clock.looked = min(lasts, clock.end)
    clock.low_before = _least_before(world, 0.0, now)
    clock.left_before = _left(world, clock.low_before)
    clock.low = _least_behind(world, 0.0, now)
    clock.left = _left(world, clock.low)
    clock.left_last = _left(world, clock.last) if now < clock.last <= clock.looked else math.inf


@inner
def _least_before(world: Powered, watts: float, ends: float) -> float:
    """Return when the balance is least before the head starts, with a candidate; infinite if the head starts now."""
    clock, now = world.clock, world.clock.now
    end = min(clock.end, clock.since)
    return least_at(world, now, end, watts, ends, 0.0, ends) if end > now else math.inf


@inner
def _least_behind(world: Powered, watts: float, ends: float) -> float:
    """Return the same from the head's start until all jobs have ended; infinite if that is not in the window."""
    clock = world.clock
    low, end = max(clock.now, clock.since), min(max(clock.looked, ends), clock.end)
    return least_at(world, low, end, watts, ends, clock.others, clock.until) if end >= low else math.inf


@inner
def _left(world: Powered, time: float) -> float:
    """Return what the head leaves of the balance at that time."""
    clock = world.clock
    if time == math.inf:
        return math.inf
    return balance_at(world, time) - clock.others * max(0.0, min(time, clock.until) - clock.since)


@inner
def cannot_afford(world: Powered, cell: int) -> bool:
    """Return whether no job below a cell of the tree could be backfilled now, for lack of energy."""
    clock, job = world.clock, world.least[cell]
    if (
        _exceeds(world, cell, clock.last, clock.left_last)
        or _exceeds(world, cell, clock.low, clock.left)
        or _exceeds(world, cell, clock.low_before, clock.left_before)
    ):
        return True
    watts, ends = clock.extra * job.size, clock.now + boot_time(world, job.size) + job.wall
    return _lacks(world, _least_before(world, watts, ends), watts, ends) or _lacks(
        world, _least_behind(world, watts, ends), watts, ends
    )


@inner
def _lacks(world: Powered, time: float, watts: float, ends: float) -> bool:
    """Return whether too little energy is left at that time for a job of that power and end."""
    clock, joules = world.clock, _left(world, time)
    if joules - watts * (min(time, ends) - clock.now) >= 0.0:
        return False
    if time <= clock.looked:
        clock.last, clock.left_last = time, joules
    return True


@inner
def _exceeds(world: Powered, cell: int, time: float, energy: float) -> bool:
    """Return whether all jobs below a cell of the tree consume more by then than is left."""
    job = world.least[cell]
    return world.clock.extra * job.size * min(job.wall, time - world.clock.now) > energy
