"""A queue whose order changes with time: those that wait, sorted by a score in each pass.

Rule: between passes the first of `queue` are those that wait; who wants them by rank lays a tree over them for a pass.
"""

from __future__ import annotations

import math

from ..jit import inner
from .tables import BEGAN, HEAD, MACHINE, NOBODY, REJECTED, RESERVED, WAITING
from .waiting import lay

WFP3, UNICEP, F1 = 1, 2, 3


@inner
def f1(replay, job):
    """Of a job that is submitted, where that is not known before the run; the smallest comes first."""
    row = replay.jobs[job]
    size_part = math.log10(max(row.wall, 1.0)) * row.size
    return size_part + 870.0 * math.log10(max(row.submit - replay.clock[BEGAN], 1.0))


@inner
def score(replay, job, order, now):
    """Of a job that waits; the largest comes first. What asks for no time at all comes first once it has waited."""
    if order == F1:
        return -f1(replay, job)
    row = replay.jobs[job]
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
        replay.scores[queue[i]] = score(replay, queue[i], order, now)
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


@inner
def queue_up(replay, job):
    """A job is submitted. True: a pass has to look at it."""
    count = replay.count
    if replay.jobs[job].size > count[MACHINE]:
        replay.jobs[job].state = REJECTED
        return False
    replay.queue[count[WAITING]] = job
    count[WAITING] += 1
    return True


@inner
def rank_queue(replay, order, now):
    """Sort those that wait, give each its leaf in the tree, and look at all of them again."""
    count, jobs = replay.count, replay.jobs
    sort_queue(replay, order, now)
    for rank in range(count[WAITING]):
        job = replay.queue[rank]
        replay.ranked[rank] = job
        replay.least[rank].size, replay.least[rank].wall = jobs[job].size, jobs[job].wall
    lay(replay, count[WAITING])
    count[HEAD] = count[RESERVED] = 0


@inner
def keep_queue(replay, ranks):
    """Those of so many ranks that still wait are the queue, and the tree is empty."""
    kept = 0
    for rank in range(ranks):
        if replay.least[rank].size != NOBODY:
            replay.queue[kept] = replay.ranked[rank]
            kept += 1
        replay.least[rank].size, replay.least[rank].wall = NOBODY, math.inf
