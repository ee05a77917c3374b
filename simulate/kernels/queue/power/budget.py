"""Energy budgets that accrue over time: energyBud and reducePC (thesis of Poquet, 2017, 6.4).

Rule: with conservative power estimates and walltimes, no start may let the balance fall below 0 before all jobs running
then have ended. A backfilled job must leave the first waiting job (the head) the energy of its reservation: in
energyBud within the same balance, in reducePC out of what accrues until the reservation.

Balance: each row of `ends` holds the machine-seconds used after it, summed backwards; the sums stay valid behind the
last row that was added or removed. Running jobs let the slope of the balance only rise, and a candidate job lowers it
until its end, so the least balance is where the slope becomes 0: found by bisection in O(log rows).
Backfilling: the tree of waiting jobs has the least area (size x walltime) below each cell. Most candidates are rejected
by the balance at three times: the minimum before the head's start, the minimum after it, and the time at which the last
exact check failed. An exact check starts at the candidate's own end if that is the latest.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..running import first_after
from ..tables import WIDTH
from .machine_states import boot_time, booted, free_at, usable
from .tables import BUDGET, Powered


@inner
def lay_out(world: Powered, now: float) -> None:
    """Update the balance from now on if it is out of date. O(rows that end before the last changed one)."""
    count, clock, ends = world.count, world.clock, world.ends
    if count.ahead >= 0:
        return
    first, last = count.first_end, count.first_end + count.running
    i, time, used, later = first_after(world, clock.wrong, count.running), clock.end, 0, 0.0
    if i < last:
        time, used, later = min(ends[i].time, time), ends[i].used, ends[i].later
    while i > first:
        i -= 1
        then = min(ends[i].time, time)
        later += used * (time - then)
        time = then
        if ends[i].job < count.total:
            used += ends[i].size
        ends[i].used, ends[i].later = used, later
    clock.wrong = -math.inf
    while i < last and ends[i].time <= now:
        i += 1
    count.ahead, clock.laid, clock.ground = i, now, 0.0
    clock.ground = clock.credit + clock.tie - balance_at(world, now, i)
    while last > i and ends[last - 1].used == 0:
        last -= 1
    clock.lasts = ends[last - 1].time if last > i else now
    count.even, clock.even = _rises(world, 0.0)


@inner
def _rises(world: Powered, watts: float) -> tuple[int, float]:
    """Return from which row and time on the slope of the balance is at least `watts`; infinite: never."""
    count, clock, ends = world.count, world.clock, world.ends
    low, high = count.ahead, count.first_end + count.running
    if clock.rate - clock.base < watts:
        return high, math.inf
    while low < high:
        middle = (low + high) >> 1
        if clock.rate - (clock.base + clock.extra * ends[middle].used) >= watts:
            high = middle
        else:
            low = middle + 1
    return low, ends[low - 1].time if low > count.ahead else clock.laid


@inner
def balance_at(world: Powered, time: float, row: int) -> float:
    """Return the balance in joules at a time in the window.

    Args:
        world: the state.
        time: seconds.
        row: guess of the row of `ends` at that time.
    """
    count, clock, ends = world.count, world.clock, world.ends
    first, last = count.ahead, count.first_end + count.running
    if (row > first and ends[row - 1].time > time) or (row < last and ends[row].time < time):
        row = first_after(world, time, count.running)
    joules = clock.ground + (clock.rate - clock.base) * (time - clock.laid)
    if row < last:
        later = ends[row].later + ends[row].used * (min(ends[row].time, clock.end) - time)
        joules += clock.extra * later
    return joules


@inner
def least_at(
    world: Powered, low: float, end: float, watts: float, ends: float, others: float, until: float
) -> tuple[float, int]:
    """Return when the balance is least in [`low`, `end`], and a guess of the row at that time.

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
        row, time = _rises(world, watts + others)
        if time < first:
            return min(max(low, time), end), row
        low = first
    if low < second:
        row, time = _rises(world, others if ends < until else watts)
        if time < second:
            return min(max(low, time), end), row
        low = second
    return min(max(low, world.clock.even), end), world.count.even


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
    time, row = least_at(world, begins, end, watts, ends, 0.0, ends)
    return balance_at(world, time, row) - watts * (min(time, ends) - begins) >= 0.0


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
def reserve_energy(world: Powered, now: float, size: int, wall: float, guess: float) -> None:
    """Move the head's reservation to a time with enough energy for it, and set that energy aside.

    The reservation is at the time at which machines are available, or at the first sufficient stage after it. If a
    stage is sufficient, all later ones are: the balance rises; or, if it only falls, only a job that runs beyond the
    window is affordable, and it consumes less within the window the later it starts.

    Args:
        world: the state.
        now: seconds.
        size: machines of the head.
        wall: walltime of the head, seconds.
        guess: time near which the stage may be; the search starts there.
    """
    clock = world.clock
    time = clock.reservation
    lay_out(world, now)
    if time < clock.end and not affords(world, time, size, time + wall):
        low = int((time - clock.begin) / clock.stage_s) + 1
        high = int((clock.end - clock.begin) / clock.stage_s) + 1
        number, step = int((guess - clock.begin) / clock.stage_s + 0.5), 1
        while low < high:  # from the guess by growing steps, then by halves
            if number < low or number >= high:
                number = (low + high) >> 1
            if affords(world, _stage(world, number), size, _stage(world, number) + wall):
                high, number = number, number - step
            else:
                low, number = number + 1, number + step
            step *= 2
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
def insert_area(world: Powered, rank: int, area: float) -> None:
    """Insert the area of a waiting job. O(levels), mostly less."""
    i = rank
    for level in range(len(world.levels) - 1):
        cell = world.levels[level] + i
        if world.areas[cell] <= area:
            break
        world.areas[cell] = area
        i //= WIDTH


