"""The CPUs that a pass counts for a job that it does not start: whether they are known without its place in the plan.

Complexity: O(kinds of nodes), O(kinds x words) for a job that was not tested before.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .bits import copy, intersect, shared_number
from .job_limits import has_certain_cpus
from .node_cpus import usable_cpus
from .pass_records import least_priority
from .reserved_nodes import is_outside_all
from .tables import AVAILABLE, NOW, OWN


@inner
def has_known_cpus(world: Block, job: int, slot: int, least: int) -> bool:
    """Return whether a place in the plan would not change the CPUs of a job's last test; note them if they are new.

    Args:
        world: the state.
        job: its row.
        slot: the row of its partition in `job_parts`.
        least: how many nodes it needs.
    """
    row, part = world.jobs[job], world.job_parts[slot]
    if row.required >= 0:
        return False
    if row.exclusive == 0 and world.partitions[part].exclusive == 0:
        return has_certain_cpus(world, job, part) and (row.counted_cpus == 0 or row.counted_cpus == row.min_cpus)
    cpus = whole_cpus(world, job, part, least)
    if cpus > 0 and row.counted_cpus == 0 and _has_a_place(world, job, slot, least):
        row.counted_cpus = cpus
    return bool(cpus > 0 and row.counted_cpus == cpus)


@inner
def whole_cpus(world: Block, job: int, part: int, least: int) -> int:
    """Return how many CPUs a job that takes whole nodes has wherever it runs, 0: that depends on its nodes."""
    row = world.jobs[job]
    if row.want_nodes > least or len(world.kinds) == 0:
        return int64(0)
    first = world.nodes[world.kinds[0]]
    for kind in range(1, len(world.kinds)):
        node = world.nodes[world.kinds[kind]]
        if node.cpus != first.cpus or node.cores != first.cores or node.threads != first.threads:
            return int64(0)
    cpus, most = first.cores * first.threads, world.partitions[part].max_cpus_per_node
    if least * (min(cpus, most) if most >= 0 else cpus) < row.min_cpus:
        return int64(0)
    return int64(least * first.cpus)


@inner
def _has_a_place(world: Block, job: int, slot: int, least: int) -> bool:
    """Return True if a job that takes whole nodes could run once nothing else does."""
    row, part, rules = world.jobs[job], world.job_parts[slot], world.rules
    if row.allowed >= 0 or row.required >= 0 or row.contiguous == 1 or not is_outside_all(world, job):
        return False
    if rules.bf_min_age_reserve > 0 or least_priority(world, job) > 0:
        return False
    if 0 <= row.max_nodes < least or 0 <= world.part_most_nodes[slot] < least:
        return False
    words, number = world.scratch[OWN], int64(0)
    copy(words, world.scratch[AVAILABLE])
    intersect(words, world.partition_nodes[part])
    for kind in range(len(world.kinds)):
        if usable_cpus(world, job, part, int64(world.kinds[kind]), NOW) > 0:
            number += shared_number(words, world.kind_nodes[kind])
    return number >= least
