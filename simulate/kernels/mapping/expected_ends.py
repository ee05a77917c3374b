"""Running jobs by their expected ends: a sorted list in blocks.

Rule: of equal ends, the job that was added first comes first. The blocks in use come first in `world.blocks`, in order.
Complexity: O(log blocks + rows of a block) per change, and a shift of the list of blocks when one is split or removed.
"""

from __future__ import annotations

from ..jit import inner
from .layout import END_ROWS, World


@inner
def add_end(world: World, until: float, job: int) -> None:
    """Add a running job that is expected to end at `until`."""
    blocks, ends, count = world.blocks, world.ends, world.count
    if count.blocks == 0:
        blocks[0].size, count.blocks = 0, 1
    low, high = 0, count.blocks - 1  # what comes after all others belongs to the last block
    while low < high:
        middle = (low + high) >> 1
        if ends[blocks[middle].first + blocks[middle].size - 1].until <= until:
            low = middle + 1
        else:
            high = middle
    if blocks[low].size == END_ROWS:
        _split(world, low)
        if ends[blocks[low].first + blocks[low].size - 1].until <= until:
            low += 1
    block = blocks[low]
    i = block.first + block.size
    block.size += 1
    while i > block.first and ends[i - 1].until > until:
        ends[i].until, ends[i].job = ends[i - 1].until, ends[i - 1].job
        i -= 1
    ends[i].until, ends[i].job = until, job


@inner
def _split(world: World, at: int) -> None:
    """Move the second half of a block to a new one behind it."""
    blocks, ends, count = world.blocks, world.ends, world.count
    fresh = blocks[count.blocks].first
    for i in range(count.blocks, at + 1, -1):
        blocks[i].first, blocks[i].size = blocks[i - 1].first, blocks[i - 1].size
    count.blocks += 1
    half = END_ROWS // 2
    blocks[at].size, blocks[at + 1].first, blocks[at + 1].size = half, fresh, END_ROWS - half
    for i in range(END_ROWS - half):
        row = ends[blocks[at].first + half + i]
        ends[fresh + i].until, ends[fresh + i].job = row.until, row.job


@inner
def remove_end(world: World, until: float, job: int) -> None:
    """Remove a job that was added with this end."""
    blocks, ends, count = world.blocks, world.ends, world.count
    low, high = 0, count.blocks - 1
    while low < high:
        middle = (low + high) >> 1
        if ends[blocks[middle].first + blocks[middle].size - 1].until < until:
            low = middle + 1
        else:
            high = middle
    i = blocks[low].first
    while ends[i].until < until:
        i += 1
    while ends[i].job != job:
        i += 1
        if i == blocks[low].first + blocks[low].size:
            low += 1
            i = blocks[low].first
    block = blocks[low]
    block.size -= 1
    for k in range(i, block.first + block.size):
        ends[k].until, ends[k].job = ends[k + 1].until, ends[k + 1].job
    if block.size > 0:
        return
    spare = block.first
    count.blocks -= 1
    for k in range(low, count.blocks):
        blocks[k].first, blocks[k].size = blocks[k + 1].first, blocks[k + 1].size
    blocks[count.blocks].first = spare
