"""A winner tree (the smallest of many keys that change one by one), and a random number generator."""

from __future__ import annotations

import numpy as np

from ....arrays import Array, Row
from ...block import int64
from ...jit import inner

_STEP, _A, _B = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@inner
def play(tree: Array, keys: Array, i: int) -> None:
    """Update the tree after key `i` changed, so that cell 1 holds the index of the smallest key. O(log n).

    The tree has 2n cells; cell n + i stands for key i, and each inner cell c for the winner of 2c and 2c + 1. Of equal
    keys the first wins.
    """
    count = len(keys)
    cell = (count + i) >> 1
    while cell > 0:
        left, right = _winner(tree, 2 * cell, count), _winner(tree, 2 * cell + 1, count)
        if keys[right] < keys[left] or (keys[right] == keys[left] and right < left):
            left = right
        tree[cell] = left
        cell >>= 1


@inner
def _winner(tree: Array, cell: int, count: int) -> int:
    return cell - count if cell >= count else tree[cell]


@inner
def play_all(tree: Array, keys: Array) -> None:
    """Build the tree. O(n log n)."""
    for i in range(len(keys)):
        play(tree, keys, i)


@inner
def first(tree: Array) -> int:
    """Return the index of the smallest key."""
    return tree[1] if len(tree) > 2 else int64(0)


@inner
def draw(random: Row, many: int) -> int:
    """Draw an integer in [0, many): the upper 53 bits of splitmix64 (Steele, Lea and Flood 2014)."""
    random.state += _STEP
    z = random.state
    z = (z ^ (z >> np.uint64(30))) * _A
    z = (z ^ (z >> np.uint64(27))) * _B
    z ^= z >> np.uint64(31)
    return int64(np.float64(z >> np.uint64(11)) * 2.0**-53 * many)
