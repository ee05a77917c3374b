"""The running jobs in the order of their latest ends, which passes search by halves.

Rule: a job is in it from its start to its end; whatever moves its latest end, moves it. Starts and ends are only noted;
the order is made when it is asked for: `running_jobs` is the way to it.
Complexity: O(log running + added) to add or remove a job, O(running + added * added) for the order after that.
"""

from __future__ import annotations

from ...arrays import Array, Row
from ..block import Block, int64
from ..jit import inner
from .tables import MOST_ADDED


@inner
def running_jobs(world: Block) -> Array:
    """Return the table whose first `count.running` cells are the running jobs, by their latest ends, then by row."""
    if world.count.gaps > 0 or world.count.added > 0:
        _close_gaps(world)
        _merge(world)
    return world.running


@inner
def add_running(world: Block, job: int) -> None:
    """Add a job to the running ones."""
    count = world.count
    if count.added == MOST_ADDED:
        running_jobs(world)
    added, place, until = world.added_running, count.added, world.jobs[job].until
    while place > 0 and _is_after(int64(world.jobs[added[place - 1]].until), int64(added[place - 1]), until, job):
        added[place] = added[place - 1]
        place -= 1
    added[place] = job
    count.added += 1
    count.running += 1


@inner
def _is_after(until: int, job: int, other_until: int, other: int) -> bool:
    return until > other_until or (until == other_until and job > other)


@inner
def _place_of(world: Block, job: int) -> int:
    """Return where a job is in `running`, gaps included. O(log running)."""
    running, until, low, high = world.running, world.jobs[job].until, int64(0), _rows(world)
    while low < high:
        middle = (low + high) // 2
        other = running[middle]
        if _is_after(until, job, int64(world.running_ends[middle].until), int64(other if other >= 0 else ~other)):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _rows(world: Block) -> int:
    """Return how many cells of `running` are in use."""
    return int64(world.count.running - world.count.added + world.count.gaps)


@inner
def end_until(world: Block, job: int, until: int) -> None:
    """Let a running job end at the latest at a time, and keep the running jobs in their order."""
    remove_running(world, job)
    world.jobs[job].until = until
    add_running(world, job)


@inner
def remove_running(world: Block, job: int) -> None:
    """Remove a job from the running ones; in `running`, it leaves a gap: its complement."""
    count, added = world.count, world.added_running
    for place in range(count.added):
        if added[place] == job:
            for k in range(place + 1, count.added):
                added[k - 1] = added[k]
            count.added -= 1
            count.running -= 1
            return
    place = _place_of(world, job)
    count.first_gap = place if count.gaps == 0 else min(count.first_gap, place)
    world.running[place] = ~job
    count.gaps += 1
    count.running -= 1


@inner
def _close_gaps(world: Block) -> None:
    if world.count.gaps == 0:
        return
    running, ends, number = world.running, world.running_ends, world.count.first_gap
    for place in range(number, _rows(world)):
        if running[place] >= 0:
            running[number] = running[place]
            _copy_end(ends[number], ends[place])
            number += 1
    world.count.gaps = 0


@inner
def _merge(world: Block) -> None:
    """Move the jobs that were added to their places, from the last one on."""
    running, ends, last = world.running, world.running_ends, _rows(world) - 1
    while world.count.added > 0:
        job = world.added_running[world.count.added - 1]
        row, place = world.jobs[job], last + world.count.added
        while last >= 0 and _is_after(int64(ends[last].until), int64(running[last]), int64(row.until), int64(job)):
            running[place] = running[last]
            _copy_end(ends[place], ends[last])
            last -= 1
            place -= 1
        running[place] = job
        ends[place].until, ends[place].piece0, ends[place].pieces = row.until, row.piece0, row.pieces
        ends[place].node = first_node(world, job)
        world.count.added -= 1


@inner
def _copy_end(new: Row, old: Row) -> None:
    new.until, new.piece0, new.pieces, new.node = old.until, old.piece0, old.pieces, old.node


@inner
def first_node(world: Block, job: int) -> int:
    """Return the first node of a running job, -1 if it has none."""
    return int64(world.pieces[world.jobs[job].piece0].node if world.jobs[job].pieces > 0 else -1)
