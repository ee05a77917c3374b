"""Rates of the tasks on one processor under contention, the scores of resource rules, and energy accounting.

Rule: a task whose rate does not change keeps its end to the last bit; otherwise the end follows from its remaining
work. A resource rule chooses the processor with the smallest score under the present contention (table II of IRMaSim).
Sources: IRMaSim (Herrera et al., CCGrid 2021, III-B) with the smooth step of its authors' code; DESiDE (Chahal et al.,
ICPE 2019) for equal shares.
"""

from __future__ import annotations

import math

from ....arrays import Row
from ...heap import rekey
from ...jit import inner
from ...mapping.layout import EQUAL_SHARE, MAX_MIN, PIECEWISE
from ...shares import fair_level, piecewise_share
from .tables import BANDWIDTH, CORES, GFLOPS, MEMORY, POWER, Contended


@inner
def watts(processor: Row) -> float:
    """Return the present power of a processor."""
    if processor.running > 0:
        return processor.per_core * processor.running + processor.common
    return processor.common * processor.idle_share


@inner
def _score(world: Contended, processor: Row, rule: int) -> float:
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
def rescore(world: Contended, p: int) -> None:
    """Update the score of a changed processor. O(log processors); for each processor of its node if memory counts."""
    rule = world.count.rule
    if rule < GFLOPS or rule > POWER:
        return
    low, high = p, p + 1
    if rule == MEMORY:
        node = world.nodes[world.processors[p].node]
        low, high = node.first, node.last
    for k in range(low, high):
        score = _score(world, world.processors[k], rule)
        if score != world.scores[world.processors[k].score_place]:
            rekey(world.scores, world.best, world.processors["score_place"], len(world.best), score, k)


@inner
def level_of(world: Contended, processor: Row) -> float:
    """Return the bandwidth limit of one task in bytes/s on a processor with shared bandwidth. O(cores x levels)."""
    if processor.contention == EQUAL_SHARE:
        return processor.bandwidth / processor.running
    if processor.contention != MAX_MIN or processor.demand <= processor.bandwidth:
        return math.inf
    return fair_level(world.demands, None, processor.running, processor.bandwidth)


@inner
def share_of(processor: Row, demand: float, level: float) -> float:
    """Return the share of its full speed that a task of this demand has."""
    if processor.contention == PIECEWISE:
        others = min(processor.running - 1.0, processor.n_max)
        return piecewise_share(processor, demand, processor.demand * 1e-6, others)
    if demand <= level:
        return 1.0
    return 1.0 / (1.0 + (demand / level - 1.0) * processor.remote)


@inner
def rate(world: Contended, p: int, now: float) -> None:
    """Update the rates of a processor's tasks. O(cores), with max-min O(cores x levels)."""
    processor, cores = world.processors[p], world.cores
    total, tasks = 0.0, 0
    for i in range(processor.first, processor.last):
        if cores[i].job >= 0:
            world.demands[tasks] = cores[i].demand
            total += cores[i].demand
            tasks += 1
    processor.demand = total
    level, gflops, soonest = level_of(world, processor), 0.0, math.inf
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
    if soonest != world.ends[processor.end_place]:
        rekey(world.ends, world.next_end, world.processors["end_place"], len(world.ends), soonest, p)
    rescore(world, p)


@inner
def account(world: Contended, p: int, now: float) -> None:
    """Account the energy of a processor and its node until `now`, before their number of tasks changes. O(1)."""
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