@inner
def remove_area(world: Powered, rank: int) -> None:
    """Remove the area of a job. O(levels x width), mostly less."""
    areas, levels, i = world.areas, world.levels, rank
    areas[rank] = math.inf
    for level in range(1, len(levels) - 1):
        i //= WIDTH
        base = levels[level - 1] + i * WIDTH
        area = areas[base]
        for k in range(base + 1, base + WIDTH):
            area = min(area, areas[k])
        if areas[levels[level] + i] == area:
            break
        areas[levels[level] + i] = area


@inner
def _note_head(world: Powered, now: float) -> None:
    """Compute the energy that the head needs, and what it leaves of the balance."""
    clock, lasts = world.clock, world.clock.lasts
    starts = clock.reservation
    if world.count.limit == BUDGET:
        clock.others, clock.since = clock.extra * world.count.head_size, starts
        clock.until = starts + clock.head_wall
        lasts = max(lasts, clock.until)
    else:
        clock.others = clock.held / (starts - now) if starts > now else 0.0
        clock.since, clock.until = now, max(now, starts)
    clock.looked = min(lasts, clock.end)
    clock.low_before, row = _least_before(world, 0.0, now)
    clock.left_before = _left(world, clock.low_before, row)
    clock.low, row = _least_behind(world, 0.0, now)
    clock.left = _left(world, clock.low, row)
    clock.left_last = _left(world, clock.last, row) if now < clock.last <= clock.looked else math.inf
    world.count.left = 1


@inner
def _least_before(world: Powered, watts: float, ends: float) -> tuple[float, int]:
    """Return when the balance is least before the head starts, with a candidate; infinite if the head starts now."""
    clock, now = world.clock, world.clock.now
    end = min(clock.end, clock.since)
    return least_at(world, now, end, watts, ends, 0.0, ends) if end > now else (math.inf, 0)


@inner
def _least_behind(world: Powered, watts: float, ends: float) -> tuple[float, int]:
    """Return the same from the head's start until all jobs have ended; infinite if that is not in the window."""
    clock = world.clock
    low, end = max(clock.now, clock.since), min(max(clock.looked, ends), clock.end)
    return least_at(world, low, end, watts, ends, clock.others, clock.until) if end >= low else (math.inf, 0)


@inner
def _left(world: Powered, time: float, row: int) -> float:
    """Return what the head leaves of the balance at that time."""
    clock = world.clock
    if time == math.inf:
        return math.inf
    return balance_at(world, time, row) - clock.others * max(0.0, min(time, clock.until) - clock.since)


@inner
def cannot_afford(world: Powered, cell: int) -> bool:
    """Return whether no job below a cell of the tree could be backfilled now, for lack of energy."""
    return lacks_energy(world, world.least[cell].size, world.least[cell].wall, world.areas[cell])


@inner
def lacks_energy(world: Powered, size: int, wall: float, area: float) -> bool:
    """Return whether no job of at least this size, walltime and area could be backfilled now, for lack of energy."""
    clock, now = world.clock, world.clock.now
    if world.count.left == 0:
        _note_head(world, now)
    if (
        clock.extra * min(area, size * (clock.last - now)) > clock.left_last
        or clock.extra * min(area, size * (clock.low - now)) > clock.left
        or clock.extra * min(area, size * (clock.low_before - now)) > clock.left_before
    ):
        return True
    watts, ends = clock.extra * size, now + boot_time(world, size) + wall
    behind = world.count.first_end + world.count.running
    if ends >= clock.lasts and _lacks(world, (min(ends, clock.end), behind), watts, ends):
        return True
    if _lacks(world, _least_before(world, watts, ends), watts, ends):
        return True
    return _lacks(world, _least_behind(world, watts, ends), watts, ends)


@inner
def _lacks(world: Powered, moment: tuple[float, int], watts: float, ends: float) -> bool:
    """Return whether too little energy is left for a job of that power and end; `moment`: see `least_at`."""
    clock, (time, row) = world.clock, moment
    joules = _left(world, time, row)
    if joules - watts * (min(time, ends) - clock.now) >= 0.0:
        return False
    if time <= clock.looked:
        clock.last, clock.left_last = time, joules
    return True
