"""Nodes that running jobs have left by a time: bounds that spare a test of a job when it cannot start.

Rule: running jobs are in the order of their latest ends, in blocks. A bound may let through what a test then refuses,
but never refuses what a test would let through.
Complexity: O(pieces of running jobs) for each pass and start, O(words) for each question.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from ..queue.resources import popcount
from .bits import add, are_shared, copy, empty, has, unite
from .tables import FREE, IDLE, MOST_BLOCKS, NOT_AT_ALL

#: Running jobs of a block, at least.
_LEAST_JOBS = int64(8)


@inner
def note_ends(world: Block) -> None:
    """Note the nodes of each block of running jobs, unless no job has started since."""
    count = world.count
    if count.ends_noted == count.starts:
        return
    count.ends_noted = count.starts  # no job ends during a pass
    jobs = max(_LEAST_JOBS, (count.running + MOST_BLOCKS - 1) // MOST_BLOCKS)
    count.block_jobs, count.blocks = jobs, (count.running + jobs - 1) // jobs
    for block in range(count.blocks):
        words, ended = world.block_nodes[block], world.ended_nodes[block]
        empty(words)
        for k in range(block * jobs, min((block + 1) * jobs, count.running)):
            row = world.jobs[world.running[k]]
            for place in range(row.piece0, row.piece0 + row.pieces):
                add(words, world.pieces[place].node)
        copy(ended, words)
        if block > 0:
            unite(ended, world.ended_nodes[block - 1])


@inner
def blocks_until(world: Block, time: int) -> int:
    """Return the number of blocks in which a job may end until a time: none ends before its `until`."""
    low, high = int64(0), int64(world.count.blocks)
    while low < high:
        middle = (low + high) // 2
        if world.jobs[world.running[middle * world.count.block_jobs]].until > time:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def leave_free(world: Block, words: Array, is_whole: bool, blocks: int) -> None:
    """Remove from a set the nodes on which nothing is free even if all jobs of the first blocks have ended.

    Args:
        world: the state.
        words: the set.
        is_whole: whether only nodes without jobs are free.
        blocks: their number.
    """
    free = world.node_sets[IDLE if is_whole else FREE]
    if blocks == 0:
        for word in range(len(words)):
            words[word] &= free[word]
        return
    ended = world.ended_nodes[blocks - 1]
    for word in range(len(words)):
        words[word] &= free[word] | ended[word]


@inner
def next_on(world: Block, running: Array, number: int, place: int, words: Array) -> int:
    """Return the first running job from a place on that has a node of a set, `number` if none has.

    Args:
        world: the state.
        running: running jobs: all of them, or those that stay.
        number: how many.
        place: where to begin.
        words: the set.
    """
    jobs = world.count.block_jobs if world.rules.preempts == NOT_AT_ALL else number + 1
    while place < number:
        if place % jobs == 0 and jobs <= number and not are_shared(world.block_nodes[place // jobs], words):
            place += jobs
            continue
        row = world.jobs[running[place]]
        for k in range(row.piece0, row.piece0 + row.pieces):
            if has(words, world.pieces[k].node):
                return place
        place += 1
    return number


@inner
def may_suffice(world: Block, words: Array, is_whole: bool, jobs: int, least: int) -> bool:
    """Return False if even without the first running jobs too few nodes of a set are free."""
    free = world.node_sets[IDLE if is_whole else FREE]
    ended = world.ended_nodes[(jobs - 1) // world.count.block_jobs]
    number = int64(0)
    for word in range(len(words)):
        number += popcount(words[word] & (free[word] | ended[word]))
    return bool(number >= least)
