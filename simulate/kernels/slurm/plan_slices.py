"""The slices of a backfill pass: times, each with the nodes that no reservation has (`node_space`).

Rule: the slices are in the order of time and leave no gap. A reservation takes whole nodes out of all slices that it
covers. Two more things are kept for each slice, so that a question need not look at all slices: its *open* nodes, which
no reservation has from the begin of the pass to its end; and its *room* in each partition, a number of nodes that those
that are neither reserved nor busy until its end never exceed.
Complexity: O(slices + words of the reserved nodes x slices covered) to reserve, O(log slices) to find one.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array, Row
from ..block import Block, int64
from ..jit import inner
from ..queue.resources import popcount
from .bits import are_equal, copy, intersect, shared_number
from .node_ends import find_free, note_ends
from .tables import NOT_AT_ALL, OWN

_NONE, _ALL = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def begin_slices(world: Block, available: Array, begin: int, end: int) -> None:
    """Begin with one slice, in which these nodes are not reserved."""
    count, row = world.count, world.slices[0]
    count.slices, count.free_rows, count.used_rows = 1, 0, 1
    row.begin, row.end, row.nodes, row.frees, row.joins = begin, end, 0, 0, 0
    copy(world.slice_nodes[0], available)
    copy(world.open_nodes[0], available)
    for part in range(len(world.partitions)):
        world.room[part, 0] = world.partitions[part].nodes


@inner
def slice_at(world: Block, time: int) -> int:
    """Return the first slice that ends after a time, or the number of slices."""
    low, high = int64(0), int64(world.count.slices)
    while low < high:
        middle = (low + high) // 2
        if world.slices[middle].end > time:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def reserve(world: Block, words: Array, start: int, end: int) -> None:
    """Take nodes out of all slices of a time. Then two slices become one if they have the same nodes, but only two.

    Args:
        world: the state; `chosen_words` lists the words that have nodes.
        words: the nodes.
        start: begin of the reservation, a multiple of bf_resolution.
        end: its end, another one.
    """
    _cut(world, start)
    _cut(world, end)
    count, slices = world.count, world.slices
    for part in range(len(world.partitions)):
        nodes, number = world.partition_nodes[part], int64(0)
        for k in range(count.chosen_words):
            word = world.chosen_words[k]
            number += popcount(words[word] & nodes[word])
        world.partitions[part].taken = number
    first = slice_at(world, start)
    place = max(first - 1, 0)
    while place < count.slices and slices[place].end <= end:
        _take(world, place, words, place >= first)
        place += 1
    if first < place < count.slices:
        slices[place - 1].frees = slices[place - 1].joins = 1
    for place in range(first, count.slices):
        open_nodes, missing = world.open_nodes[slices[place].nodes], _NONE
        for k in range(count.chosen_words):
            word = world.chosen_words[k]
            missing |= open_nodes[word] & words[word]
            open_nodes[word] &= ~words[word]
        if missing == _NONE:  # so are they in all that follow
            break
    _join_two(world)


@inner
def _take(world: Block, place: int, words: Array, is_covered: bool) -> None:
    """Take nodes out of a slice, and off its room if it had them all.

    Note whether it may join the next one, from which the nodes will be taken, too, and whether that has some it lacks.

    Args:
        world: the state.
        place: of the slice.
        words: the nodes.
        is_covered: whether they are taken out of it, and not only out of the next one.
    """
    row, is_last = world.slices[place], place + 1 >= world.count.slices
    nodes = world.slice_nodes[row.nodes]
    following = world.slice_nodes[world.slices[place if is_last else place + 1].nodes]
    differ, fewer_freed, missing, mask = _NONE, _NONE, _NONE, _ALL if is_covered else _NONE
    for k in range(world.count.chosen_words):
        word = world.chosen_words[k]
        present, later, removed = nodes[word], following[word], words[word]
        differ |= (present ^ later) & removed
        fewer_freed |= later & ~present & removed
        missing |= removed & ~present
        nodes[word] = present & ~(removed & mask)
    if is_covered and missing == _NONE:
        for part in range(len(world.partitions)):
            world.room[part, row.nodes] -= world.partitions[part].taken
    if is_last:
        return
    if not is_covered or differ != _NONE:
        row.joins = 1
    if row.frees == 1 and fewer_freed != _NONE:
        freed = _NONE
        for word in range(len(words)):
            freed |= following[word] & ~nodes[word] & ~words[word]
        row.frees = int64(freed != _NONE)


@inner
def _cut(world: Block, time: int) -> None:
    """Divide the slice around a time, unless a slice begins there."""
    count, slices, place = world.count, world.slices, slice_at(world, time)
    if place == count.slices or slices[place].begin >= time:
        return
    for k in range(count.slices, place + 1, -1):
        _copy_slice(slices[k], slices[k - 1])
    count.slices += 1
    first, second = slices[place], slices[place + 1]
    second.begin, second.end, second.frees, second.joins = time, first.end, first.frees, first.joins
    if count.free_rows > 0:
        count.free_rows -= 1
        second.nodes = world.free_rows[count.free_rows]
    else:
        second.nodes = count.used_rows
        count.used_rows += 1
    first.end, first.frees, first.joins = time, 0, 1
    copy(world.slice_nodes[second.nodes], world.slice_nodes[first.nodes])
    copy(world.open_nodes[second.nodes], world.open_nodes[first.nodes])
    _measure_room(world, first.nodes, second.nodes, time)


@inner
def _measure_room(world: Block, row: int, following: int, end: int) -> None:
    """Set the room of a slice that now ends earlier, and that of the slice that it was a part of."""
    free = world.scratch[OWN]
    is_measured = world.rules.preempts == NOT_AT_ALL
    if is_measured:
        note_ends(world, world.count.backfill_started)
        find_free(world, free, False, end)
        intersect(free, world.slice_nodes[row])
    for part in range(len(world.partitions)):
        world.room[part, following] = world.room[part, row]
        if is_measured:
            room = shared_number(free, world.partition_nodes[part])
            world.room[part, row] = min(world.room[part, row], room)


@inner
def _join_two(world: Block) -> None:
    """Make one slice of the first two neighbours with the same nodes."""
    count, slices = world.count, world.slices
    for place in range(count.slices - 1):
        row, following = slices[place], slices[place + 1]
        if row.joins == 0:
            continue
        if are_equal(world.slice_nodes[row.nodes], world.slice_nodes[following.nodes]):
            for part in range(len(world.partitions)):
                world.room[part, row.nodes] = world.room[part, following.nodes]
            row.end, row.frees, row.joins = following.end, following.frees, following.joins
            world.free_rows[count.free_rows] = following.nodes
            count.free_rows += 1
            count.slices -= 1
            for k in range(place + 1, count.slices):
                _copy_slice(slices[k], slices[k + 1])
            return
        row.joins = 0


@inner
def _copy_slice(new: Row, old: Row) -> None:
    new.begin, new.end, new.nodes, new.frees, new.joins = old.begin, old.end, old.nodes, old.frees, old.joins
