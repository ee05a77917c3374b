"""Nodes that running jobs have left by a time: bounds that spare a test of a job when it cannot start.

Rule: running jobs are in the order of their latest ends, in blocks. A bound may let through what a test then refuses,
but never refuses what a test would let through.
Complexity: O(running) for each pass and start, O(words) for each question, and O(pieces) once for each block that is
asked for.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from ..queue.resources import popcount
from .bits import add, are_shared, copy, empty, has, unite
from .job_states import expected_end
from .running_order import first_node, running_jobs
from .tables import FREE, FREE_LATER, IDLE, IDLE_LATER, MOST_BLOCKS

#: Logarithm to base 2 of the running jobs of a block, at least.
_LEAST_SHIFT = int64(3)
#: Blocks that are looked at together, and their logarithm.
_BLOCKS, _BLOCKS_SHIFT = int64(8), int64(3)


@inner
def note_ends(world: Block, now: int) -> None:
    """Note the ends of all running jobs, unless no job has started since: none ends during a pass."""
    count = world.count
    if count.ends_noted == count.starts:
        return
    running = running_jobs(world)
    _begin_notes(world, count.running)
    count.ends_noted = count.starts
    for k in range(count.running):
        end, noted = world.running_ends[k], world.latest_ends[k]
        noted.time, noted.until, noted.piece0, noted.pieces = end.until, end.until, end.piece0, end.pieces
        noted.node = end.node
    for k in range(count.running):
        if world.latest_ends[k].until > now:
            break
        world.latest_ends[k].time = expected_end(world, running[k], now)


@inner
def _begin_notes(world: Block, number: int) -> None:
    """Begin with the ends of so many jobs, and no block."""
    count = world.count
    count.noted, count.noted_blocks, count.ends_noted = number, 0, -1
    count.notes += 1
    count.block_shift, count.block_jobs = _LEAST_SHIFT, int64(1) << _LEAST_SHIFT
    while count.block_jobs * MOST_BLOCKS < number:
        count.block_shift += 1
        count.block_jobs *= 2


@inner
def note_ends_of(world: Block, running: Array, number: int, now: int) -> None:
    """Note the ends of some running jobs.

    Args:
        world: the state.
        running: the jobs by their latest ends.
        number: how many.
        now: the time.
    """
    _begin_notes(world, number)
    for k in range(number):
        row, noted = world.jobs[running[k]], world.latest_ends[k]
        noted.time, noted.until, noted.piece0, noted.pieces = (
            expected_end(world, running[k], now), row.until, row.piece0, row.pieces,
        )  # fmt: skip
        noted.node = first_node(world, int64(running[k]))


@inner
def _ended_nodes(world: Block, last: int) -> Array:
    """Return the nodes of all blocks of noted jobs up to one, and note those of its own."""
    count = world.count
    for block in range(count.noted_blocks, last + 1):
        words, ended = world.block_nodes[block], world.ended_nodes[block]
        empty(words)
        for k in range(block * count.block_jobs, min((block + 1) * count.block_jobs, count.noted)):
            _add_nodes(world, words, k)
        copy(ended, words)
        wide = world.wide_nodes[block // _BLOCKS]
        if block % _BLOCKS == 0:
            empty(wide)
        unite(wide, words)
        if block > 0:
            unite(ended, world.ended_nodes[block - 1])
    count.noted_blocks = max(count.noted_blocks, last + 1)
    return world.ended_nodes[last]


@inner
def _add_nodes(world: Block, words: Array, place: int) -> None:
    noted = world.latest_ends[place]
    for k in range(noted.piece0, noted.piece0 + noted.pieces):
        add(words, world.pieces[k].node)


@inner
def find_free(world: Block, words: Array, is_whole: bool, time: int) -> None:
    """Put into a set all nodes on which something can be free at a time.

    Args:
        world: the state.
        words: the set.
        is_whole: whether only nodes without jobs are free.
        time: seconds; no running job ends before its `until`.
    """
    jobs, low = world.count.block_jobs, int64(0)
    high = (world.count.noted + jobs - 1) // jobs
    while low < high:
        middle = (low + high) // 2
        if world.latest_ends[middle * jobs].until > time:
            high = middle
        else:
            low = middle + 1
    free = world.node_sets[IDLE if is_whole else FREE]
    copy(words, free)
    if low > 1:
        unite(words, _ended_nodes(world, low - 2))
    for place in range(max(low - 1, 0) * jobs, min(low * jobs, int64(world.count.noted))):
        if world.latest_ends[place].until > time:
            break
        _add_nodes(world, words, place)


@inner
def next_on(world: Block, place: int, words: Array) -> int:
    """Return the first noted end from a place on of a job with a node of a set, or the number of ends."""
    shift, number = world.count.block_shift, world.count.noted
    while place < number:
        block = place >> shift
        first, after = block << shift, (block + 1) << shift
        if place == first:
            if block & (_BLOCKS - 1) == 0:
                _ended_nodes(world, min(block + _BLOCKS, ((number - 1) >> shift) + 1) - 1)
                if not are_shared(world.wide_nodes[block >> _BLOCKS_SHIFT], words):
                    place = (block + _BLOCKS) << shift
                    continue
            _ended_nodes(world, block)
            if not are_shared(world.block_nodes[block], words):
                place = after
                continue
        for end in range(place, min(after, number)):
            if is_on(world, end, words):
                return int64(end)
        place = after
    return int64(number)


@inner
def is_on(world: Block, end: int, words: Array) -> bool:
    """Return whether the job of a noted end has a node of a set."""
    noted = world.latest_ends[end]
    if noted.node >= 0 and has(words, int64(noted.node)):
        return True
    for k in range(noted.piece0 + 1, noted.piece0 + noted.pieces):  # noqa: SIM110 - compiled code has no generators
        if has(words, world.pieces[k].node):
            return True
    return False


@inner
def may_suffice(world: Block, words: Array, is_whole: bool, jobs: int, least: int) -> bool:
    """Return False if even without the first noted jobs too few nodes of a set are free."""
    free = world.node_sets[IDLE_LATER if is_whole else FREE_LATER]
    ended = _ended_nodes(world, (jobs - 1) // world.count.block_jobs)
    number = int64(0)
    for word in range(len(words)):
        number += popcount(words[word] & (free[word] | ended[word]))
    return bool(number >= least)


@inner
def let_nodes_be_idle(world: Block, jobs: int) -> None:
    """Let the nodes of the first noted jobs be idle later: enough for a job of whole nodes, if no node has two jobs."""
    words, blocks = world.node_sets[IDLE_LATER], jobs // world.count.block_jobs
    if blocks > 0:
        unite(words, _ended_nodes(world, blocks - 1))
    for place in range(blocks * world.count.block_jobs, jobs):
        _add_nodes(world, words, place)
