"""Which resources are free: a bit each, the lowest numbers given out first."""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from ..jit import inner
from .tables import LOWEST, PIECES

_ALL, _ONE, _NONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1), np.uint64(0)


@inner
def take(replay, size, job):
    """Give a job the lowest `size` free resources, of which there are enough. O(words looked at + pieces)."""
    free, pieces, count = replay.free, replay.pieces, replay.count
    used = count[PIECES]
    replay.jobs[job].piece0 = used
    word, left, last = count[LOWEST], size, np.int64(-2)
    while True:
        while free[word] == _NONE:
            word += 1
        bits = free[word]
        base = word * 64
        if bits == _ALL and left >= 64:
            if last + 1 == base:
                pieces[used - 1].last = base + 63
            else:
                pieces[used].first, pieces[used].last = base, base + 63
                used += 1
            last = base + 63
            free[word] = _NONE
            left -= 64
            if left == 0:
                break
            word += 1
            continue
        while bits != _NONE and left > 0:
            low = np.int64(trailing_zeros(bits))
            run = ~(bits >> np.uint64(low))
            length = min(np.int64(64) if run == _NONE else np.int64(trailing_zeros(run)), left)
            mask = (_ALL if length == 64 else ((_ONE << np.uint64(length)) - _ONE)) << np.uint64(low)
            bits &= ~mask
            left -= length
            first = base + low
            if last + 1 == first:
                pieces[used - 1].last = first + length - 1
            else:
                pieces[used].first, pieces[used].last = first, first + length - 1
                used += 1
            last = first + length - 1
        free[word] = bits
        if left == 0:
            break
        word += 1
    count[LOWEST] = word
    replay.jobs[job].pieces = used - replay.jobs[job].piece0
    count[PIECES] = used


@inner
def give_back(replay, job):
    """Free a job's resources. O(words)."""
    free, count = replay.free, replay.count
    begin = replay.jobs[job].piece0
    for i in range(begin, begin + replay.jobs[job].pieces):
        first, last = np.int64(replay.pieces[i].first), np.int64(replay.pieces[i].last)
        word, end = first // 64, last // 64
        if word < count[LOWEST]:
            count[LOWEST] = word
        low, high = _ALL << np.uint64(first % 64), _ALL >> np.uint64(63 - last % 64)
        if word == end:
            free[word] |= low & high
            continue
        free[word] |= low
        for k in range(word + 1, end):
            free[k] = _ALL
        free[end] |= high
