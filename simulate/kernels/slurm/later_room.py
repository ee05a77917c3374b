"""Room on shared nodes as running jobs end one after another, kept from search to search of a pass.

Rule: what is free after so many ends depends on that number alone. So the later view goes on, or back, from where the
last search left it; and for each size of a task, the nodes are listed in the order in which they get room for it.
Complexity: O(jobs between two searches); O(running) once for each size between two starts; O(nodes) a question.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import has
from .node_cpus import cpus_needed
from .node_use import begin_later, give_later, take_later
from .running_order import running_jobs
from .tables import NOW

#: Ends that are looked at together.
_TOGETHER = int64(64)


@inner
def let_end(world: Block, jobs: int) -> None:
    """Bring the later view to the time when the first noted jobs have ended, so many of them."""
    count, running = world.count, running_jobs(world)
    if count.later_notes != count.notes or count.later_question != count.question:
        begin_later(world)
        count.later_notes, count.later_question, count.later_ended = count.notes, count.question, 0
    while count.later_ended < jobs:
        noted, row = world.latest_ends[count.later_ended], world.jobs[running[count.later_ended]]
        for k in range(noted.piece0, noted.piece0 + noted.pieces):
            piece = world.pieces[k]
            give_later(world, piece.node, row.part, piece.cores, piece.memory, row.gpus)
        count.later_ended += 1
    while count.later_ended > jobs:
        count.later_ended -= 1
        noted, row = world.latest_ends[count.later_ended], world.jobs[running[count.later_ended]]
        for k in range(noted.piece0, noted.piece0 + noted.pieces):
            piece = world.pieces[k]
            take_later(world, piece.node, row.part, piece.cores, piece.memory, row.gpus)


@inner
def ends_until_room(world: Block, job: int, words: Array, least: int) -> int:
    """Return how many noted jobs end before so many nodes of a set may have room for a job, at least.

    One more than there are if they never have.
    """
    place, nodes, entry = int64(0), int64(0), _roomy_row(world, max(cpus_needed(world, job), int64(1)))
    row = world.roomy[entry]
    while True:
        while place < row.number:
            if has(words, world.roomy_nodes[entry, place]):
                nodes += 1
                if nodes >= least:
                    return int64(world.roomy_ends[entry, place])
            place += 1
        if row.ended >= world.count.noted:
            return int64(world.count.noted + 1)
        _look_on(world, entry)


@inner
def _roomy_row(world: Block, cpus: int) -> int:
    """Return the row of the nodes with room for so many CPUs; a new one has the nodes that have it now."""
    count = world.count
    for entry in range(len(world.roomy)):
        if world.roomy[entry].notes == count.notes and world.roomy[entry].cpus == cpus:
            return int64(entry)
    entry = count.oldest_roomy
    count.oldest_roomy = (entry + 1) % len(world.roomy)
    row = world.roomy[entry]
    row.notes, row.cpus, row.ended, row.number = count.notes, cpus, 0, 0
    for node in range(len(world.nodes)):
        free = world.views[NOW, node].cores * world.nodes[node].threads
        world.roomy_cpus[entry, node] = free
        if free >= cpus:
            _list(world, entry, int64(node))
    return int64(entry)


@inner
def _list(world: Block, entry: int, node: int) -> None:
    row = world.roomy[entry]
    world.roomy_nodes[entry, row.number], world.roomy_ends[entry, row.number] = node, row.ended
    row.number += 1


@inner
def _look_on(world: Block, entry: int) -> None:
    """Look at the next noted ends."""
    row = world.roomy[entry]
    for place in range(row.ended, min(row.ended + _TOGETHER, world.count.noted)):
        row.ended = place + 1
        noted = world.latest_ends[place]
        for k in range(noted.piece0, noted.piece0 + noted.pieces):
            node = world.pieces[k].node
            before = world.roomy_cpus[entry, node]
            world.roomy_cpus[entry, node] = before + world.pieces[k].cores * world.nodes[node].threads
            if before < row.cpus <= world.roomy_cpus[entry, node]:
                _list(world, entry, int64(node))
