"""Limits of partitions, QOS and associations, and licences (Slurm's acct_policy and license_mgr).

Rule: which limits bind a job in a partition, and which counters it moves, is decided once, in
`simulate.slurm.limit_tables`; here each limit is one comparison. A blocked job closes nothing and reserves nothing.
Amounts of trackable resources are whole numbers, so counters return to zero; minutes are rounded down, as Slurm does.
Complexity: a test costs O(limits of the job's group), O(nodes of the job) more for each limit on nodes.
"""

from __future__ import annotations

import math

from ...arrays import Array, Row
from ..block import Block, int64
from ..jit import inner
from .fair_shares import decay_of
from .priority import billing_of_amounts
from .running_order import running_jobs
from .tables import BILLING, CPU, GPU, JOBS, MEM, NODE_COUNT, SUBMITTED, TRES_COUNT, WALL

#: Kinds of limits, see `tables.LIMIT`. HELD: allocated now and the request; PROMISED: minutes that running jobs may
#: still take and those of the request; SPENT: decayed minutes used; SAFE: all three; MOST, LEAST, PER_NODE,
#: MOST_MINUTES and LONGEST: the request alone.
HELD, PROMISED, SPENT, SAFE, MOST, LEAST, PER_NODE, MOST_MINUTES, LONGEST = range(9)
#: Values of `part_allowed`: never; with its shortest time limit only; with its time limit.
NEVER, SHORTENED, ALLOWED = range(3)
_YEAR_MIN = 365 * 24 * 60


@inner
def slot_of(world: Block, job: int, part: int) -> int:
    """Return the row of `job_parts` of a job in a partition, its first row if it does not name the partition."""
    first = world.jobs[job].part0
    for slot in range(first, first + world.jobs[job].parts):
        if world.job_parts[slot] == part:
            return int64(slot)
    return int64(first)


@inner
def is_allowed_in_partition(world: Block, job: int, part: int) -> bool:
    """Return whether a job with its time limit keeps the limits of a partition that starts jobs (UP or DRAIN)."""
    return bool(world.partitions[part].up) and world.part_allowed[slot_of(world, job, part)] == ALLOWED


@inner
def is_allowed_when_shortened(world: Block, job: int, part: int) -> bool:
    """Return the same of the job with the shortest limit that it accepts (`--time-min`), as backfill asks."""
    return bool(world.partitions[part].up) and world.part_allowed[slot_of(world, job, part)] >= SHORTENED


@inner
def minutes_of(world: Block, job: int, part: int) -> int:
    """Return the time limit of a job: its own, else the partition's, else a year."""
    if world.jobs[job].limit >= 0:
        return int64(world.jobs[job].limit)
    return int64(world.partitions[part].max_time if world.partitions[part].max_time >= 0 else _YEAR_MIN)


@inner
def is_blocked_before_nodes(world: Block, job: int, part: int, now: int) -> bool:
    """Return whether limits block a job whatever nodes it gets: numbers of jobs, its time limit, minutes used up.

    No limit depends on `now` itself. Source: acct_policy_job_runnable_pre_select of Slurm 22.05.
    """
    group = _known_group(world, int64(world.part_group[slot_of(world, job, part)]))
    return bool(group.stopped == 1 or minutes_of(world, job, part) > group.most_minutes)


@inner
def _known_group(world: Block, number: int) -> Row:
    """Return a group of jobs, with what is known of it as counters are now; see `tables.LIMIT_GROUP`."""
    group, change = world.limit_groups[number], world.count.limit_changes + 1
    if group.change == change:
        return group
    group.change, group.stopped = change, 0
    group.most_minutes, group.most_cpus, group.most_gpus = math.inf, math.inf, math.inf
    for row in range(group.limits0, group.after0):
        limit = world.limits[row]
        is_over = False
        if limit.kind == HELD:
            is_over = world.held[limit.counter, limit.column] + 1 > limit.bound
        elif limit.kind == SPENT:
            is_over = world.spent[limit.counter, limit.column] >= 60.0 * limit.bound
        else:
            group.most_minutes = min(group.most_minutes, limit.bound)
        if is_over:
            group.stopped = 1
    for row in range(group.after0, group.limits1):
        limit = world.limits[row]
        if (limit.kind == HELD or limit.kind == MOST) and (limit.column == CPU or limit.column == GPU):
            held = world.held[limit.counter, limit.column] if limit.kind == HELD else int64(0)
            if limit.column == CPU:
                group.most_cpus = min(group.most_cpus, limit.bound - held)
            else:
                group.most_gpus = min(group.most_gpus, limit.bound - held)
    return group


