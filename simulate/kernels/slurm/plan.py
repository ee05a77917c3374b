"""The plan of a backfill pass: slices of time, each with the nodes that no reservation has (`node_space`).

Rule: the slices are in the order of time and leave no gap. A reservation takes whole nodes out of all slices that it
covers. Each pass makes its own plan.
Complexity: O(slices) to reserve, and O(slices x words) to look.
"""

from __future__ import annotations

from ...arrays import Array, Row
from ..block import Block, int64
from ..jit import inner
from .bits import are_equal, contains, copy, intersect, intersect_and_count, number_of, subtract


@inner
def begin_plan(world: Block, available: Array, now: int) -> None:
    """Begin a plan without reservations."""
    count, rules = world.count, world.rules
    rows = len(world.free_rows)
    for i in range(rows):
        world.free_rows[i] = rows - 1 - i
    count.free_rows = rows
    slice_ = world.slices[0]
    slice_.begin = now // rules.bf_resolution * rules.bf_resolution
    slice_.end = (now + rules.bf_window) // rules.bf_resolution * rules.bf_resolution
    slice_.nodes, slice_.frees = _free_row(world), 0
    copy(world.slice_nodes[slice_.nodes], available)
    count.slices = 1


@inner
def _free_row(world: Block) -> int:
    world.count.free_rows -= 1
    return int64(world.free_rows[world.count.free_rows])


@inner
def is_full(world: Block) -> bool:
    """Return whether the plan has no room for another reservation."""
    return world.count.free_rows < 2 or world.count.slices + 2 > len(world.slices)


@inner
def next_freed(world: Block, words: Array, start: int, end: int) -> int:
    """Return the first time from `start` on at which a reserved node of a set is free again, 0: none up to `end`.

    A slice that begins after `end` is still looked at, but none after it.
    """
    for i in range(world.count.slices - 1):
        row = world.slices[i]
        if row.end > start:
            if row.frees == 1:
                nodes, following = world.slice_nodes[row.nodes], world.slice_nodes[world.slices[i + 1].nodes]
                for word in range(len(words)):
                    if following[word] & ~nodes[word] & words[word]:
                        return row.end
            if row.begin > end:
                break
    return int64(0)


@inner
def leave_out_reserved(world: Block, words: Array, start: int, end: int) -> None:
    """Remove the nodes that are reserved in [start, end] from a set."""
    for i in range(world.count.slices):
        row = world.slices[i]
        if row.begin > end:
            break
        if row.end > start:
            intersect(words, world.slice_nodes[row.nodes])


@inner
def are_free_until(world: Block, words: Array, start: int, end: int, least: int) -> bool:
    """Return whether so many nodes of a set have no reservation that overlaps [start, end]; the set changes."""
    number = number_of(words)
    for i in range(world.count.slices):
        row = world.slices[i]
        if number < least or row.begin > end:
            break
        if row.end > start:
            number = intersect_and_count(words, world.slice_nodes[row.nodes])
    return number >= least


@inner
def is_clear(world: Block, words: Array, start: int, end: int) -> bool:
    """Return whether no reservation that overlaps [start, end) has a node of a set."""
    for i in range(world.count.slices):
        row = world.slices[i]
        if row.end > start and row.begin < end and not contains(world.slice_nodes[row.nodes], words):
            return False
    return True


@inner
def reserve(world: Block, words: Array, start: int, end: int) -> None:
    """Take nodes out of all slices of a time. Then two slices become one if they have the same nodes, but only two."""
    _cut(world, start)
    _cut(world, end)
    for i in range(world.count.slices):
        row = world.slices[i]
        if row.begin >= start and row.end <= end:
            subtract(world.slice_nodes[row.nodes], words)
    for i in range(world.count.slices - 1):
        row = world.slices[i]
        if row.end == end:
            row.frees = 1
        elif row.frees == 1 and row.end >= start and row.end < end:
            row.frees = 0 if contains(world.slice_nodes[row.nodes], world.slice_nodes[world.slices[i + 1].nodes]) else 1
    _join_two(world)


@inner
def _join_two(world: Block) -> None:
    """Make one slice of the first two neighbours with the same nodes."""
    count, slices = world.count, world.slices
    for i in range(count.slices - 1):
        if are_equal(world.slice_nodes[slices[i].nodes], world.slice_nodes[slices[i + 1].nodes]):
            slices[i].end, slices[i].frees = slices[i + 1].end, slices[i + 1].frees
            world.free_rows[count.free_rows] = slices[i + 1].nodes
            count.free_rows += 1
            count.slices -= 1
            for k in range(i + 1, count.slices):
                _copy_slice(slices[k], slices[k + 1])
            return


@inner
def _copy_slice(new: Row, old: Row) -> None:
    new.begin, new.end, new.nodes, new.frees = old.begin, old.end, old.nodes, old.frees


@inner
def _cut(world: Block, time: int) -> None:
    """Divide the slice around a time, unless a slice begins there."""
    count, slices = world.count, world.slices
    for i in range(count.slices):
        if slices[i].begin < time < slices[i].end:
            for k in range(count.slices, i + 1, -1):
                _copy_slice(slices[k], slices[k - 1])
            first, second = slices[i], slices[i + 1]
            second.begin, second.end, second.nodes, second.frees = time, first.end, _free_row(world), first.frees
            first.end, first.frees = time, 0
            copy(world.slice_nodes[second.nodes], world.slice_nodes[first.nodes])
            count.slices += 1
            return
