"""What a rule of resources looks at: a number for each processor, the smallest is chosen.

Source: IRMaSim (Herrera et al., CCGrid 2021), table II; "current" is under the present contention.
"""

from __future__ import annotations

import math

from ...jit import inner
from .tables import BANDWIDTH, CORES, GFLOPS, MEMORY, POWER, RULE
from .tournament import play


@inner
def watts(processor):
    """What a processor draws now."""
    if processor.running > 0:
        return processor.per_core * processor.running + processor.common
    return processor.common * processor.idle_share


@inner
def _score(world, processor, rule):
    if processor.free == 0:
        return math.inf
    if rule == GFLOPS:
        return -processor.flops
    if rule == CORES:
        return -1.0 * processor.free
    if rule == MEMORY:
        return -1.0 * world.nodes[processor.node].memory
    if rule == BANDWIDTH:
        return processor.demand - processor.bandwidth
    return watts(processor)


@inner
def rescore(world, p):
    """A processor has changed. O(log processors); where memory counts, for each processor of its node."""
    rule = world.count[RULE]
    if rule < GFLOPS or rule > POWER:
        return
    low, high = p, p + 1
    if rule == MEMORY:
        node = world.nodes[world.processors[p].node]
        low, high = node.first, node.last
    for k in range(low, high):
        score = _score(world, world.processors[k], rule)
        if score != world.scores[k]:
            world.scores[k] = score
            play(world.best, world.scores, k)