@inner
def is_blocked_with_nodes(
    world: Block, job: int, part: int, now: int, cpus: int, nodes: int, memory: int, gpus: int
) -> bool:
    """Return whether limits block a job with the resources that were picked for it.

    Args:
        world: the state; `chosen` has the nodes that were picked, or none if only their number is known.
        job: the job.
        part: the partition in which it would run.
        now: the time; no limit depends on it.
        cpus: CPUs on all nodes.
        nodes: number of nodes.
        memory: MiB on all nodes.
        gpus: GPUs on all nodes.

    Source: acct_policy_job_runnable_post_select of Slurm 22.05.
    """
    group = world.part_group[slot_of(world, job, part)]
    if world.limit_groups[group].after0 == world.limit_groups[group].limits1:
        return False
    request = world.request
    request[CPU], request[NODE_COUNT], request[MEM], request[GPU] = cpus, nodes, memory, gpus
    request[BILLING] = int64(billing_of_amounts(world, part, cpus, memory, nodes, gpus))
    minutes = minutes_of(world, job, part) * world.limit_groups[group].time_factor
    for row in range(world.limit_groups[group].after0, world.limit_groups[group].limits1):
        if _is_over(world, row, minutes):
            return True
    return False


@inner
def is_blocked_on_all_nodes(world: Block, job: int, part: int) -> bool:
    """Return True if limits on CPUs or GPUs block a job whichever nodes are picked for it.

    It has at least its CPUs, or one for each task; if its nodes are busy, the CPUs of its last test count.
    """
    row = world.jobs[job]
    cpus, gpus = int64(row.min_cpus), row.gpus * max(row.min_nodes, int64(1))
    is_whole = row.exclusive == 1 or world.partitions[part].exclusive == 1
    if not is_whole and not has_certain_cpus(world, job, part):
        cpus = min(cpus, int64(row.tasks))
    if row.counted_cpus > 0:
        cpus = min(cpus, int64(row.counted_cpus))
    group = _known_group(world, int64(world.part_group[slot_of(world, job, part)]))
    return bool(cpus > group.most_cpus or gpus > group.most_gpus)


@inner
def has_certain_cpus(world: Block, job: int, part: int) -> bool:
    """Return True if a job has `min_cpus` CPUs whichever nodes are picked for it.

    So it has one task, or tasks of one CPU, on shared nodes whose cores have one CPU.
    """
    row = world.jobs[job]
    if row.exclusive == 1 or world.partitions[part].exclusive == 1 or world.rules.threads > 1:
        return False
    if row.want_nodes > row.tasks:
        return False
    return (row.tasks == 1 or row.cpus_per_task <= 1) and row.tasks * max(row.cpus_per_task, int64(1)) == row.min_cpus


@inner
def _is_over(world: Block, row: int, minutes: float) -> bool:
    """Return whether the job of `request`, which takes `minutes`, is over a limit."""
    limit = world.limits[row]
    column, counter, amount = limit.column, limit.counter, world.request[limit.column]
    if limit.kind == HELD:
        if column == NODE_COUNT:
            amount = _new_nodes(world, counter)
        return world.held[counter, column] + amount > limit.bound
    if limit.kind == MOST:
        return amount > limit.bound
    if limit.kind == LEAST:
        return amount < limit.bound
    if limit.kind == PER_NODE:  # Slurm compares the mean of the nodes
        return amount // max(1, world.request[NODE_COUNT]) > limit.bound
    total = amount * minutes
    if limit.kind != MOST_MINUTES:
        total += world.promised[counter, column] // 60
    if limit.kind == SAFE:
        total += world.spent[counter, column] // 60.0
    return total > limit.bound


