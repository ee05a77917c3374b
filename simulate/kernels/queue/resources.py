"""Sets of resources as bits; the lowest numbers are allocated first."""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..block import Block, int64
from ..compile import trailing_zeros
from ..jit import inner

_ALL, _ONE, _NONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1), np.uint64(0)
_PAIRS, _FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_EIGHTS, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


@inner
def take_from(world: Block, free: Array, word: int, size: int) -> int:
    """Remove the `size` lowest resources of a set and record them as pieces. O(words scanned + pieces).

    Args:
        world: the state.
        free: the set, one bit per resource, with at least `size` resources.
        word: the first word that may be non-empty.
        size: number of resources.

    Returns:
        The first word that may be non-empty afterwards.
    """
    pieces, count = world.pieces, world.count
    used, missing, last = count.pieces, size, int64(-2)
    while True:
        while free[word] == _NONE:
            word += 1
        bits = free[word]
        base = word * 64
        if bits == _ALL and missing >= 64:
            if last + 1 == base:
                pieces[used - 1].last = base + 63
            else:
                pieces[used].first, pieces[used].last = base, base + 63
                used += 1
            last = base + 63
            free[word] = _NONE
            missing -= 64
            if missing == 0:
                break
            word += 1
            continue
        while bits != _NONE and missing > 0:
            low = int64(trailing_zeros(bits))
            run = ~(bits >> np.uint64(low))
            length = min(int64(64) if run == _NONE else int64(trailing_zeros(run)), missing)
            mask = (_ALL if length == 64 else ((_ONE << np.uint64(length)) - _ONE)) << np.uint64(low)
            bits &= ~mask
            missing -= length
            first = base + low
            if last + 1 == first:
                pieces[used - 1].last = first + length - 1
            else:
                pieces[used].first, pieces[used].last = first, first + length - 1
                used += 1
            last = first + length - 1
        free[word] = bits
        if missing == 0:
            break
        word += 1
    count.pieces = used
    return word


@inner
def put_into(free: Array, lowest: int, first: int, last: int) -> int:
    """Add the resources from `first` to `last` to a set. O(words).

    Args:
        free: the set, one bit per resource.
        lowest: the first word that may be non-empty.
        first: first resource.
        last: last resource.

    Returns:
        The first word that may be non-empty afterwards.
    """
    word, end = first // 64, last // 64
    low, high = _ALL << np.uint64(first % 64), _ALL >> np.uint64(63 - last % 64)
    if word == end:
        free[word] |= low & high
        return min(lowest, word)
    free[word] |= low
    for k in range(word + 1, end):
        free[k] = _ALL
    free[end] |= high
    return min(lowest, word)


@inner
def take_out(free: Array, first: int, last: int) -> None:
    """Remove the resources from `first` to `last` from a set. O(words)."""
    word, end = first // 64, last // 64
    low, high = _ALL << np.uint64(first % 64), _ALL >> np.uint64(63 - last % 64)
    if word == end:
        free[word] &= ~(low & high)
        return
    free[word] &= ~low
    for k in range(word + 1, end):
        free[k] = _NONE
    free[end] &= ~high


@inner
def word_mask(word: int, first: int, last: int) -> np.uint64:
    """Return the bits of a word for the resources from `first` to `last`; at least one is in the word."""
    low, high = max(first - 64 * word, 0), min(last - 64 * word, 63)
    return (_ALL >> np.uint64(63 - high + low)) << np.uint64(low)


@inner
def popcount(bits: np.uint64) -> int:
    """Return the number of set bits, by adding ever larger groups in parallel."""
    bits -= (bits >> _ONE) & _PAIRS
    bits = (bits & _FOURS) + ((bits >> np.uint64(2)) & _FOURS)
    bits = (bits + (bits >> np.uint64(4))) & _EIGHTS
    return int64((bits * _BYTES) >> np.uint64(56))


@inner
def take(world: Block, size: int, job: int) -> None:
    """Allocate the `size` lowest free resources to a job; enough are free."""
    row, count = world.jobs[job], world.count
    row.piece0 = count.pieces
    count.lowest = take_from(world, world.free, count.lowest, size)
    row.pieces = count.pieces - row.piece0


@inner
def give_back(world: Block, job: int) -> None:
    """Free a job's resources."""
    begin, lowest = world.jobs[job].piece0, world.count.lowest
    for i in range(begin, begin + world.jobs[job].pieces):
        lowest = put_into(world.free, lowest, int64(world.pieces[i].first), int64(world.pieces[i].last))
    world.count.lowest = lowest
