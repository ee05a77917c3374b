"""The test whether a job can start now, and its start: Slurm's `select_nodes`.

Rule: the answer is LIMITED where a limit stops the job, even if its resources are busy, too: a limited job closes no
partition and gets no reservation.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import has, intersect, meet, next_node, number_of, shared_number, unite
from .early_ends import preempt
from .job_limits import is_blocked_before_nodes, is_blocked_on_all_nodes, is_blocked_with_nodes
from .job_states import start
from .node_choice import choose_nodes
from .node_cpus import usable_cpus
from .node_use import begin_later, give_up
from .reserved_nodes import nodes_outside_reservations
from .running_order import running_jobs
from .tables import (
    BUSY,
    BY_MAIN,
    CANDIDATES,
    CLEAN,
    EMPTY,
    IDLE_LATER,
    LATER,
    LIMITED,
    NOT_AT_ALL,
    NOW,
    RESERVED,
    STARTED,
    UNAVAILABLE,
)
from .victims import NO_CHOICE, choose_victims


@inner
def find_candidates(world: Block, job: int, part: int, available: Array) -> None:
    """Put the nodes that a job may use in a partition into the row CANDIDATES.

    Only the nodes that a job names, if it may have no more of them.
    """
    words, allowed, required = world.scratch[CANDIDATES], world.jobs[job].allowed, world.jobs[job].required
    most = world.jobs[job].max_nodes
    meet(words, available, world.partition_nodes[part])
    if allowed >= 0:
        intersect(words, world.allowed_nodes[allowed])
    if required >= 0 and 0 <= most <= number_of(world.allowed_nodes[required]):
        intersect(words, world.allowed_nodes[required])


@inner
def has_required(world: Block, job: int, words: Array) -> bool:
    """Return whether a set has all nodes that a job names."""
    required = world.jobs[job].required
    if required < 0:
        return True
    nodes = world.allowed_nodes[required]
    return shared_number(words, nodes) == number_of(nodes)


@inner
def try_start(world: Block, job: int, slot: int, available: Array, now: int, by: int) -> int:
    """Start a job if it can start now; return STARTED, or why it cannot.

    Args:
        world: the state.
        job: its row.
        slot: the row of its partition in `job_parts`.
        available: the nodes that may be used.
        now: the time.
        by: who starts it: BY_MAIN or BY_BACKFILL.
    """
    row, part = world.jobs[job], world.job_parts[slot]
    if is_blocked_before_nodes(world, job, part, now) or _is_limited_anyway(world, job, part, by):
        return int64(LIMITED)
    find_candidates(world, job, part, available)
    words = world.scratch[CANDIDATES]
    if row.allowed >= 0 and number_of(words) < max(row.min_nodes, int64(1)):
        return int64(UNAVAILABLE)  # its features' nodes are down, or another partition's job has closed them
    begin = nodes_outside_reservations(world, job, part, now, int64(row.limit), CANDIDATES)
    if begin < 0 or begin > now:
        return int64(RESERVED)
    intersect(words, world.node_sets[CLEAN])
    may_fit, victims = has_required(world, job, words), int64(NO_CHOICE)
    fits = may_fit and choose_nodes(world, job, slot, CANDIDATES, NOW)
    if may_fit and not fits and world.rules.preempts != NOT_AT_ALL:
        victims = choose_victims(world, job, slot, now)
    if fits or victims >= 0:
        memory, gpus = chosen_memory(world, job), row.gpus * world.count.chosen
        if is_blocked_with_nodes(world, job, part, now, world.count.chosen_cpus, world.count.chosen, memory, gpus):
            return int64(LIMITED)
        if victims > 0 and not preempt(world, job, victims, now):
            return int64(BUSY)
        start(world, job, part, now, by)
        return int64(STARTED)
    if not _waits_for_jobs(world, job, slot, available, now):
        return int64(UNAVAILABLE)
    # An exclusive job's last test counted the CPUs of whole nodes.
    cpus, nodes = int64(row.counted_cpus if row.counted_cpus > 0 else row.min_cpus), int64(row.min_nodes)
    memory = row.memory * (cpus if row.memory_per_cpu == 1 else nodes)
    world.count.chosen = 0
    if is_blocked_with_nodes(world, job, part, now, cpus, nodes, memory, row.gpus * nodes):
        return int64(LIMITED)
    return int64(BUSY)


@inner
def _is_limited_anyway(world: Block, job: int, part: int, by: int) -> bool:
    """Return True if a limit stops a job on all nodes, and a main pass does not ask what else would stop it."""
    if by != BY_MAIN or world.rules.assoc_limit_stop == 1 or world.jobs[job].reservation >= 0:
        return False
    return is_blocked_on_all_nodes(world, job, part)


@inner
def _waits_for_jobs(world: Block, job: int, slot: int, available: Array, now: int) -> bool:
    """Return whether a job that cannot start waits for jobs to end.

    Otherwise its nodes are down, or closed by another partition's job, or its partition can never run it. A node that
    jobs do not share, and one in use if this job takes whole nodes, counts as one that it waits for.
    """
    row, part, words = world.jobs[job], world.job_parts[slot], world.scratch[CANDIDATES]
    find_candidates(world, job, part, world.partition_nodes[part])
    nodes = number_of(words)
    find_candidates(world, job, part, available)
    nodes_outside_reservations(world, job, part, now, int64(row.limit), CANDIDATES)
    has_all = number_of(words) == nodes
    if has_all and row.possible == slot + 1:
        return True
    if _could_run(world, job, slot):
        row.possible = slot + 1 if has_all else row.possible
        return True
    is_whole = row.exclusive == 1 or world.partitions[part].exclusive == 1
    is_in_use, running = False, running_jobs(world)
    for i in range(world.count.running):
        other = world.jobs[running[i]]
        if is_whole or other.exclusive == 1 or world.partitions[other.part].exclusive == 1:
            is_in_use = is_in_use or give_up(world, running[i], words)
    find_candidates(world, job, part, world.partition_nodes[part])
    return is_in_use and _could_run(world, job, slot)


@inner
def _could_run(world: Block, job: int, slot: int) -> bool:
    """Return whether a job could run on the candidates if no other did."""
    words, running = world.scratch[CANDIDATES], running_jobs(world)
    if _fits_on_an_empty_node(world, job, slot, words):
        return True
    begin_later(world)
    if world.jobs[job].exclusive == 1 or world.partitions[world.job_parts[slot]].exclusive == 1:
        unite(world.node_sets[IDLE_LATER], words)
    else:
        for i in range(world.count.running):
            give_up(world, running[i], words)
    return has_required(world, job, words) and choose_nodes(world, job, slot, CANDIDATES, LATER)


@inner
def _fits_on_an_empty_node(world: Block, job: int, slot: int, words: Array) -> bool:
    """Return True if a node of a set, without jobs, certainly suffices for a job of one node on shared nodes."""
    row, part, rules = world.jobs[job], world.job_parts[slot], world.rules
    is_whole = row.exclusive == 1 or world.partitions[part].exclusive == 1
    if is_whole or rules.preempts != NOT_AT_ALL or row.required >= 0 or row.contiguous == 1:
        return False
    if max(world.part_least_nodes[slot], row.min_nodes, row.want_nodes) > 1:
        return False
    if rules.bf_busy_nodes == 1 or rules.least_loaded == 1 or world.partitions[world.job_parts[row.part0]].least_loaded:
        return False
    node = next_node(words, 0)
    while node >= 0:
        usable = usable_cpus(world, job, part, node, EMPTY)
        if usable > 0 and usable >= row.min_cpus:
            return True
        node = next_node(words, node + 1)
    return False


@inner
def count_whole_nodes(world: Block, job: int, part: int) -> None:
    """Note the CPUs of a job that wants whole nodes, as the test of a pass would: of as many nodes as it wants."""
    row = world.jobs[job]
    if row.exclusive == 0 and world.partitions[part].exclusive == 0:
        return
    node = next_node(world.partition_nodes[part], 0)
    while row.allowed >= 0 and node >= 0 and not has(world.allowed_nodes[row.allowed], node):
        node = next_node(world.partition_nodes[part], node + 1)
    row.counted_cpus = max(row.want_nodes, row.min_nodes) * world.nodes[max(node, int64(0))].cpus


@inner
def chosen_memory(world: Block, job: int) -> int:
    """Return the memory that a job takes on the chosen nodes, MiB."""
    row, memory = world.jobs[job], int64(0)
    for i in range(world.count.chosen):
        node = world.chosen[i]
        if row.memory == 0 and row.memory_per_cpu == 0:
            memory += world.nodes[node].memory
        else:
            memory += row.memory * (world.taken_cpus[node] if row.memory_per_cpu == 1 else 1)
    return memory