@inner
def _new_nodes(world: Block, counter: int) -> int:
    """Return how many of the nodes that were picked a counter does not count yet; all if none were picked."""
    row, number = world.counters[counter].nodes, int64(0)
    if world.count.chosen == 0:
        return int64(world.request[NODE_COUNT])
    for k in range(world.count.chosen):
        if world.counted_nodes[row, world.chosen[k]] == 0:
            number += 1
    return number


# --- counters ---
@inner
def count_submission(world: Block, job: int) -> None:
    """Count a job as submitted; `count_departure` takes it back."""
    world.jobs[job].submitted = 1
    _count_submitted(world, job, int64(1))


@inner
def count_departure(world: Block, job: int) -> None:
    """Count that a job no longer runs or waits; one that was not counted is left out."""
    if world.jobs[job].submitted == 1:
        world.jobs[job].submitted = 0
        _count_submitted(world, job, int64(-1))


@inner
def _count_submitted(world: Block, job: int, change: int) -> None:
    group = world.part_group[world.jobs[job].part0]
    for row in range(world.limit_groups[group].counters0, world.limit_groups[group].counters1):
        world.held[world.group_counters[row], SUBMITTED] += change


@inner
def is_denied(world: Block, job: int) -> bool:
    """Return whether sbatch rejects a job that can never run, as a QOS with DenyOnLimit asks for."""
    return bool(world.part_denied[world.jobs[job].part0])


@inner
def is_one_too_many(world: Block, job: int) -> bool:
    """Return whether sbatch rejects a job because too many are submitted."""
    group = world.part_group[world.jobs[job].part0]
    for row in range(world.limit_groups[group].limits1, world.limit_groups[group].submit1):
        limit = world.limits[row]
        if world.held[limit.counter, SUBMITTED] + 1 > limit.bound:
            return True
    return False


@inner
def count_start(world: Block, job: int) -> None:
    """Count a job that starts; its pieces, partition and start are known."""
    _measure(world, job)
    _change(world, job, 1)
    world.promised_seconds[job] = minutes_of(world, job, world.jobs[job].part) * 60
    world.usage_until[job] = world.jobs[job].start
    _promise(world, job, world.promised_seconds[job])


@inner
def count_end(world: Block, job: int) -> None:
    """Count a job that ends, at the time of its End, before its pieces are given back.

    What it used since the last calculation is added to the usage at once.
    """
    now = int64(world.clock.now)
    _measure(world, job)
    _use(world, job, now)
    _change(world, job, -1)
    _promise(world, job, -world.promised_seconds[job])
    world.promised_seconds[job] = 0


@inner
def counts_minutes(world: Block) -> bool:
    """Return whether a limit reads the minutes that jobs used or may still take. O(limits)."""
    for row in range(len(world.limits)):
        kind = world.limits[row].kind
        if kind == PROMISED or kind == SPENT or kind == SAFE:
            return True
    return False


@inner
def age_run_minutes(world: Block, now: int) -> None:
    """Move usage and the minutes that running jobs may still take, once a PriorityCalcPeriod.

    Usage decays since the last call, and becomes 0 at a reset; then running jobs add theirs.
    """
    since, world.count.usage_aged = world.count.usage_aged, now
    world.count.limit_changes += 1
    decay = decay_of(world, now - since)
    for reset in range(len(world.usage_resets)):
        if since < world.usage_resets[reset] <= now:
            decay = 0.0
    for counter in range(len(world.counters)):
        if world.counters[counter].decays or decay == 0.0:
            for column in range(TRES_COUNT + 1):
                world.spent[counter, column] *= decay
    running = running_jobs(world)
    for k in range(world.count.running):
        job = running[k]
        _measure(world, job)
        _use(world, job, now)
        seconds = max(int64(0), min(world.promised_seconds[job], int64(world.jobs[job].until) - now))
        _promise(world, job, -world.promised_seconds[job])
        _promise(world, job, seconds)
        world.promised_seconds[job] = seconds


@inner
def _measure(world: Block, job: int) -> None:
    """Write what a job has on all its nodes to `request`."""
    request, pieces = world.request, world.jobs[job].pieces
    cpus, memory = int64(0), int64(0)
    for row in range(world.jobs[job].piece0, world.jobs[job].piece0 + pieces):
        cpus += world.pieces[row].cpus
        memory += world.pieces[row].memory
    request[CPU], request[MEM], request[NODE_COUNT], request[GPU] = cpus, memory, pieces, world.jobs[job].gpus * pieces
    request[BILLING] = int64(world.jobs[job].billing)


