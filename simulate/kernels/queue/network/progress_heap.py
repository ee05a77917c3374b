"""A heap of the running jobs by their next change, in which each job knows its position.

Rule: the order of two jobs that change at the same time does not affect the result.
"""

from __future__ import annotations

from ...block import Block
from ...jit import inner


@inner
def insert(world: Block, job: int, time: float) -> None:
    """Add a job. O(log n)."""
    at = world.count.running
    world.count.running = at + 1
    _up(world, at, job, time)


@inner
def remove_first(world: Block) -> None:
    """Remove the first job. O(log n)."""
    size = world.count.running - 1
    world.count.running = size
    if size > 0:
        _down(world, 0, world.heap_job[size], world.heap_time[size])


@inner
def rekey(world: Block, job: int, time: float) -> None:
    """Change the time of a job. O(log n)."""
    at = world.courses[job].place
    if time < world.heap_time[at]:
        _up(world, at, job, time)
    else:
        _down(world, at, job, time)


@inner
def _put(world: Block, at: int, job: int, time: float) -> None:
    world.heap_time[at], world.heap_job[at], world.courses[job].place = time, job, at


@inner
def _up(world: Block, at: int, job: int, time: float) -> None:
    times, jobs = world.heap_time, world.heap_job
    while at > 0 and time < times[(at - 1) >> 1]:
        above = (at - 1) >> 1
        _put(world, at, jobs[above], times[above])
        at = above
    _put(world, at, job, time)


@inner
def _down(world: Block, at: int, job: int, time: float) -> None:
    times, jobs, size = world.heap_time, world.heap_job, world.count.running
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        _put(world, at, jobs[child], times[child])
        at = child
    _put(world, at, job, time)
