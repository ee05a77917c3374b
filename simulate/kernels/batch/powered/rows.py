"""The rows of `ends`, by when jobs and changes of machines end, and what is known of them beside.

Rule: whoever adds a row or takes one away says so here; what is summed over rows is kept by it, or known to be wrong.
"""

from __future__ import annotations

from ...jit import inner
from ..tables import FIRST_END, RUNNING
from .tables import BUDGET, INERTIAL, Clock, Count


@inner
def row_at(world, time):
    """The first row that ends after that time."""
    low = world.count[FIRST_END]
    high = low + world.count[RUNNING]
    while low < high:
        middle = (low + high) >> 1
        if world.ends[middle].time <= time:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def moved(world, until, rows, size):
    """A row was added (1), or taken away (-1), at whose end so much comes free for all.

    What was summed for the balance before that is wrong; of the liquid load it is known what is left.
    """
    count, clock = world.count, world.clock
    if count[Count.LIMIT] >= BUDGET:
        clock[Clock.WRONG] = max(clock[Clock.WRONG], until)
        count[Count.AHEAD] = -1
    if count[Count.KEEPER] == INERTIAL:
        count[Count.FLOWS] = 1
        if until <= clock[Clock.REACHED]:
            clock[Clock.UNDONE] -= rows * size * (clock[Clock.REACHED] - until)
            count[Count.FREE_THEN] += rows * size
        else:
            count[Count.BEHIND] += rows
