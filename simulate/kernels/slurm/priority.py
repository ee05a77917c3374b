"""Priorities of waiting jobs: priority/multifactor with its factors and flags (section "priority").

Rule: a waiting job's priority changes only when the decay thread runs, and at its submission or release, with
the fair-share factors of the last run. A held job has priority 0, any other at least 1. `part_priority` is aligned with
`job_parts`. Sums are truncated, not rounded, as slurmctld does.
Source: slurm.conf(5), PriorityType, PriorityFlags, PriorityWeight*.
"""

from __future__ import annotations

import math

from ..block import Block, int64
from ..jit import inner
from .fair_shares import book_usage, clear_usage, decay_usage, fair_share_factor, forget_classic_factors, rank_fairly
from .tables import (
    ACCRUE_ALWAYS,
    CPU,
    FAIR_TREE,
    FAVOR_SMALL,
    GONE,
    GPU,
    HELD,
    INCR_ONLY,
    MAX_TRES,
    MAX_TRES_GRES,
    MEM,
    NO_NORMAL_TRES,
    NODE_COUNT,
    PENDING,
    RUNNING,
    SMALL_RELATIVE_TO_TIME,
    TRES_COUNT,
)

#: The first priority under priority/basic; each later job has one less.
BASIC_TOP = 4_294_901_760.0


# --- what the decay thread does ---
@inner
def start_priorities(world: Block, now: int) -> None:
    """Calculate fair shares and priorities from the usage that the site begins with."""
    world.count.last_period = now
    _share_and_set(world, now, now)


@inner
def calculate_priorities(world: Block, now: int) -> None:
    """Let usage decay, book what running jobs used since the last run, and calculate fair shares and priorities."""
    count = world.count
    since = count.last_period
    decay_usage(world, now - since)
    while count.next_reset < len(world.usage_resets) and world.usage_resets[count.next_reset] <= now:
        clear_usage(world)
        count.next_reset += 1
    count.last_period = now
    _share_and_set(world, since, now)


@inner
def _share_and_set(world: Block, since: int, now: int) -> None:
    """Book usage since a time, calculate fair shares, and set the priorities of all waiting jobs.

    Fair Tree ranks users once all usage is booked. The classic rule shares accounts before; then jobs are booked or
    prioritised in turn, so that a user's share counts the usage of the jobs before its first waiting job.
    """
    count, job_list, kept_count = world.count, world.job_list, 0
    fair_tree = world.rules.priority_flags & FAIR_TREE
    if not fair_tree:
        forget_classic_factors(world)
    for place in range(count.listed):
        job = job_list[place]
        if world.jobs[job].state == GONE:
            world.jobs[job].listed = 0
            continue
        job_list[kept_count] = job
        kept_count += 1
        if world.jobs[job].state == RUNNING:
            book_usage(world, job, since, now)
        elif not fair_tree:
            _recalculate(world, job, now)
    count.listed = kept_count
    if fair_tree:
        rank_fairly(world)
        for place in range(kept_count):
            _recalculate(world, job_list[place], now)


@inner
def book_end(world: Block, job: int, now: int) -> None:
    """Book what a job used since the last run at its end; without enforced limits, Slurm loses that part."""
    if world.rules.enforces_limits:
        book_usage(world, job, world.count.last_period, now)


# --- the priority of a job ---
@inner
def list_job(world: Block, job: int) -> None:
    """Put a job into the list of the decay thread; a requeued job keeps its priority until the next run."""
    row, count = world.jobs[job], world.count
    if row.listed == 0:
        row.listed = 1
        world.job_list[count.listed] = job
        count.listed += 1


@inner
def _recalculate(world: Block, job: int, now: int) -> None:
    """Calculate the priority of a waiting job again; under priority/basic it stays as it is."""
    if world.rules.multifactor and world.jobs[job].state == PENDING:
        set_priority(world, job, now)


@inner
def set_priority(world: Block, job: int, now: int) -> None:
    """Calculate a job's priority in each of its partitions, with the fair-share factors of the last run."""
    row, rules, count = world.jobs[job], world.rules, world.count
    list_job(world, job)
    shared = 0.0
    if rules.multifactor:
        shared = _age_points(world, job, now) + _share_points(world, job) + _size_points(world, job)
    elif row.state != HELD:
        shared = BASIC_TOP - count.basic
        count.basic += 1
    shared -= row.nice
    for place in range(row.part0, row.part0 + row.parts):
        value = 0.0
        if row.state != HELD:
            value = shared
            if rules.multifactor:
                value += _partition_points(world, job, world.job_parts[place])
            value = max(math.floor(value), 1.0)
            if rules.priority_flags & INCR_ONLY:
                value = max(value, world.part_priority[place])
        world.part_priority[place] = value


