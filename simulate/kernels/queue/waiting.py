"""Waiting jobs: a tree by rank with the smallest size and shortest walltime of each block, and a queue sorted by score.

Rule: for orders that change with time, `queue` holds the waiting jobs between passes and is sorted in each pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...arrays import Array
from ..block import Block
from ..jit import by_type, inner
from .learned_score import LEARNED, note_learned_scores
from .tables import NO_JOB, REJECTED, WIDTH, RichReplay


@inner
def insert(replay: Block, rank: int, size: int, wall: float) -> None:
    """Insert a waiting job. O(levels), mostly less."""
    least, levels = replay.least, replay.levels
    i = rank
    for level in range(len(levels) - 1):
        cell = least[levels[level] + i]
        if level > 0 and cell.size <= size and cell.wall <= wall:
            break
        cell.size = min(cell.size, size)
        cell.wall = min(cell.wall, wall)
        i //= WIDTH


@inner
def remove(replay: Block, rank: int) -> None:
    """Remove a job. O(levels x width), mostly less."""
    least, levels = replay.least, replay.levels
    least[rank].size, least[rank].wall = NO_JOB, math.inf
    i = rank
    for level in range(1, len(levels) - 1):
        i //= WIDTH
        base = levels[level - 1] + i * WIDTH
        size, wall = least[base].size, least[base].wall
        for k in range(base + 1, base + WIDTH):
            size, wall = min(size, least[k].size), min(wall, least[k].wall)
        cell = least[levels[level] + i]
        if cell.size == size and cell.wall == wall:
            break
        cell.size, cell.wall = size, wall


@inner
def never_refused(replay: Block, cell: int) -> bool:
    """Reject no job for reasons other than size and time (the default `refused` of `search`)."""
    return False


@inner
def search(
    replay: Block, rank: int, free: int, spare: int, now: float, reservation: float, refused: Callable[[Any, int], bool]
) -> int:
    """Return the first rank from `rank` on whose job can be backfilled; -1 if none.

    The job fits `free` and either ends by the reservation or fits `spare`. O(levels x width) if sizes and walltimes of
    adjacent ranks are similar.

    Args:
        replay: the state.
        rank: first rank to examine.
        free: free resources.
        spare: resources that the head job does not need at its reservation.
        now: the time, seconds.
        reservation: start reserved for the head job, seconds.
        refused: function that returns whether all jobs below a cell of the tree are rejected for another reason.
    """
    least, levels = replay.least, replay.levels
    top = len(levels) - 2
    level, i = 0, rank
    if rank >= levels[1]:
        return -1
    while True:
        stop = (i // WIDTH + 1) * WIDTH if level < top else levels[level + 1] - levels[level]
        base = levels[level]
        while i < stop:
            cell = least[base + i]
            fits = cell.size <= free and (now + cell.wall <= reservation or cell.size <= spare)
            if fits and not refused(replay, base + i):
                break
            i += 1
        if i < stop:
            if level == 0:
                return i
            level -= 1
            i *= WIDTH
        elif level == top:
            return -1
        else:  # no candidate in this block: continue with the next one
            i = i // WIDTH
            level += 1
            if i >= levels[level + 1] - levels[level]:
                return -1


@inner
def next_waiting(replay: Block, rank: int) -> int:
    """Return the first rank from `rank` on whose job waits; -1 if none."""
    return search(replay, rank, NO_JOB - 1, NO_JOB - 1, 0.0, 0.0, never_refused)


WFP3, UNICEP, F1, SJF = 1, 2, 3, 4


@inner
def f1(replay: Block, job: int) -> float:
    """Return the f1 key of a submitted job, if it is not known before the run; the smallest comes first."""
    row = replay.jobs[job]
    size_part = math.log10(max(row.wall, 1.0)) * row.size
    return size_part + 870.0 * math.log10(max(row.submit - replay.clock.began, 1.0))


@inner
def _written_score(replay: Block, job: int, order: int, now: float) -> float:
    """Return the score of a waiting job; the largest comes first. Jobs of zero walltime come first once they waited."""
    if order == F1:
        return -f1(replay, job)
    row = replay.jobs[job]
    wait = now - row.submit
    if row.wall <= 0.0:
        return math.inf if wait > 0.0 else 0.0
    if order == WFP3:
        ratio = wait / row.wall
        return ratio * ratio * ratio * row.size
    if order == SJF:
        return -row.wall
    return wait / (math.log2(max(row.size, 2)) * row.wall)


@inner
def _note_written_score(replay: Block, job: int, order: int, now: float) -> None:
    replay.scores[job] = _written_score(replay, job, order, now)


@inner
def _note_rich_scores(replay: Block, job: int, order: int, now: float) -> None:
    if order == LEARNED:
        note_learned_scores(replay, job, now)
    else:
        _note_written_score(replay, job, order, now)


#: note_scores(replay, job, order, now): note what a waiting job is sorted by; the largest comes first.
_note_scores = by_type(lambda world: world == RichReplay.numba_type, _note_rich_scores, _note_written_score)


@inner
def _before(replay: Block, scores: Array, a: int, b: int) -> bool:
    x, y = scores[a], scores[b]
    return x > y or (x == y and replay.jobs[a].rank < replay.jobs[b].rank)


@inner
def _sort(replay: Block, scores: Array, first: int) -> None:
    """Sort the queue from a place on. Shell sort: nearly linear where it is nearly sorted."""
    queue, count, gap = replay.queue, replay.count.waiting, 1
    while gap < (count - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, count):
            job, k = queue[i], i
            while k >= first + gap and _before(replay, scores, job, queue[k - gap]):
                queue[k] = queue[k - gap]
                k -= gap
            queue[k] = job
        gap //= 3


@inner
def sort_queue(replay: Block, order: int, now: float) -> None:
    """Score and sort the waiting jobs."""
    for i in range(replay.count.waiting):
        _note_scores(replay, replay.queue[i], order, now)
    _sort(replay, replay.scores, 0)


@inner
def sort_candidates(replay: Block, first: int) -> None:
    """Sort the jobs behind a reservation, which begin at a place of the queue, if they have an order of their own."""
    if len(replay.filling) > 0:
        _sort(replay, replay.fill_scores, first)


@inner
def append_to_queue(replay: Block, job: int) -> bool:
    """Append a submitted job to the queue, or reject it. Return True if a pass is needed."""
    count = replay.count
    if replay.jobs[job].size > count.machine:
        replay.jobs[job].state = REJECTED
        return False
    replay.queue[count.waiting] = job
    count.waiting += 1
    return True


@inner
def insert_by_rank(world: Block, job: int) -> None:
    """Insert a job into the queue, by rank. O(jobs of higher rank)."""
    i = world.count.waiting
    while i > 0 and world.jobs[world.queue[i - 1]].rank > world.jobs[job].rank:
        world.queue[i] = world.queue[i - 1]
        i -= 1
    world.queue[i] = job
    world.count.waiting += 1
