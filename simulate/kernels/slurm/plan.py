"""The plan of a backfill pass: slices of time, each with the nodes that no reservation has (`node_space`).

Rule: the slices are in the order of time and leave no gap. A reservation takes whole nodes out of all slices that it
covers. Each pass makes its own plan.
Complexity: O(slices) to reserve, and O(slices x words) to look.
"""

from __future__ import annotations

from ...arrays import Array
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
    slice_.nodes = _free_row(world)
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
def look(world: Block, words: Array, whole: Array, start: int, end: int, least: int) -> int:
    """Remove the nodes that are reserved in [start, end] from a set; return when something else is free, or 0.

    Args:
        world: the state.
        words: the set; incomplete if fewer than `least` nodes are left and the answer is not 0.
        whole: the same set before.
        start: when the job would start.
        end: when it would end.
        least: how many nodes the job needs.
    """
    later = int64(0)
    for i in range(world.count.slices):
        row = world.slices[i]
        if row.end <= start:
            continue
        if later == 0 and i + 1 < world.count.slices:
            nodes, following = world.slice_nodes[row.nodes], world.slice_nodes[world.slices[i + 1].nodes]
            for word in range(len(words)):
                if following[word] & whole[word] & ~(nodes[word] & words[word]):
                    later = row.end
                    break
        if row.begin > end:
            break
        if later == 0:
            intersect(words, world.slice_nodes[row.nodes])
        elif intersect_and_count(words, world.slice_nodes[row.nodes]) < least:
            break
    return later


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
    _join_two(world)


@inner
def _join_two(world: Block) -> None:
    """Make one slice of the first two neighbours with the same nodes."""
    count, slices = world.count, world.slices
    for i in range(count.slices - 1):
        if are_equal(world.slice_nodes[slices[i].nodes], world.slice_nodes[slices[i + 1].nodes]):
            slices[i].end = slices[i + 1].end
            world.free_rows[count.free_rows] = slices[i + 1].nodes
            count.free_rows += 1
            count.slices -= 1
            for k in range(i + 1, count.slices):
                new, old = slices[k], slices[k + 1]
                new.begin, new.end, new.nodes = old.begin, old.end, old.nodes
            return


@inner
def _cut(world: Block, time: int) -> None:
    """Divide the slice around a time, unless a slice begins there."""
    count, slices = world.count, world.slices
    for i in range(count.slices):
        if slices[i].begin < time < slices[i].end:
            for k in range(count.slices, i + 1, -1):
                old, new = slices[k - 1], slices[k]
                new.begin, new.end, new.nodes = old.begin, old.end, old.nodes
            first, second = slices[i], slices[i + 1]
            second.begin, second.end, second.nodes = time, first.end, _free_row(world)
            first.end = time
            copy(world.slice_nodes[second.nodes], world.slice_nodes[first.nodes])
            count.slices += 1
            return
