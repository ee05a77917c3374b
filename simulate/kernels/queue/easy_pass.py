"""The pass of EASY backfilling and strict order, into which each world puts its own steps.

Rule: the first waiting jobs start while they fit. The first that does not (the head) has a reservation. Jobs behind it
start, in their order, if they fit now and do not delay it. The two passes differ in how they find these jobs: over a
tree of ranks only those are visited that may start; along a list all are, which is for orders and rooms that no tree
knows. The steps are compiled into a pass, so a step that does nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..block import Block
from ..jit import inlined, inner
from .waiting import next_waiting


def heads_by_rank(
    fits: Callable[[Any, Any, int, float], bool],
    start: Callable[[Any, Any, int, float], None],
    follow: Callable[[Any, int], None] = inner(lambda world, rank: None),
) -> Callable[[Any, Any, float], None]:
    """Return a function that starts the first jobs while they fit: run(world, context, now).

    Args:
        fits: returns whether the job of a rank can start now as the first. The second argument is the context, what
            the steps need to know besides the state.
        start: starts the job of a rank.
        follow: takes the rank of a new first job.
    """

    @inlined
    def run(world: Block, context: Any, now: float) -> None:
        count = world.count
        while count.waiting > 0 and fits(world, context, count.head, now):
            start(world, context, count.head, now)
            if count.waiting > 0:
                count.head = next_waiting(world, count.head + 1)
                follow(world, count.head)

    return run


def behind_by_rank(
    candidate: Callable[[Any, Any, int, float], int], fill: Callable[[Any, Any, int, float], None]
) -> Callable[[Any, Any, int, float], None]:
    """Return a function that starts jobs behind the reservation: run(world, context, rank, now), from `rank` on.

    Args:
        candidate: returns the first rank from a rank on whose job may start behind the reservation, -1: none. The other
            arguments are those of `heads_by_rank`.
        fill: starts the job of such a rank, if it does.
    """

    @inlined
    def run(world: Block, context: Any, rank: int, now: float) -> None:
        while True:
            rank = candidate(world, context, rank, now)
            if rank < 0:
                return
            fill(world, context, rank, now)
            rank += 1

    return run


def ranked_pass(
    fits: Callable[[Any, Any, int, float], bool],
    start: Callable[[Any, Any, int, float], None],
    hold: Callable[[Any, Any, int, float], None],
    candidate: Callable[[Any, Any, int, float], int],
    fill: Callable[[Any, Any, int, float], None],
) -> Callable[[Any, Any, float], None]:
    """Return a pass over a tree of waiting jobs by rank: run(world, context, now).

    Args:
        fits: see `heads_by_rank`.
        start: likewise.
        hold: finds the reservation for the job of a rank, if it has none that stands.
        candidate: see `behind_by_rank`.
        fill: likewise.
    """

    @inlined
    def start_head(world: Block, context: Any, rank: int, now: float) -> None:
        start(world, context, rank, now)
        world.count.reserved = 0

    heads, behind = heads_by_rank(fits, start_head), behind_by_rank(candidate, fill)

    @inner
    def run(world: Block, context: Any, now: float) -> None:
        count = world.count
        heads(world, context, now)
        if count.waiting == 0:
            count.reserved = 0
            return
        hold(world, context, count.head, now)
        count.reserved = 1
        if count.fills == 1:
            behind(world, context, count.head + 1, now)

    return run


def listed_pass(
    starts: Callable[[Any, int, bool, float], bool],
    reserve: Callable[[Any, int, float], None],
    arrange: Callable[[Any, int], None] = inner(lambda world, first: None),
) -> Callable[[Any, float], None]:
    """Return a pass along a list of waiting jobs: run(world, now). O(waiting jobs).

    Args:
        starts: starts a job if it can start now; the third argument says that another job has the reservation. Returns
            whether it did.
        reserve: finds the reservation of a job.
        arrange: orders the jobs behind the reservation, which begin at a place of the queue.
    """

    @inner
    def run(world: Block, now: float) -> None:
        queue, waiting = world.queue, 0
        for i in range(world.count.waiting):
            job = queue[i]
            if starts(world, job, waiting > 0, now):
                continue
            if waiting == 0:
                reserve(world, job, now)
                arrange(world, i + 1)
            queue[waiting] = job
            waiting += 1
        world.count.waiting = waiting

    return run
