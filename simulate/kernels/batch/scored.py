"""A queue whose order changes with time: those that wait, sorted by a score in each pass."""

from __future__ import annotations

import math

from ..jit import inner
from .tables import WAITING

WFP3, UNICEP = 1, 2


@inner
def score(row, order, now):
    """Of a job that waits; the largest comes first. What asks for no time at all comes first once it has waited."""
    wait = now - row.submit
    if row.wall <= 0.0:
        return math.inf if wait > 0.0 else 0.0
    if order == WFP3:
        ratio = wait / row.wall
        return ratio * ratio * ratio * row.size
    return wait / (math.log2(max(row.size, 2)) * row.wall)


@inner
def _before(replay, a, b):
    x, y = replay.scores[a], replay.scores[b]
    return x > y or (x == y and a < b)


@inner
def sort_queue(replay, order, now):
    """Score and sort those that wait; nearly sorted as they are, this is nearly linear."""
    queue, count = replay.queue, replay.count[WAITING]
    for i in range(count):
        replay.scores[queue[i]] = score(replay.jobs[queue[i]], order, now)
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            job, k = queue[i], i
            while k >= gap and _before(replay, job, queue[k - gap]):
                queue[k] = queue[k - gap]
                k -= gap
            queue[k] = job
        gap //= 3