@inner
def _age_points(world: Block, job: int, now: int) -> float:
    """Return the points for waiting since the job became eligible (ACCRUE_ALWAYS: since its submission)."""
    rules, row = world.rules, world.jobs[job]
    begin = row.submit if rules.priority_flags & ACCRUE_ALWAYS else row.accrue
    if begin <= 0 or now <= begin:
        return 0.0
    age = now - begin
    return rules.weight_age * (age / rules.max_age if age < rules.max_age else 1.0)


@inner
def _share_points(world: Block, job: int) -> float:
    """Return the points of a job's association and of its QOS."""
    rules, row, points = world.rules, world.jobs[job], 0.0
    if row.assoc >= 0:
        points += rules.weight_assoc * world.associations[row.assoc].priority
        points += rules.weight_fair_share * fair_share_factor(world, row.assoc)
    if row.qos >= 0:
        points += rules.weight_qos * world.qos[row.qos].factor
    return points


@inner
def _size_points(world: Block, job: int) -> float:
    """Return the points for the size of a job: large, small, or CPUs by minute of its limit."""
    rules, row = world.rules, world.jobs[job]
    cpus = row.counted_cpus if row.counted_cpus > 0 else row.min_cpus
    flags, nodes_total, cpus_total = rules.priority_flags, rules.nodes_total, rules.cpus_total
    if flags & SMALL_RELATIVE_TO_TIME:
        limit = row.limit if row.limit > 0 else world.partitions[world.job_parts[row.part0]].max_time
        factor = max(row.min_nodes * cpus_total / nodes_total, cpus) / max(limit, 1) / cpus_total
    else:
        factor = (row.min_nodes / nodes_total + cpus / cpus_total) / 2.0
    if flags & FAVOR_SMALL:
        factor = 1.0 - factor
    return rules.weight_size * min(max(factor, 0.0), 1.0)


@inner
def _partition_points(world: Block, job: int, part: int) -> float:
    """Return the points that depend on the partition: its factor, and the job's part of its resources."""
    rules = world.rules
    points = rules.weight_part * world.partitions[part].factor
    if rules.weighs_tres:
        for tres in range(TRES_COUNT):
            weight = world.tres_weights[tres]
            total = 1.0 if rules.priority_flags & NO_NORMAL_TRES else world.partition_tres[part, tres]
            if weight != 0.0 and total > 0.0:
                points += weight * _requested(world, job, tres) / total
    return points


@inner
def _requested(world: Block, job: int, tres: int) -> float:
    """Return how much of a trackable resource a waiting job asks for; its billing is not weighed."""
    row = world.jobs[job]
    if tres == CPU:
        return float(row.min_cpus)
    if tres == MEM:
        return float(row.memory * (row.min_cpus if row.memory_per_cpu else row.min_nodes))
    if tres == NODE_COUNT:
        return float(row.min_nodes)
    return float(row.gpus * row.min_nodes) if tres == GPU else 0.0


# --- billing ---
@inner
def billing_of(world: Block, job: int) -> float:
    """Return the billing of a job by its pieces and the weights of its partition; exclusive jobs have whole nodes."""
    row, cpus, memory = world.jobs[job], 0, 0
    exclusive = row.exclusive or world.partitions[row.part].exclusive
    for place in range(row.piece0, row.piece0 + row.pieces):
        piece = world.pieces[place]
        cpus += world.nodes[piece.node].cpus if exclusive else piece.cpus
        memory += piece.memory
    return billing_of_amounts(world, row.part, cpus, memory, int64(row.pieces), row.gpus * row.pieces)


@inner
def billing_of_amounts(world: Block, part: int, cpus: int, memory: int, nodes: int, gpus: int) -> float:
    """Return the billing of resources in a partition; memory in MiB, GPUs on all nodes."""
    weights, largest, total = world.billing_weights, 0.0, 0.0
    if weights[part, CPU] < 0.0:  # the partition has no weights
        return float(cpus)
    for tres, amount in ((CPU, cpus), (MEM, memory), (NODE_COUNT, nodes), (GPU, gpus)):
        largest = max(largest, weights[part, tres] * amount)
        total += weights[part, tres] * amount
    if world.rules.priority_flags & MAX_TRES_GRES:
        devices = weights[part, GPU] * gpus
        return max(weights[part, CPU] * cpus, weights[part, MEM] * memory, weights[part, NODE_COUNT] * nodes) + devices
    return largest if world.rules.priority_flags & MAX_TRES else total
