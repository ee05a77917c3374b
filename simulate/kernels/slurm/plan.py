"""Questions about the plan of a backfill pass: which nodes have no reservation at a time, and from when on.

Complexity: O(slices x words) a question at most; O(words) if it begins with the pass.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from ..queue.resources import popcount
from .bits import intersect, lacks_none, number_of
from .plan_slices import begin_slices, slice_at

#: Every so many slices are looked at before those between.
_STRIDE = 8
_NONE = np.uint64(0)
#: Answers of `leave_out_if_enough`.
ENOUGH, TOO_FEW, SURELY_TOO_FEW = range(3)


@inner
def begin_plan(world: Block, available: Array, now: int) -> None:
    """Begin a plan without reservations."""
    step, window = world.rules.bf_resolution, world.rules.bf_window
    begin_slices(world, available, now // step * step, (now + window) // step * step)
    world.count.bounds = 0


@inner
def is_full(world: Block) -> bool:
    """Return whether the plan has no room for another reservation."""
    rows = len(world.slices)
    return bool(rows - world.count.used_rows + world.count.free_rows < 2 or world.count.slices + 2 > rows)


@inner
def next_freed(world: Block, words: Array, start: int, end: int) -> int:
    """Return the first time from `start` on at which a reserved node of a set is free again, 0: none up to `end`.

    A slice that begins after `end` is still looked at, but none after it.
    """
    for place in range(slice_at(world, start), min(slice_at(world, end) + 2, int64(world.count.slices))):
        if _frees(world, place, words):
            return int64(world.slices[place].end)
    return int64(0)


@inner
def _frees(world: Block, place: int, words: Array) -> bool:
    """Return whether the slice after one has a node of a set that this one lacks."""
    row = world.slices[place]
    if row.frees == 0 or place + 1 >= world.count.slices:
        return False
    nodes, following = world.slice_nodes[row.nodes], world.slice_nodes[world.slices[place + 1].nodes]
    freed = _NONE
    for word in range(len(words)):
        freed |= following[word] & ~nodes[word] & words[word]
    return bool(freed != _NONE)


@inner
def next_with_room(world: Block, words: Array, part: int, start: int, length: int, least: int) -> int:
    """Return `start`, or the first later time at which a job may have room; see `plan_slices`.

    A time is passed over if, before something else becomes free, too few nodes are neither reserved nor busy. What
    becomes free then decides when the job starts. `count.is_sure` becomes 0 where that takes a slice that begins only
    when the job ends.

    Args:
        world: the state.
        words: the nodes that the job may use.
        part: its partition.
        start: the time, in the first slice or the begin of another one.
        length: how long it runs, seconds.
        least: number of nodes that it needs.
    """
    place = slice_at(world, start)
    while True:
        last = min(slice_at(world, start + length), world.count.slices - 1)
        while place <= last and not _frees(world, place, words):
            place += 1
        full = last
        while full >= place and world.room[part, world.slices[full].nodes] >= least:
            full -= 1
        if full < place:
            return start
        if _begins_at_end(world, full, start + length):
            world.count.is_sure = 0
        while not _frees(world, full, words):
            full -= 1
        start, place = int64(world.slices[full].end), full + 1


@inner
def last_freed(world: Block, words: Array, start: int, until: int, length: int) -> int:
    """Return the last time up to `until` at which a reserved node of a set is free again, else `start`.

    It is reached from `start` by steps of `next_freed`, each no longer than that one looks ahead.

    Args:
        world: the state.
        words: the set.
        start: seconds since the epoch.
        until: the same.
        length: how far a step looks ahead, seconds.
    """
    place, reach = slice_at(world, start), slice_at(world, start + length) + 1
    while place <= reach and place + 1 < world.count.slices and world.slices[place].end <= until:
        if _frees(world, place, words):
            start = int64(world.slices[place].end)
            reach = slice_at(world, start + length) + 1
        place += 1
    return start


@inner
def leave_out_reserved(world: Block, words: Array, start: int, end: int) -> None:
    """Remove the nodes that are reserved in [start, end] from a set."""
    first, last = slice_at(world, start), min(slice_at(world, end), world.count.slices - 1)
    if first == 0:
        intersect(words, world.open_nodes[world.slices[last].nodes])
        return
    for place in range(first, last + 1):
        intersect(words, world.slice_nodes[world.slices[place].nodes])


@inner
def leave_out_if_enough(world: Block, words: Array, free: Array, start: int, end: int, least: int) -> int:
    """Remove the nodes that are reserved in [start, end] from a set; return whether it keeps enough nodes of another.

    Args:
        world: the state.
        words: the set.
        free: the other set.
        start: seconds since the epoch.
        end: the same.
        least: what is enough.

    Returns:
        ENOUGH; TOO_FEW; SURELY_TOO_FEW: also without the slice that begins only when a run from `start` ends. If there
        are too few, more nodes may be left in the set than should.
    """
    first, last = slice_at(world, start), min(slice_at(world, end), world.count.slices - 1)
    inner_last = last - 1 if _begins_at_end(world, last, end) else last
    if first == 0:
        if inner_last >= 0 and _leave_out(words, world.open_nodes[world.slices[inner_last].nodes], free) < least:
            return SURELY_TOO_FEW
    else:
        tight = world.count.tight  # the slice that was too full last time is often too full again
        if first <= tight <= inner_last and (
            _leave_out(words, world.slice_nodes[world.slices[tight].nodes], free) < least
        ):
            return SURELY_TOO_FEW
        for offset in range(_STRIDE):  # slices next to each other have almost the same nodes
            for place in range(first + offset, inner_last + 1, _STRIDE):
                if _leave_out(words, world.slice_nodes[world.slices[place].nodes], free) < least:
                    world.count.tight = place
                    return SURELY_TOO_FEW
    if last > inner_last and _leave_out(words, world.slice_nodes[world.slices[last].nodes], free) < least:
        return TOO_FEW
    return ENOUGH


@inner
def _begins_at_end(world: Block, place: int, end: int) -> bool:
    """Return whether a slice begins only when a reservation ends that is to last until `end`."""
    step = world.rules.bf_resolution
    return bool(world.slices[place].begin >= end // step * step)


@inner
def _leave_out(words: Array, others: Array, free: Array) -> int:
    """Remove from a set what is not in another one; return how many nodes of a third it keeps."""
    number = int64(0)
    for word in range(len(words)):
        both = words[word] & others[word]
        words[word] = both
        number += popcount(both & free[word])
    return number


@inner
def are_free_until(world: Block, words: Array, start: int, end: int, least: int) -> bool:
    """Return whether so many nodes of a set have no reservation that overlaps [start, end]; the set changes."""
    leave_out_reserved(world, words, start, end)
    return number_of(words) >= least


@inner
def is_clear(world: Block, words: Array, looked_until: int, start: int, end: int) -> bool:
    """Return whether no reservation that overlaps [start, end) has a node of a set.

    Args:
        world: the state; `chosen_words` lists the words that have nodes.
        words: the set; no slice from `start` to the one at `looked_until` has reserved any.
        looked_until: seconds since the epoch.
        start: the same.
        end: the same.
    """
    for place in range(max(slice_at(world, looked_until) + 1, slice_at(world, start)), world.count.slices):
        row = world.slices[place]
        if row.begin >= end:
            break
        if not lacks_none(world.slice_nodes[row.nodes], words, world.chosen_words, world.count.chosen_words):
            return False
    return True
