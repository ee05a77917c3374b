"""Which waiting jobs a plan considers when thousands wait.

Rule: the first jobs in the order of service (by submission and file, each after its predecessors), and as many of the
jobs that may start now, taken in turns from each shape, so that neither a long chain in front nor jobs too large for a
node keep the others out. The rest is planned as these start. Up to that many jobs, all are considered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from heapq import heappop, heappush, nsmallest

from ..state.queue import Entry, Queue

#: More jobs make a search take seconds and improve nothing about the next hour.
WINDOW = 256


def within(
    waiting: Sequence[Entry], placed: Collection[str], queue: Queue, most: int | None
) -> tuple[list[Entry], bool]:
    """Return the waiting jobs to plan, in the order given, and whether others are left out. O(jobs + edges).

    Args:
        waiting: in the order of the queue. A job is left out if a predecessor is neither waiting here, nor placed,
            nor completed.
        placed: keys of the jobs that have their nodes.
        queue: of all these jobs.
        most: size of the window, jobs; None = no window.
    """
    position = {entry.key: i for i, entry in enumerate(waiting)}
    blockers = [_blockers(entry, placed, queue) for entry in waiting]
    ready = [i for i, count in enumerate(blockers) if count == 0]
    heap, taken = ready.copy(), set[int]()
    while heap and (most is None or len(taken) < most):
        i = heappop(heap)
        taken.add(i)
        workflow = waiting[i].workflow
        for name in queue.submissions[workflow].successors.get(waiting[i].job.id, ()):
            k = position.get(f"{workflow}/{name}", -1)
            if k >= 0:
                blockers[k] -= 1
                if blockers[k] == 0:
                    heappush(heap, k)
    if heap and most is not None:
        taken.update(_in_turns([i for i in ready if queue.ready(waiting[i])], waiting, most))
    return [waiting[i] for i in sorted(taken)], bool(heap)


def _blockers(entry: Entry, placed: Collection[str], queue: Queue) -> int:
    """Return how many predecessors must be planned before the job."""
    return sum(other.key not in placed for other in queue.unmet(entry))


def _in_turns(ready: Sequence[int], waiting: Sequence[Entry], most: int) -> list[int]:
    """Return the first job of each shape, then the second of each, and so on, at most `most` of them."""
    turns, ranked = Counter[object](), []
    for i in ready:
        ranked.append((turns[waiting[i].shape], i))
        turns[waiting[i].shape] += 1
    return [i for _, i in nsmallest(most, ranked)]
