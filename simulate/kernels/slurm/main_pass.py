"""The main pass: the queue in order; a job that is refused closes its partition for all behind it (`_schedule`).

Complexity: O(records), and one choice of nodes for each job that starts and each partition that closes.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .bits import copy, shared_number, subtract
from .job_limits import ALLOWED, has_licences
from .job_states import is_eligible
from .record_order import sort_records
from .reserved_nodes import instance_at
from .start_test import try_start
from .tables import AVAILABLE, BUSY, BY_MAIN, RESERVED, STARTED, TAKING


@inner
def main_pass(world: Block, now: int, is_full: bool) -> int:
    """Carry out one main pass; return the number of jobs that it started.

    Args:
        world: the state.
        now: the time.
        is_full: whether all records are looked at, and not `default_queue_depth` of them.
    """
    count, rules = world.count, world.rules
    if count.stale == 1:
        sort_records(world)
    count.passes += 1
    count.main_passes += 1
    count.in_pass = 1
    copy(world.scratch[AVAILABLE], world.node_sets[TAKING])
    available = world.scratch[AVAILABLE]
    started, depth, last_array = int64(0), int64(0), int64(-1)
    for k in range(count.records):
        job, slot = world.records[k].job, world.records[k].slot
        part = world.job_parts[slot]
        row, limits = world.jobs[job], world.partitions[part]
        if not is_eligible(world, job, now):
            continue
        if rules.sched_max_job_start > 0 and started >= rules.sched_max_job_start:
            break
        if row.array >= 0:
            head = world.jobs[row.array]
            if head.refused == count.passes and head.refused_part == part:
                continue
            if head.array_limit > 0 and head.running_tasks >= head.array_limit:
                continue
        if limits.tested_pass != count.passes:
            limits.tested_pass, limits.tested = count.passes, 0
        is_next_task = row.array >= 0 and row.array == last_array
        last_array = row.array
        if not is_next_task:
            limits.tested += 1
            if rules.partition_job_depth > 0 and limits.tested > rules.partition_job_depth:
                continue
            depth += 1
            if not is_full and depth > rules.default_queue_depth + 1:
                break
        if world.part_allowed[slot] != ALLOWED or limits.up == 0:
            continue
        if row.reservation >= 0:
            if world.reservations[row.reservation].closed == count.passes:
                continue
        elif limits.closed == count.passes:
            continue
        refused = shared_number(available, world.partition_nodes[part]) < max(row.min_nodes, int64(1))
        if not refused:
            if not has_licences(world, job):
                continue
            answer = try_start(world, job, slot, available, now, int64(BY_MAIN))
            if answer == STARTED:
                started += 1
                continue
            if row.array >= 0:
                world.jobs[row.array].refused, world.jobs[row.array].refused_part = count.passes, part
            if answer == RESERVED:
                if row.reservation >= 0:
                    subtract(available, world.reservation_nodes[instance_at(world, row.reservation, now)])
                continue
            refused = answer == BUSY or (rules.assoc_limit_stop == 1)
            if row.required >= 0 and answer == BUSY:
                subtract(available, world.allowed_nodes[row.required])
                refused = False
        if not refused:
            continue
        if row.reservation >= 0:
            world.reservations[row.reservation].closed = count.passes
        elif now - row.begin >= rules.bf_min_age_reserve and (
            rules.bf_min_prio_reserve == 0 or world.part_priority[slot] >= rules.bf_min_prio_reserve
        ):
            limits.closed = count.passes
            subtract(available, world.partition_nodes[part])
    count.in_pass = 0
    return started
