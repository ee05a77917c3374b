"""How fast the tasks of one processor go beside each other: the share of its own speed that a task has left.

Rule: pure arithmetic on what each would move alone, at the processor's speed. Sources: IRMaSim (Herrera et al., CCGrid
2021, III-B) with the smooth step as in its authors' code; DESiDE (Chahal et al., ICPE 2019) for equal shares.
"""

from __future__ import annotations

import math

from ...jit import inner
from ...layout import EQUAL_SHARE, MAX_MIN, PIECEWISE


@inner
def level_of(world, p):
    """What a task may move at most, bytes/s, where the processor's tasks share its bandwidth. O(cores x levels)."""
    processor, cores = world.processors[p], world.cores
    bandwidth, tasks = processor.bandwidth, processor.running
    if processor.contention == EQUAL_SHARE:
        return bandwidth / tasks
    if processor.contention != MAX_MIN or processor.demand <= bandwidth:
        return math.inf
    level = bandwidth / tasks
    while True:
        used, rest = 0.0, 0
        for i in range(processor.first, processor.last):
            if cores[i].job >= 0:
                if cores[i].demand <= level:
                    used += cores[i].demand
                else:
                    rest += 1
        higher = (bandwidth - used) / rest if rest > 0 else math.inf
        if higher <= level * (1.0 + 1e-15):
            return level
        level = higher


@inner
def share_of(processor, demand, level):
    """The share of its speed that a task with this demand has."""
    if processor.contention == PIECEWISE:
        total = processor.demand * 1e-6
        if total < processor.c:
            return 1.0
        others = min(processor.running - 1.0, processor.n_max)
        x = (demand * 1e-6 - (processor.da - others) * processor.db) / (processor.dc - others * processor.dd)
        x = min(max(x, 0.0), 1.0)
        smooth = 1.0 - x * x * x * (x * (6.0 * x - 15.0) + 10.0)
        n = others * processor.d_weight
        return max((smooth * n + 1.0) / (n + 1.0), 1.0 + processor.b * (total - processor.c))
    if demand <= level:
        return 1.0
    return 1.0 / (1.0 + (demand / level - 1.0) * processor.remote)
