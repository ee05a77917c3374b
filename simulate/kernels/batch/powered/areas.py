"""The least area, size x walltime, of those that wait below each cell of their tree (see `waiting`)."""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import WIDTH


@inner
def insert_area(world, rank, area):
    """A job begins to wait. O(levels), mostly less."""
    i = rank
    for level in range(len(world.levels) - 1):
        cell = world.levels[level] + i
        if world.areas[cell] <= area:
            break
        world.areas[cell] = area
        i //= WIDTH


@inner
def remove_area(world, rank):
    """It waits no more. O(levels x width), mostly less."""
    areas, levels, i = world.areas, world.levels, rank
    areas[rank] = math.inf
    for level in range(1, len(levels) - 1):
        i //= WIDTH
        base = levels[level - 1] + i * WIDTH
        area = areas[base]
        for k in range(base + 1, base + WIDTH):
            area = min(area, areas[k])
        if areas[levels[level] + i] == area:
            break
        areas[levels[level] + i] = area


@inner
def lay_areas(world, count):
    """Build them anew for a queue whose first `count` ranks are taken. O(count)."""
    areas, levels = world.areas, world.levels
    for rank in range(count):
        areas[rank] = world.least[rank].size * world.least[rank].wall
    for level in range(1, len(levels) - 1):
        below, count = count, (count + WIDTH - 1) // WIDTH
        for i in range(count):
            area = math.inf
            for k in range(i * WIDTH, min((i + 1) * WIDTH, below)):
                area = min(area, areas[levels[level - 1] + k])
            areas[levels[level] + i] = area
