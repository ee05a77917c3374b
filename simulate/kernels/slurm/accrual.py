"""The age of waiting jobs where limits bound how many of them grow older (MaxJobsAccrue, GrpJobsAccrue).

Rule: each pass looks at the waiting jobs in the order of their submission. The age of a job without such a limit counts
since it is eligible; that of another one since the pass that found a place for it. A place is free again when its job
starts or leaves.
Source: sacctmgr(1); acct_policy_handle_accrue_time of Slurm 22.05.
"""

from __future__ import annotations

from ..block import Block
from ..jit import inner
from .tables import ACCRUING, PENDING


@inner
def begin_to_accrue(world: Block, now: int) -> None:
    """Let the age of waiting jobs count for which there is a place. O(listed jobs)."""
    if world.rules.limits_accrual == 0:
        return
    for place in range(world.count.listed):
        job = world.job_list[place]
        row = world.jobs[job]
        if row.state != PENDING or row.accruing == 1 or row.begin == 0:
            continue
        group = world.limit_groups[world.part_group[row.part0]]
        is_bound, is_full = group.accrual1 > group.submit1, False
        if is_bound:
            limit = world.limits[group.submit1]
            is_full = world.held[limit.counter, ACCRUING] + 1 > limit.bound
        if is_full:
            row.accrue = 0
            continue
        if row.accrue == 0:
            row.accrue = now if is_bound else row.begin
        row.accruing = 1
        _count(world, job, 1)


@inner
def stop_to_accrue(world: Block, job: int) -> None:
    """Free the place of a job that starts or leaves, if it has one."""
    if world.jobs[job].accruing == 1:
        world.jobs[job].accruing = 0
        _count(world, job, -1)


@inner
def _count(world: Block, job: int, change: int) -> None:
    group = world.limit_groups[world.part_group[world.jobs[job].part0]]
    for row in range(group.counters0, group.counters1):
        world.held[world.group_counters[row], ACCRUING] += change
