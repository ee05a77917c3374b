"""Jobs that wait, by rank, in a tree that knows of each block the smallest size and the shortest walltime."""

from __future__ import annotations

import math

from ..jit import inner
from .tables import NOBODY, WIDTH


@inner
def insert(replay, rank, size, wall):
    """A job begins to wait. O(levels), mostly less."""
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
def remove(replay, rank):
    """It waits no more. O(levels x width), mostly less."""
    least, levels = replay.least, replay.levels
    least[rank].size, least[rank].wall = NOBODY, math.inf
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
def lay(replay, count):
    """Build the tree anew over the first `count` leaves, of which all further ones are empty. O(count)."""
    least, levels = replay.least, replay.levels
    for level in range(1, len(levels) - 1):
        count = (count + WIDTH - 1) // WIDTH
        for i in range(count):
            base, size, wall = levels[level - 1] + i * WIDTH, NOBODY, math.inf
            for k in range(base, base + WIDTH):
                size, wall = min(size, least[k].size), min(wall, least[k].wall)
            least[levels[level] + i].size, least[levels[level] + i].wall = size, wall


@inner
def nothing(replay, cell):
    """What is refused beside what does not fit."""
    return False


@inner
def search(replay, rank, free, spare, now, reservation, refused):
    """The first job from `rank` on that fits `free`, and ends by the reservation or fits `spare`; -1: none.

    O(levels x width) where sizes and walltimes of neighbours go together.

    Args:
        refused: whether all that wait below a cell of the tree are for another reason.
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
        else:  # nobody in this block: go on behind it
            i = i // WIDTH
            level += 1
            if i >= levels[level + 1] - levels[level]:
                return -1
