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
from ..tables import FIRST_END, HEAD, MACHINE, NOW, RESERVATION, RUNNING, SPARE, WIDTH
from .machine_states import boot_time, booted, free_at, row_at, usable
from .tables import BUDGET, Clock, Count


@inner
def lay_out(world, now):
    """Update the balance from now on if it is out of date. O(rows that end before the last changed one)."""
    count, clock, ends = world.count, world.clock, world.ends
    if count[Count.AHEAD] >= 0:
        return
    first, last = count[FIRST_END], count[FIRST_END] + count[RUNNING]
    i, time, used, later = row_at(world, clock[Clock.WRONG]), clock[Clock.END], 0, 0.0
    if i < last:
        time, used, later = min(ends[i].time, time), ends[i].used, ends[i].later
    while i > first:
        i -= 1
        then = min(ends[i].time, time)
        later += used * (time - then)
        time = then
        if ends[i].job < count[Count.TOTAL]:
            used += ends[i].size
        ends[i].used, ends[i].later = used, later
    clock[Clock.WRONG] = -math.inf
    while i < last and ends[i].time <= now:
        i += 1
    count[Count.AHEAD], clock[Clock.LAID], clock[Clock.GROUND] = i, now, 0.0
    clock[Clock.GROUND] = clock[Clock.CREDIT] + clock[Clock.TIE] - balance_at(world, now, i)
    while last > i and ends[last - 1].used == 0:
        last -= 1
    clock[Clock.LASTS] = ends[last - 1].time if last > i else now
    count[Count.EVEN], clock[Clock.EVEN] = _rises(world, 0.0)


@inner
def _rises(world, watts):
    """Return from which row and time on the slope of the balance is at least `watts`; infinite: never."""
    count, clock, ends = world.count, world.clock, world.ends
    low, high = count[Count.AHEAD], count[FIRST_END] + count[RUNNING]
    if clock[Clock.RATE] - clock[Clock.BASE] < watts:
        return high, math.inf
    while low < high:
        middle = (low + high) >> 1
        if clock[Clock.RATE] - (clock[Clock.BASE] + clock[Clock.EXTRA] * ends[middle].used) >= watts:
            high = middle
        else:
            low = middle + 1
    return low, ends[low - 1].time if low > count[Count.AHEAD] else clock[Clock.LAID]


@inner
def balance_at(world, time, row):
    """Return the balance in joules at a time in the window.

    Args:
        world: the state.
        time: seconds.
        row: guess of the row of `ends` at that time.
    """
    count, clock, ends = world.count, world.clock, world.ends
    first, last = count[Count.AHEAD], count[FIRST_END] + count[RUNNING]
    if (row > first and ends[row - 1].time > time) or (row < last and ends[row].time < time):
        row = row_at(world, time)
    joules = clock[Clock.GROUND] + (clock[Clock.RATE] - clock[Clock.BASE]) * (time - clock[Clock.LAID])
    if row < last:
        later = ends[row].later + ends[row].used * (min(ends[row].time, clock[Clock.END]) - time)
        joules += clock[Clock.EXTRA] * later
    return joules


@inner
def least_at(world, low, end, watts, ends, others, until):
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
    return min(max(low, world.clock[Clock.EVEN]), end), world.count[Count.EVEN]


@inner
def affords(world, begins, size, ends):
    """Return whether the balance stays at 0 or above with another job, until all jobs running then have ended.

    Args:
        world: the state.
        begins: start of the job, seconds.
        size: machines of the job.
        ends: latest end of the job, seconds.
    """
    clock = world.clock
    end, watts = min(clock[Clock.END], max(clock[Clock.LASTS], ends)), clock[Clock.EXTRA] * size
    if begins > end:
        return True
    time, row = least_at(world, begins, end, watts, ends, 0.0, ends)
    return balance_at(world, time, row) - watts * (min(time, ends) - begins) >= 0.0


@inner
def in_window(world, now):
    """Return whether energy is limited at that time."""
    clock = world.clock
    return world.count[Count.LIMIT] >= BUDGET and clock[Clock.BEGIN] <= now < clock[Clock.END]


@inner
def next_stage(world):
    """Return when energy is measured next."""
    if world.count[Count.LIMIT] < BUDGET or world.clock[Clock.CREDITED] >= world.clock[Clock.END]:
        return math.inf
    return _stage(world, world.count[Count.STAGE])


