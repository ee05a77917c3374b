"""A heap of the running jobs by their ends."""

from __future__ import annotations

from ..block import Block
from ..jit import inner


@inner
def push(world: Block, job: int, finish: float) -> None:
    """Add a job that ends at `finish`. O(log n)."""
    times, jobs, i = world.heap_time, world.heap_job, world.count.running
    world.count.running = i + 1
    while i > 0 and finish < times[(i - 1) >> 1]:
        times[i], jobs[i] = times[(i - 1) >> 1], jobs[(i - 1) >> 1]
        i = (i - 1) >> 1
    times[i], jobs[i] = finish, job


@inner
def pop(world: Block) -> int:
    """Remove and return the job that ends first. O(log n)."""
    times, jobs, count = world.heap_time, world.heap_job, world.count
    size, first = count.running - 1, jobs[0]
    time, job, i = times[size], jobs[size], 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[i], jobs[i] = times[child], jobs[child]
        i = child
    times[i], jobs[i] = time, job
    count.running = size
    return first
