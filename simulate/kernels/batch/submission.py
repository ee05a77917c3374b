"""A job is submitted under EASY: what can be said of it at once, without a look at all that waits.

Rule: while the head's reservation stands, who comes behind it starts, or is refused for good, by itself.
"""

from __future__ import annotations

from ..jit import inner
from .tables import FILLS, FREE, HEAD, MACHINE, REJECTED, RESERVATION, RESERVED, SPARE, WAITING
from .waiting import insert


@inner
def at_once(world, size):
    """How long a job of that size waits for its resources, once they are its own."""
    return 0.0


@inner
def submit(world, job, now, direct, start, delay):
    """Take a job in; True if a pass has to look at it.

    Args:
        direct: it may be judged before others of this instant.
        start: gives a job its resources. delay: see `at_once`.
    """
    row, count = world.jobs[job], world.count
    size = row.size
    if size > count[MACHINE]:
        row.state = REJECTED
        return False
    waits = count[WAITING] > 0
    if waits and row.rank > count[HEAD]:
        direct = direct and count[RESERVED] == 1
        if direct and count[FILLS] == 1 and size <= count[FREE]:
            late = now + delay(world, size) + row.wall > world.clock[RESERVATION]
            if not late or size <= count[SPARE]:
                start(world, job, now)
                if late:
                    count[SPARE] -= size
                return False
    else:
        if not waits and direct and size <= count[FREE]:
            start(world, job, now)
            return False
        count[HEAD], count[RESERVED], direct = row.rank, 0, False
    insert(world, row.rank, size, row.wall)
    count[WAITING] += 1
    return not direct
