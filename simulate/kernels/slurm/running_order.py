"""The running jobs in the order of their latest ends, which passes search by halves.

Rule: a job is in it from its start to its end; whatever moves its latest end, moves it.
Complexity: O(log running) to find a job, O(running) moves to add or remove one.
"""

from __future__ import annotations

from ...arrays import Row
from ..block import Block, int64
from ..jit import inner


@inner
def add_running(world: Block, job: int) -> None:
    """Add a job to the running ones, by their latest ends, then by submission. O(running) moves."""
    count, running, place = world.count, world.running, _place_of(world, job)
    ends, row = world.running_ends, world.jobs[job]
    for i in range(count.running, place, -1):
        running[i] = running[i - 1]
        _copy_end(ends[i], ends[i - 1])
    running[place] = job
    ends[place].until, ends[place].piece0, ends[place].pieces = row.until, row.piece0, row.pieces
    count.running += 1


@inner
def _place_of(world: Block, job: int) -> int:
    """Return where a job is, or would be, among the running ones. O(log running)."""
    running, until, low, high = world.running, world.jobs[job].until, int64(0), int64(world.count.running)
    while low < high:
        middle = (low + high) // 2
        other = running[middle]
        if world.jobs[other].until < until or (world.jobs[other].until == until and other < job):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _copy_end(new: Row, old: Row) -> None:
    new.until, new.piece0, new.pieces = old.until, old.piece0, old.pieces


@inner
def end_until(world: Block, job: int, until: int) -> None:
    """Let a running job end at the latest at a time, and keep the running jobs in their order. O(running)."""
    remove_running(world, job)
    world.jobs[job].until = until
    add_running(world, job)


@inner
def remove_running(world: Block, job: int) -> None:
    """Remove a job from the running ones. O(running) moves."""
    count, running, place = world.count, world.running, _place_of(world, job)
    count.running -= 1
    for i in range(place, count.running):
        running[i] = running[i + 1]
        _copy_end(world.running_ends[i], world.running_ends[i + 1])
