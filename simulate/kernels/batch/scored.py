"""A queue whose order changes with time: those that wait, sorted by a score in each pass."""

from __future__ import annotations

import math

from ..jit import inner
from .tables import BEGAN, WAITING

WFP3, UNICEP, F1 = 1, 2, 3


@inner
def f1(row, began):
    """Of a job that is submitted, where that is not known before the run; the smallest comes first."""
    size_part = math.log10(max(row.wall, 1.0)) * row.size
    return size_part + 870.0 * math.log10(max(row.submit - began, 1.0))


@inner
def score(row, order, now, began):
    """Of a job that waits; the largest comes first. What asks for no time at all comes first once it has waited."""
    if order == F1:
        return -f1(row, began)
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
    return x > y or (x == y and replay.jobs[a].rank < replay.jobs[b].rank)


@inner
def sort_queue(replay, order, now):
    """Score and sort those that wait; nearly sorted as they are, this is nearly linear."""
    queue, count = replay.queue, replay.count[WAITING]
    for i in range(count):
        replay.scores[queue[i]] = score(replay.jobs[queue[i]], order, now, replay.clock[BEGAN])
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
