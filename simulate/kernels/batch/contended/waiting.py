"""Jobs that wait: the first in an order known before, or one that is drawn."""

from __future__ import annotations

from ...jit import inner
from .tables import DRAWS, WAITING
from .tournament import draw


@inner
def push(world, rank):
    """A job begins to wait. O(log n)."""
    queue, i = world.queue, world.count[WAITING]
    world.count[WAITING] = i + 1
    if world.count[DRAWS] == 0:
        while i > 0 and rank < queue[(i - 1) >> 1]:
            queue[i] = queue[(i - 1) >> 1]
            i = (i - 1) >> 1
    queue[i] = rank


@inner
def choose(world):
    """The place in the queue of the job to look at."""
    return draw(world.random, world.count[WAITING]) if world.count[DRAWS] == 1 else 0


@inner
def remove(world, at):
    """The job at a place of the queue does not wait any more; where jobs are drawn, the last takes its place."""
    queue = world.queue
    world.count[WAITING] -= 1
    size = world.count[WAITING]
    rank, i = queue[size], at
    while world.count[DRAWS] == 0:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and queue[child + 1] < queue[child]:
            child += 1
        if queue[child] >= rank:
            break
        queue[i] = queue[child]
        i = child
    queue[i] = rank
