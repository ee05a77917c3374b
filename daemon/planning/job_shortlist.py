"""Which waiting jobs a plan looks at where thousands wait.

Rule: the first of them in the order in which they would be served (by submission and file, each after those that it
waits for), and as many of those that may start now, in turns from each shape, so that neither a long chain in front
nor jobs too large for a node keep it empty. Up to that many, all; the others' turn comes as these start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from heapq import heappop, heappush, nsmallest

from .queue import Entry, Queue

#: Jobs beyond which a search over a whole queue costs seconds, and finds nothing better for the next hour.
WINDOW = 256


def within(
    waiting: Sequence[Entry], placed: Collection[str], queue: Queue, most: int | None
) -> tuple[list[Entry], bool]:
    """The waiting jobs to plan, in the order given, and whether there are others. O(jobs + edges).

    Args:
        waiting: in the order of the queue; what waits for a job that is neither among these, nor placed, nor
            completed is left out.
        placed: keys of the jobs that have their nodes.
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
    """How many of those that it waits for must be planned before it."""
    return sum(other.key not in placed for other in queue.unmet(entry))


def _in_turns(ready: Sequence[int], waiting: Sequence[Entry], most: int) -> list[int]:
    """The first of each shape, then the second of each, and so on."""
    turns, ranked = Counter[object](), []
    for i in ready:
        ranked.append((turns[waiting[i].shape], i))
        turns[waiting[i].shape] += 1
    return [i for _, i in nsmallest(most, ranked)]
