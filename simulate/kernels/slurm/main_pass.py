"""The main pass: the queue in order; a job that is refused closes its partition for all behind it (`_schedule`).

Complexity: O(records), and one choice of nodes for each job that starts and each partition that closes.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .bits import copy, is_empty, number_of, shared_number, subtract
from .job_limits import has_licences, is_allowed_in_partition, is_blocked_before_nodes
from .job_states import is_eligible
from .pass_records import begin_pass, count_test, end_pass, is_preempting, is_task_refused, least_priority, refuse_tasks
from .reserved_nodes import instance_at, magnet_of
from .sleeping_nodes import save_power
from .start_test import try_start
from .tables import AVAILABLE, BUSY, BY_MAIN, LIMITED, NOT_AT_ALL, RESERVED, STARTED, TAKING


@inner
def main_pass(world: Block, now: int, is_full: bool) -> int:
    """Carry out one main pass; return the number of jobs that it started.

    Args:
        world: the state.
        now: the time.
        is_full: whether all records are looked at, and not `default_queue_depth` of them.
    """
    count, rules = world.count, world.rules
    begin_pass(world, now)
    copy(world.scratch[AVAILABLE], world.node_sets[TAKING])
    save_power(world, now)
    started, depth = _start_in_magnets(world, now), int64(0)
    for k in range(count.records):
        job, slot = world.records[k].job, world.records[k].slot
        row, part = world.jobs[job], world.job_parts[slot]
        if not is_eligible(world, job, now) or is_task_refused(world, job, part) or is_preempting(world, job):
            continue
        if rules.sched_max_job_start > 0 and started >= rules.sched_max_job_start:
            break
        if not is_allowed_in_partition(world, job, part):  # it is not in the queue
            continue
        if row.reservation >= 0 and _lacks_reserved_nodes(world, job, part, now):
            continue
        tested = count_test(world, part)
        if rules.partition_job_depth > 0 and tested > rules.partition_job_depth:
            continue
        depth += 1
        if (not is_full and depth > rules.default_queue_depth + 1) or 0 < rules.most_records < depth:
            break
        if _is_closed(world, job, part):
            continue
        answer = _test(world, job, slot, part, now)
        if answer == STARTED:
            started += 1
        elif answer == BUSY:
            _close(world, job, part)
            if is_empty(world.scratch[AVAILABLE]) and row.reservation < 0 and rules.preempts == NOT_AT_ALL:
                break  # jobs in reservations stand before all others
    end_pass(world, now)
    return started


@inner
def _lacks_reserved_nodes(world: Block, job: int, part: int, now: int) -> bool:
    """Return whether a partition has too few nodes inside a job's reservation, even if FLEX lets it have others."""
    row = world.jobs[job]
    instance = instance_at(world, row.reservation, now)
    nodes = shared_number(world.reservation_nodes[instance], world.partition_nodes[part])
    return bool(nodes < max(row.min_nodes, int64(1)))


@inner
def _start_in_magnets(world: Block, now: int) -> int:
    """Start jobs in the magnetic reservations that they may use, before all others; return how many started."""
    started = int64(0)
    for k in range(world.count.records if len(world.magnets) > 0 else int64(0)):
        job, slot = world.records[k].job, world.records[k].slot
        row, part = world.jobs[job], world.job_parts[slot]
        for place in range(row.magnets):
            instance = magnet_of(world, job, place, now)
            if instance < 0 or not is_eligible(world, job, now) or not is_allowed_in_partition(world, job, part):
                continue
            row.reservation = instance
            if has_licences(world, job) and (
                try_start(world, job, slot, world.scratch[AVAILABLE], now, int64(BY_MAIN)) == STARTED
            ):
                started += 1
                break
            row.reservation = -1
    return started


@inner
def _is_closed(world: Block, job: int, part: int) -> bool:
    """Return whether a job of the same partition, or of the same reservation, was refused in this pass."""
    reservation, row, passes = world.jobs[job].reservation, world.partitions[part], world.count.passes
    if reservation >= 0:
        return bool(world.reservations[reservation].closed == passes)
    if row.closed == passes and row.emptied != passes:
        _empty(world, part)
    return bool(row.closed == passes)


@inner
def _empty(world: Block, part: int) -> None:
    """Take the nodes of a closed partition from all jobs behind."""
    world.partitions[part].emptied = world.count.passes
    subtract(world.scratch[AVAILABLE], world.partition_nodes[part])


@inner
def _test(world: Block, job: int, slot: int, part: int, now: int) -> int:
    """Start a job if it can start; return STARTED, BUSY if that closes its partition, or another answer.

    A job that a limit stopped before is looked at no further while one that needs no nodes does.
    """
    row, available = world.jobs[job], world.scratch[AVAILABLE]
    if row.limited == 1 and is_blocked_before_nodes(world, job, part, now):
        return int64(LIMITED)
    if shared_number(available, world.partition_nodes[part]) < max(row.min_nodes, int64(1)):
        return int64(BUSY)
    if not has_licences(world, job):
        return int64(LIMITED)
    answer = try_start(world, job, slot, available, now, int64(BY_MAIN))
    row.limited = int64(answer == LIMITED)
    if answer == STARTED:
        return answer
    if row.array >= 0:
        refuse_tasks(world, row.array, part)
    if answer == RESERVED and row.reservation >= 0:
        subtract(available, world.reservation_nodes[instance_at(world, row.reservation, now)])
    if answer == LIMITED and world.rules.assoc_limit_stop == 1:
        answer = int64(BUSY)
    if answer == BUSY and row.required >= 0 and number_of(world.allowed_nodes[row.required]) >= row.min_nodes:
        subtract(available, world.allowed_nodes[row.required])
        return int64(RESERVED)
    if answer == BUSY and row.reservation < 0 and not _may_close(world, job, slot, now):
        return int64(LIMITED)
    return answer


@inner
def _may_close(world: Block, job: int, slot: int, now: int) -> bool:
    """Return whether a job is old enough, and its priority high enough, to close its partition."""
    rules = world.rules
    if now - world.jobs[job].begin < rules.bf_min_age_reserve:
        return False
    return bool(world.part_priority[slot] >= least_priority(world, job))


@inner
def _close(world: Block, job: int, part: int) -> None:
    """Close the partition of a job that is refused, and take its nodes from all behind it: now or by its next job."""
    reservation, passes = world.jobs[job].reservation, world.count.passes
    if reservation >= 0:
        world.reservations[reservation].closed = passes
    else:
        world.partitions[part].closed = passes
        if world.rules.closes_late == 0:
            _empty(world, part)
