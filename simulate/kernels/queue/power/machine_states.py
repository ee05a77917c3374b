"""States of machines (idle, off, kept off), their allocation to jobs, and the forecast of free machines.

Rule: idle machines are allocated first, then those that are off, then, to jobs that need them, those kept off; of each
the lowest numbers. Every row added to or removed from `ends` must be reported with `moved`, which updates or
invalidates the sums over rows. Machines on their way to being kept off become free only for jobs that need them.
"""

from __future__ import annotations

from ....arrays import Row
from ...block import int64
from ...jit import inner
from ..resources import popcount, put_into, take_from, word_mask
from ..running import add_running, first_after
from ..tables import ENDED, RUNS
from .tables import AT_FIRST, BLOCKED, BUDGET, INERTIAL, TO_IDLE, TO_KEPT, TO_OFF, Powered


@inner
def moved(world: Powered, until: float, rows: int, size: int) -> None:
    """Update or invalidate the sums over rows after a row was added or removed.

    Args:
        world: the state.
        until: end of the row, seconds.
        rows: 1 if added, -1 if removed.
        size: machines that become free for all jobs at its end.
    """
    count, clock = world.count, world.clock
    if count.limit >= BUDGET:
        clock.wrong = max(clock.wrong, until)
        count.ahead = -1
    if count.keeper == INERTIAL:
        count.flows = 1
        if until <= clock.reached:
            clock.undone -= rows * size * (clock.reached - until)
            count.free_then += rows * size
        else:
            count.behind += rows


@inner
def boot_time(world: Powered, size: int) -> float:
    """Return the boot delay of a job that gets `size` machines now, seconds."""
    return world.clock.on_s if size > world.count.idle else 0.0


@inner
def is_wide(world: Powered, size: int) -> bool:
    """Return whether a job of that size needs machines that are kept off."""
    count = world.count
    return size > count.machine - count.kept - count.keeping


@inner
def usable(world: Powered, size: int) -> int:
    """Return the number of machines that a job of that size can get now; may be negative under a power cap."""
    count = world.count
    return count.free + (count.kept if is_wide(world, size) else 0)


@inner
def begin(world: Powered, job: int, now: float) -> None:
    """Allocate machines to a job and start it."""
    row, count = world.jobs[job], world.count
    size = row.size
    idle = min(size, count.idle)
    off = min(size - idle, count.off)
    row.taken, row.piece0 = now, count.pieces
    if idle > 0:
        count.lowest = take_from(world, world.free, count.lowest, idle)
        used_again(world, row.piece0)
    row.booted = count.pieces
    if off > 0:
        count.lowest_off = take_from(world, world.off, count.lowest_off, off)
    if size > idle + off:
        count.lowest_kept = take_from(world, world.kept, count.lowest_kept, size - idle - off)
    row.pieces = count.pieces - row.piece0
    row.start = now + (world.clock.on_s if size > idle else 0.0)
    row.finish, row.state = row.start + row.run, RUNS
    count.idle -= idle
    count.off -= off
    count.kept -= size - idle - off
    count.free -= idle + off
    count.active += 1
    count.allocated += size
    if size > idle:
        count.booting += size - idle
        _append(world, job, world.boots)
    else:
        count.computing += size
    add_running(world, job, row.finish, row.start + row.wall)
    moved(world, row.start + row.wall, 1, size)


