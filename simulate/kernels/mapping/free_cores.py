"""Free cores of the nodes, and what the reservation of the head leaves of them.

Rule: two trees of maxima, whose leaves are the nodes, the fastest first: the free cores now, and those of them that a
job may take that ends after the reservation. They differ on the nodes that are held for the head only.
Complexity: O(log nodes) per change and per node found.
"""

from __future__ import annotations

from ...arrays import Array
from ..jit import inner
from .layout import NO_INDEX, World


@inner
def update_free(world: World, n: int) -> None:
    """Note the free cores of a node after they have changed; 0 if running jobs have more threads than it has cores."""
    node = world.nodes[n]
    free, rank = max(0, int(node.limit - node.alloc)), world.later[n].rank
    world.count.free_cores += free - world.tree[len(world.tree) // 2 + rank]
    _set(world.tree, rank, free)


@inner
def update_late(world: World, n: int) -> None:
    """Note what a node has for jobs that end after the reservation, after that or its free cores have changed."""
    later = world.later[n]
    free = world.tree[len(world.tree) // 2 + later.rank]
    _set(world.late_tree, later.rank, min(free, int(later.cores)) if later.held == 1 else free)


@inner
def _set(tree: Array, rank: int, value: int) -> None:
    i = len(tree) // 2 + rank
    if tree[i] == value:
        return
    tree[i] = value
    while i > 1:
        i //= 2
        most = max(tree[2 * i], tree[2 * i + 1])
        if tree[i] == most:
            return
        tree[i] = most


@inner
def next_free(tree: Array, first: int, wanted: int) -> int:
    """Return the first rank from `first` on whose node has so many cores in a tree; -1 if none has."""
    leaves = len(tree) // 2
    i = leaves + first
    if first >= leaves:
        return NO_INDEX
    while True:
        if tree[i] >= wanted:
            while i < leaves:
                i *= 2
                if tree[i] < wanted:
                    i += 1
            return i - leaves
        while i & 1:
            i >>= 1
        if i == 0:
            return NO_INDEX
        i += 1
