"""A queue whose order changes with time: those that wait, sorted by a score in each pass.

Rule: between passes the first of `queue` are those that wait; who wants them by rank lays a tree over them for a pass.
"""

from __future__ import annotations

import math

from ..jit import inner
from .tables import HEAD, NOBODY, RESERVED, WAITING
from .waiting import lay

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


@inner
def rank_queue(replay, order, now):
    """Sort those that wait, give each its rank and its leaf in the tree, and look at all of them again."""
    count, jobs = replay.count, replay.jobs
    sort_queue(replay, order, now)
    for rank in range(count[WAITING]):
        job = replay.queue[rank]
        replay.ranked[rank], jobs[job].rank = job, rank
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
