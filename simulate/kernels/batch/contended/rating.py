"""Rating a processor's tasks anew, and what it and its node took until then.

Rule: a task whose rate stays as it was keeps its end, to the last bit; all else follows from what was left of it.
"""

from __future__ import annotations

import math

from ...jit import inner
from .scores import rescore
from .speeds import level_of, share_of
from .tournament import play


@inner
def rate(world, p, now):
    """Rate the tasks of a processor. O(cores), with max-min O(cores x levels)."""
    processor, cores, ends = world.processors[p], world.cores, world.ends
    total = 0.0
    for i in range(processor.first, processor.last):
        if cores[i].job >= 0:
            total += cores[i].demand
    processor.demand = total
    level, gflops, soonest = level_of(world, p), 0.0, math.inf
    for i in range(processor.first, processor.last):
        core = cores[i]
        if core.job < 0:
            continue
        speed = processor.speed * share_of(processor, core.demand, level)
        if speed != core.rate:
            if core.rate > 0.0:
                core.left = max(core.left - core.rate * (now - core.since), 0.0)
            core.rate, core.since = speed, now
            core.end = min(now + core.left / speed, core.until)
        gflops += speed
        soonest = min(soonest, core.end)
    processor.flops = gflops / processor.running if processor.running > 0 else processor.speed
    if soonest != ends[p]:
        ends[p] = soonest
        play(world.next_end, ends, p)
    rescore(world, p)


@inner
def account(world, p, now):
    """Bring to `now` what a processor and its node took; before the number of their tasks changes. O(1)."""
    processor = world.processors[p]
    node, passed = world.nodes[processor.node], now - processor.since
    processor.since = now
    if processor.running > 0:
        processor.busy += processor.running * passed
        processor.awake += passed
        processor.share += processor.common * passed / processor.running
    passed = now - node.since
    node.since = now
    if node.running > 0:
        node.share += node.watts * passed / node.running
