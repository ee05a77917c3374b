"""Where the profile has room and where it has not, found without looking at each slice.

Rule: of each whole block of slices the fewest and the most that are free in it are known, as of the last survey; who
changes a slice says so, and the next who asks surveys again from there on.
"""

from __future__ import annotations

from ..jit import inner
from .tables import SLICES, SPAN, SURVEYED


@inner
def changed(world, k):
    """The slices from `k` on are not what they were."""
    if k < world.count[SURVEYED]:
        world.count[SURVEYED] = k


@inner
def survey(world):
    """Count anew what is free in the blocks that have changed. O(slices from the first of them on)."""
    slices, blocks, total = world.slices, world.blocks, world.count[SLICES]
    if world.count[SURVEYED] >= total:
        return
    first = world.count[SURVEYED] // SPAN * SPAN
    while first + SPAN <= total:
        least = most = slices[first].free
        for k in range(first + 1, first + SPAN):
            least, most = min(least, slices[k].free), max(most, slices[k].free)
        blocks[first // SPAN].least, blocks[first // SPAN].most = least, most
        first += SPAN
    world.count[SURVEYED] = total


@inner
def room(world, k, size, before):
    """The first slice from `k` on, and before a time, with so many free; else what is no slice. O(slices / SPAN)."""
    slices, total = world.slices, world.count[SLICES]
    while k < total and slices[k].time < before:
        if k % SPAN == 0 and k + SPAN <= total and world.blocks[k // SPAN].most < size:
            k += SPAN
        elif slices[k].free < size:
            k += 1
        else:
            return k
    return total


@inner
def shortage(world, k, size, end):
    """The first slice from `k` on, and before a time, with fewer free; else -1. O(slices / SPAN)."""
    slices, total = world.slices, world.count[SLICES]
    while k < total and slices[k].time < end:
        if k % SPAN == 0 and k + SPAN <= total and world.blocks[k // SPAN].least >= size:
            k += SPAN
        elif slices[k].free >= size:
            k += 1
        else:
            return k
    return -1