@inner
def _group(world: Block, job: int) -> int:
    return int64(world.part_group[slot_of(world, job, world.jobs[job].part)])


@inner
def _change(world: Block, job: int, sign: int) -> None:
    """Add a job to what its counters hold, or take it away."""
    group = _group(world, job)
    world.count.limit_changes += 1
    for row in range(world.limit_groups[group].counters0, world.limit_groups[group].counters1):
        counter = world.group_counters[row]
        held = world.held[counter]
        held[JOBS] += sign
        for column in (CPU, MEM, GPU, BILLING):
            held[column] += sign * world.request[column]
        if world.counters[counter].nodes >= 0:
            held[NODE_COUNT] += _count_nodes(world, job, world.counted_nodes[world.counters[counter].nodes], sign)


@inner
def _count_nodes(world: Block, job: int, counted: Array, sign: int) -> int:
    """Add a job to the number of jobs on each of its nodes; return the change of the number of nodes with jobs."""
    change = int64(0)
    for row in range(world.jobs[job].piece0, world.jobs[job].piece0 + world.jobs[job].pieces):
        node = world.pieces[row].node
        counted[node] += sign
        if (sign > 0 and counted[node] == 1) or (sign < 0 and counted[node] == 0):
            change += sign
    return change


@inner
def _promise(world: Block, job: int, seconds: int) -> None:
    """Add seconds of a job, whose amounts are in `request`, to what running jobs may still take."""
    group = _group(world, job)
    factor = world.limit_groups[group].time_factor
    counted_seconds = int64(abs(seconds) * factor)
    if seconds < 0:
        counted_seconds = -counted_seconds
    for row in range(world.limit_groups[group].counters0, world.limit_groups[group].counters1):
        promised = world.promised[world.group_counters[row]]
        for column in range(TRES_COUNT):
            promised[column] += counted_seconds * world.request[column]


@inner
def _use(world: Block, job: int, now: int) -> None:
    """Add to usage what a job, whose amounts are in `request`, used since the last time."""
    group, seconds = _group(world, job), now - world.usage_until[job]
    world.usage_until[job] = now
    if seconds <= 0:
        return
    world.count.limit_changes += 1
    for row in range(world.limit_groups[group].counters0, world.limit_groups[group].counters1):
        counter = world.group_counters[row]
        decay = decay_of(world, seconds) if world.counters[counter].decays else 1.0
        used = seconds * decay * world.limit_groups[group].usage_factor
        for column in range(TRES_COUNT):
            world.spent[counter, column] += used * world.request[column]
        world.spent[counter, WALL] += used


@inner
def is_out_of_minutes(world: Block, job: int) -> bool:
    """Return whether a running job must end because the minutes of a group are used up; never with `safe`.

    Source: acct_policy_job_time_out of Slurm 22.05.
    """
    if world.rules.safe == 1:
        return False
    group = _group(world, job)
    for row in range(world.limit_groups[group].limits0, world.limit_groups[group].after0):
        limit = world.limits[row]
        if limit.kind == SPENT and world.spent[limit.counter, limit.column] >= 60.0 * limit.bound:
            return True
    return False


# --- licences ---
@inner
def has_licences(world: Block, job: int) -> bool:
    """Return whether all licences of a job are free."""
    for row in range(world.jobs[job].licence0, world.jobs[job].licence0 + world.jobs[job].licences):
        if world.free_licences[world.job_licences[row].licence] < world.job_licences[row].number:
            return False
    return True


@inner
def take_licences(world: Block, job: int) -> None:
    """Take the licences of a job that starts."""
    _move_licences(world, job, -1)


@inner
def give_licences(world: Block, job: int) -> None:
    """Give the licences of a job back, at its End."""
    _move_licences(world, job, 1)


@inner
def _move_licences(world: Block, job: int, sign: int) -> None:
    for row in range(world.jobs[job].licence0, world.jobs[job].licence0 + world.jobs[job].licences):
        world.free_licences[world.job_licences[row].licence] += sign * world.job_licences[row].number
