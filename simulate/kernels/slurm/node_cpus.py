"""The CPUs that a job could have on a node, and those that it takes there."""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .node_use import cores_of_partition, free_on
from .tables import EMPTY


@inner
def usable_cpus(world: Block, job: int, part: int, node: int, view: int) -> int:
    """Return how many CPUs a job could have on a node, 0 if it cannot use the node.

    A job that wants whole nodes asks of idle ones only. The CPUs are whole tasks only where memory per CPU or tasks per
    node bound them; else CPUs that no task could use count.
    """
    row, place, limits = world.jobs[job], world.nodes[node], world.partitions[part]
    is_whole = row.exclusive == 1 or limits.exclusive == 1
    cores, memory, gpus = place.cores, place.memory, place.gpus
    if not is_whole and view != EMPTY:
        free = free_on(world, node, view)
        cores, memory, gpus = free.cores, free.memory, free.gpus
    cpus = cores * place.threads
    if limits.max_cpus_per_node >= 0:  # of all its jobs together
        used = int64(0) if is_whole or view == EMPTY else cores_of_partition(world, part, node, view) * place.threads
        cpus = max(min(cpus, limits.max_cpus_per_node - used), int64(0))
    if row.gpus > gpus:
        return int64(0)
    if world.rules.counts_memory == 1:
        if row.memory == 0 and row.memory_per_cpu == 0:
            if memory < place.memory:
                return int64(0)
        elif row.memory_per_cpu == 1:
            if is_whole and row.memory * cpus > memory:
                return int64(0)
            while cpus > 0 and row.memory * cpus > memory:
                cpus -= place.threads
            cpus -= cpus % max(row.cpus_per_task, int64(1))
        elif row.memory > memory:
            return int64(0)
    needed = cpus_needed(world, job)
    if cpus < needed:
        return int64(0)
    if row.tasks_per_node > 0 and not is_whole:
        cpus = needed
    return max(cpus, int64(0))


@inner
def cpus_needed_alone(world: Block, job: int, part: int) -> int:
    """Return `cpus_needed` if nothing else decides whether a job can use a node that it may share, else 0."""
    row, limits = world.jobs[job], world.partitions[part]
    if row.exclusive == 1 or limits.exclusive == 1 or limits.max_cpus_per_node >= 0 or row.tasks_per_node > 0:
        return int64(0)
    return cpus_needed(world, job) if row.gpus == 0 and world.rules.counts_memory == 0 else int64(0)


@inner
def cpus_needed(world: Block, job: int) -> int:
    """Return how many CPUs a node must have for a job: those of its tasks on each node, or of one task."""
    row = world.jobs[job]
    if row.tasks_per_node > 0:
        return int64(row.tasks_per_node * row.cpus_per_task)
    return int64(row.cpus_per_task * (row.tasks if row.max_nodes == 1 else 1))


@inner
def cpus_on(world: Block, job: int, node: int, usable: int, cpus: int, nodes: int) -> int:
    """Return how many CPUs of those usable on a node a job takes while it still wants CPUs and nodes."""
    row, threads = world.jobs[job], world.nodes[node].threads
    cpus_here = min(usable, cpus - max(nodes - 1, int64(0)) * threads)
    return max(cpus_here, min(row.cpus_per_task * max(row.tasks_per_node, int64(1)), usable))


@inner
def choose_node(world: Block, job: int, node: int, cpus: int, nodes: int) -> int:
    """Add a node to the choice while a job still wants CPUs and nodes; return the CPUs that it has on it."""
    cpus_here = cpus_on(world, job, node, world.usable_cpus[node], cpus, nodes)
    world.taken_cpus[node] = cpus_here
    world.chosen[world.count.chosen] = node
    world.count.chosen += 1
    return cpus_here