@inner
def _stage(world, number):
    """Return the time of a stage; the last is the end of the window."""
    clock = world.clock
    return min(clock[Clock.BEGIN] + number * clock[Clock.STAGE_S], clock[Clock.END])


@inner
def _consume(world, now):
    """Add the energy consumed until `now`, from the states of the machines."""
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
    """Update energy and credit to `now`. Return True at a stage, or at the beginning or end of the window."""
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
def head_affordable(world, now, size, wall):
    """Return whether there is enough energy for the head to start now."""
    lay_out(world, now)
    return affords(world, now, size, now + boot_time(world, size) + wall)


@inner
def reserve_energy(world, now, size, wall, guess):
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
def reservation_stands(world, now, size, wall):
    """Return whether the head's reservation stands, if balance and machines are unchanged."""
    if size > usable(world, size):
        return True
    return world.clock[RESERVATION] > now and not affords(world, now, size, now + wall)


@inner
def _at_stage(world, number, size, wall):
    time = _stage(world, number)
    return affords(world, time, size, time + wall)


@inner
def _near(world, size, wall, low, high, guess):
    """Narrow the range of stages by galloping from the guess."""
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


@inner
def insert_area(world, rank, area):
    """Insert the area of a waiting job. O(levels), mostly less."""
    i = rank
    for level in range(len(world.levels) - 1):
        cell = world.levels[level] + i
        if world.areas[cell] <= area:
            break
        world.areas[cell] = area
        i //= WIDTH


@inner
def remove_area(world, rank):
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
def rebuild_areas(world, count):
    """Rebuild the areas for a queue that occupies the first `count` ranks. O(count)."""
    areas, levels = world.areas, world.levels
    for rank in range(count):
        areas[rank] = world.least[rank].size * world.least[rank].wall
    for level in range(1, len(levels) - 1):
        below, count = count, (count + WIDTH - 1) // WIDTH
        for i in range(count):
            area = math.inf
            for k in range(i * WIDTH, min((i + 1) * WIDTH, below)):
                area = min(area, areas[levels[level - 1] + k])
            areas[levels[level] + i] = area


@inner
def _note_head(world, now):
    """Compute the energy that the head needs, and what it leaves of the balance."""
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
    """Return when the balance is least before the head starts, with a candidate; infinite if the head starts now."""
    clock, now = world.clock, world.clock[NOW]
    end = min(clock[Clock.END], clock[Clock.SINCE])
    if end <= now:
        return math.inf, 0
    return least_at(world, now, end, watts, ends, 0.0, ends)


@inner
def _behind(world, watts, ends):
    """Return the same from the head's start until all jobs have ended; infinite if that is not in the window."""
    clock, now = world.clock, world.clock[NOW]
    low, end = max(now, clock[Clock.SINCE]), min(max(clock[Clock.LOOKED], ends), clock[Clock.END])
    if end < low:
        return math.inf, 0
    return least_at(world, low, end, watts, ends, clock[Clock.OTHERS], clock[Clock.UNTIL])


@inner
def _left(world, time, row):
    """Return what the head leaves of the balance at that time."""
    clock = world.clock
    if time == math.inf:
        return math.inf
    taken = clock[Clock.OTHERS] * max(0.0, min(time, clock[Clock.UNTIL]) - clock[Clock.SINCE])
    return balance_at(world, time, row) - taken


@inner
def cannot_afford(world, cell):
    """Return whether no job below a cell of the tree could be backfilled now, for lack of energy."""
    clock, now = world.clock, world.clock[NOW]
    if world.count[Count.LEFT] == 0:
        _note_head(world, now)
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
    """Return whether too little energy is left at that time for a job of that power and end."""
    clock = world.clock
    left = _left(world, time, row)
    if left - watts * (min(time, ends) - clock[NOW]) >= 0.0:
        return False
    if time <= clock[Clock.LOOKED]:
        clock[Clock.LAST], clock[Clock.LEFT_LAST] = time, left
    return True


@inner
def _exceeds(world, size, area, time, left):
    """Return whether all jobs of at least that size and area consume more by then than is left."""
    return world.clock[Clock.EXTRA] * min(area, size * (time - world.clock[NOW])) > left
