"""The free part of the nodes, really and in a question about later.

Rule: the sets of free and idle nodes always agree with the views. The later view of a node is copied from the real one
when the question first changes it, so a question costs what it touches.
"""

from __future__ import annotations

from ...arrays import Array, Row
from ..block import Block, int64
from ..jit import inner
from .bits import add, copy, drop, has
from .tables import FREE, FREE_LATER, IDLE, IDLE_LATER, LATER, NOW


@inner
def take_on_node(world: Block, node: int, part: int, cores: int, memory: int, gpus: int) -> None:
    """Give a job of a partition a part of a node."""
    free = world.views[NOW, node]
    free.cores -= cores
    free.memory -= memory
    free.gpus -= gpus
    free.jobs += 1
    if free.jobs == 2:
        world.count.shared_nodes += 1
    drop(world.node_sets[IDLE], node)
    if free.cores <= 0:
        drop(world.node_sets[FREE], node)
    if world.partitions[part].cpu_row >= 0:
        world.part_cores[world.partitions[part].cpu_row, node] += cores


@inner
def give_on_node(world: Block, node: int, part: int, cores: int, memory: int, gpus: int) -> None:
    """Take a job's part of a node back."""
    free = world.views[NOW, node]
    free.cores += cores
    free.memory += memory
    free.gpus += gpus
    free.jobs -= 1
    if free.jobs == 1:
        world.count.shared_nodes -= 1
    if free.cores > 0:
        add(world.node_sets[FREE], node)
    if free.jobs == 0:
        add(world.node_sets[IDLE], node)
        world.sleeps[node].idle_since = int64(world.clock.now)
    if world.partitions[part].cpu_row >= 0:
        world.part_cores[world.partitions[part].cpu_row, node] -= cores


@inner
def begin_later(world: Block) -> None:
    """Begin a question about later: the later view is the real one."""
    world.count.question += 1
    copy(world.node_sets[FREE_LATER], world.node_sets[FREE])
    copy(world.node_sets[IDLE_LATER], world.node_sets[IDLE])


@inner
def give_later(world: Block, node: int, part: int, cores: int, memory: int, gpus: int) -> None:
    """Take a job's part of a node back in the later view."""
    place, later, rows = world.nodes[node], world.views[LATER, node], len(world.part_cores) // 2
    if place.touched != world.count.question:
        place.touched = world.count.question
        free = world.views[NOW, node]
        later.cores, later.memory, later.gpus, later.jobs = free.cores, free.memory, free.gpus, free.jobs
        for other in range(rows):
            world.part_cores[rows + other, node] = world.part_cores[other, node]
    later.cores += cores
    later.memory += memory
    later.gpus += gpus
    later.jobs -= 1
    if world.partitions[part].cpu_row >= 0:
        world.part_cores[rows + world.partitions[part].cpu_row, node] -= cores
    if later.cores > 0:
        add(world.node_sets[FREE_LATER], node)
    if later.jobs == 0:
        add(world.node_sets[IDLE_LATER], node)


@inner
def take_later(world: Block, node: int, part: int, cores: int, memory: int, gpus: int) -> None:
    """Undo `give_later`."""
    later = world.views[LATER, node]
    later.cores -= cores
    later.memory -= memory
    later.gpus -= gpus
    later.jobs += 1
    if world.partitions[part].cpu_row >= 0:
        world.part_cores[len(world.part_cores) // 2 + world.partitions[part].cpu_row, node] += cores
    if later.cores <= 0:
        drop(world.node_sets[FREE_LATER], node)
    drop(world.node_sets[IDLE_LATER], node)


@inner
def give_up(world: Block, job: int, words: Array) -> bool:
    """Free what a running job has in the later view, if it has a node of a set; return whether it has."""
    row = world.jobs[job]
    uses = False
    for k in range(row.piece0, row.piece0 + row.pieces):
        if has(words, world.pieces[k].node):
            uses = True
            break
    if uses:
        for k in range(row.piece0, row.piece0 + row.pieces):
            piece = world.pieces[k]
            give_later(world, piece.node, row.part, piece.cores, piece.memory, row.gpus)
    return uses


@inner
def suspend_later(world: Block, job: int, words: Array) -> None:
    """Free the cores that a job has on nodes of a set in the later view; its memory and GPUs stay with it."""
    row = world.jobs[job]
    for k in range(row.piece0, row.piece0 + row.pieces):
        piece = world.pieces[k]
        if has(words, piece.node):
            give_later(world, piece.node, row.part, piece.cores, 0, 0)


@inner
def free_on(world: Block, node: int, view: int) -> Row:
    """Return what is free on a node in a view."""
    if view == LATER and world.nodes[node].touched == world.count.question:
        return world.views[LATER, node]
    return world.views[NOW, node]


@inner
def cores_of_partition(world: Block, part: int, node: int, view: int) -> int:
    """Return how many cores of a node the jobs of a partition with MaxCPUsPerNode have in a view."""
    row = world.partitions[part].cpu_row
    if view == LATER and world.nodes[node].touched == world.count.question:
        row += len(world.part_cores) // 2
    return int64(world.part_cores[row, node])
