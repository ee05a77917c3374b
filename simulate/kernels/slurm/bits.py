"""Sets of nodes as rows of 64-bit words: bit i of word i // 64 is node i. All take O(words)."""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..block import int64
from ..compile import trailing_zeros
from ..jit import inner
from ..queue.resources import popcount

_ONE, _NONE, _ALL = np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def empty(words: Array) -> None:
    """Make a set empty."""
    for word in range(len(words)):
        words[word] = _NONE


@inner
def is_empty(words: Array) -> bool:
    """Return whether a set has no node."""
    for word in range(len(words)):  # noqa: SIM110 - compiled code has no generators
        if words[word] != _NONE:
            return False
    return True


@inner
def copy(into: Array, words: Array) -> None:
    """Make a set equal to another."""
    for word in range(len(words)):
        into[word] = words[word]


@inner
def intersect(into: Array, words: Array) -> None:
    """Remove from a set what is not in another."""
    for word in range(len(words)):
        into[word] &= words[word]


@inner
def meet(into: Array, words: Array, others: Array) -> int:
    """Make a set what two others share; return its number of nodes."""
    number = int64(0)
    for word in range(len(words)):
        both = words[word] & others[word]
        into[word] = both
        number += popcount(both)
    return number


@inner
def subtract(into: Array, words: Array) -> None:
    """Remove from a set what is in another."""
    for word in range(len(words)):
        into[word] &= ~words[word]


@inner
def unite(into: Array, words: Array) -> None:
    """Add to a set what is in another."""
    for word in range(len(words)):
        into[word] |= words[word]


@inner
def are_shared(words: Array, others: Array) -> bool:
    """Return whether two sets share a node; without a way out, the compiler takes many words at once."""
    shared = _NONE
    for word in range(len(words)):
        shared |= words[word] & others[word]
    return bool(shared != _NONE)


@inner
def has(words: Array, node: int) -> bool:
    """Return whether a node is in a set."""
    return bool((words[node >> 6] >> np.uint64(node & 63)) & _ONE)


@inner
def add(words: Array, node: int) -> None:
    """Add a node to a set."""
    words[node >> 6] |= _ONE << np.uint64(node & 63)


@inner
def drop(words: Array, node: int) -> None:
    """Remove a node from a set."""
    words[node >> 6] &= ~(_ONE << np.uint64(node & 63))


@inner
def number_of(words: Array) -> int:
    """Return the number of nodes in a set."""
    number = int64(0)
    for word in range(len(words)):
        number += popcount(words[word])
    return number


@inner
def shared_number(words: Array, others: Array) -> int:
    """Return the number of nodes in both sets."""
    number = int64(0)
    for word in range(len(words)):
        number += popcount(words[word] & others[word])
    return number


@inner
def contains(words: Array, others: Array) -> bool:
    """Return whether a set has all nodes of another."""
    missing = _NONE
    for word in range(len(words)):
        missing |= others[word] & ~words[word]
    return bool(missing == _NONE)


@inner
def lacks_none(words: Array, others: Array, places: Array, number: int) -> bool:
    """Return whether a set has all nodes of another in some words, which are the first of a list."""
    missing = _NONE
    for k in range(number):
        missing |= others[places[k]] & ~words[places[k]]
    return bool(missing == _NONE)


@inner
def are_equal(words: Array, others: Array) -> bool:
    """Return whether two sets have the same nodes."""
    for word in range(len(words)):  # noqa: SIM110 - compiled code has no generators
        if others[word] != words[word]:
            return False
    return True


@inner
def next_node(words: Array, node: int) -> int:
    """Return the first node of a set from `node` on, -1 if it has no more."""
    word = node >> 6
    if word >= len(words):
        return int64(-1)
    bits = words[word] & (_ALL << np.uint64(node & 63))
    while bits == _NONE:
        word += 1
        if word >= len(words):
            return int64(-1)
        bits = words[word]
    return word * 64 + int64(trailing_zeros(bits))


@inner
def next_missing(words: Array, node: int) -> int:
    """Return the first number from `node` on that is not in a set; it may be beyond the last node."""
    word = node >> 6
    if word >= len(words):
        return int64(node)
    bits = ~words[word] & (_ALL << np.uint64(node & 63))
    while bits == _NONE:
        word += 1
        if word >= len(words):
            return word * 64
        bits = ~words[word]
    return word * 64 + int64(trailing_zeros(bits))