@inner
def used_again(world: Powered, piece: int) -> None:
    """Clear the marks of long idleness of the machines in the pieces from `piece` on. O(words)."""
    if world.count.tired == 0:
        return
    for i in range(piece, world.count.pieces):
        first, last = int64(world.pieces[i].first), int64(world.pieces[i].last)
        for word in range(first // 64, last // 64 + 1):
            mask = word_mask(word, first, last)
            world.count.tired -= popcount(world.tired[word] & mask)
            world.tired[word] &= ~mask


@inner
def _append(world: Powered, job: int, rows: Row) -> None:
    """Append a row to one of the two lists; a row is in at most one of them."""
    if rows.first < 0:
        rows.first = job
    else:
        world.jobs[rows.last].next = job
    rows.last, world.jobs[job].next = job, -1


@inner
def booted(world: Powered) -> None:
    """Record that the next booting job has booted its machines and computes."""
    count = world.count
    job = world.boots.first
    row = world.jobs[job]
    for i in range(row.booted, row.piece0 + row.pieces):
        count.booting -= world.pieces[i].last - world.pieces[i].first + 1
    count.computing += row.size
    world.boots.first = row.next


@inner
def become_idle(world: Powered, job: int) -> None:
    """Make the machines of a row idle."""
    count, row = world.count, world.jobs[job]
    for i in range(row.piece0, row.piece0 + row.pieces):
        first, last = int64(world.pieces[i].first), int64(world.pieces[i].last)
        count.lowest = put_into(world.free, count.lowest, first, last)
        if count.shuts == 1 and world.clock.idle_for > 0.0:
            world.since[first : last + 1] = job
    count.idle += row.size
    count.free += row.size
    if count.shuts == 1:
        _append(world, job, world.became_idle)


@inner
def finish(world: Powered, job: int) -> bool:
    """Process the end of a row. Return True if it was a job."""
    count, row = world.count, world.jobs[job]
    moved(world, row.start + row.wall, -1, 0 if row.state == BLOCKED or row.state == TO_KEPT else row.size)
    if row.state == BLOCKED:
        count.free += row.size
        return False
    if row.state == TO_OFF or row.state == TO_KEPT:
        to_off = row.state == TO_OFF
        for i in range(row.piece0, row.piece0 + row.pieces):
            first, last = int64(world.pieces[i].first), int64(world.pieces[i].last)
            if to_off:
                count.lowest_off = put_into(world.off, count.lowest_off, first, last)
            else:
                count.lowest_kept = put_into(world.kept, count.lowest_kept, first, last)
        count.ending -= row.size
        if to_off:
            count.off += row.size
            count.free += row.size
        else:
            count.kept += row.size
            count.keeping -= row.size
        return False
    if row.state == TO_IDLE:
        count.booting -= row.size
        become_idle(world, job)
        return False
    row.state = ENDED
    count.active -= 1
    count.allocated -= row.size
    count.computing -= row.size
    become_idle(world, job)
    return True


@inner
def at_first(world: Powered, now: float) -> None:
    """Make all machines idle at the beginning."""
    count = world.count
    job = count.rows
    count.rows = job + 1
    row = world.jobs[job]
    row.state, row.taken, row.start, row.finish, row.size = AT_FIRST, now, now, now, 0
    row.piece0, row.pieces, row.booted = count.pieces, 1, count.pieces + 1
    world.pieces[count.pieces].first, world.pieces[count.pieces].last = 0, count.machine - 1
    count.pieces += 1
    world.since[:] = job
    if count.shuts == 1:
        _append(world, job, world.became_idle)


@inner
def _amount(world: Powered, i: int, skips: bool) -> int:
    """Return the machines that become free at the end of a row."""
    row = world.ends[i]
    return 0 if skips and world.jobs[row.job].state == TO_KEPT else row.size


@inner
def when_free(world: Powered, wanted: int, now: float) -> tuple[float, int]:
    """Return when a job of that size can start, and how many machines are free for it then. O(rows ending by then)."""
    ends, i, time, free = world.ends, world.count.first_end, now, usable(world, wanted)
    end, skips = i + world.count.running, world.count.keeping > 0 and not is_wide(world, wanted)
    while free < wanted or (i < end and ends[i].time <= time):
        time = max(time, ends[i].time)
        free += _amount(world, i, skips)
        i += 1
    return time, free


@inner
def free_at(world: Powered, time: float, wanted: int) -> int:
    """Return the number of machines free for a job of that size at a time, after `lay_out`. O(rows ending by then)."""
    count, i, free = world.count, world.count.first_end, usable(world, wanted)
    end, skips = i + count.running, count.keeping > 0 and not is_wide(world, wanted)
    if count.active == count.running > 0:  # only jobs run, whose sums are laid out
        behind = first_after(world, time, count.running)
        return free + world.ends[i].used - (world.ends[behind].used if behind < end else 0)
    while i < end and world.ends[i].time <= time:
        free += _amount(world, i, skips)
        i += 1
    return free
