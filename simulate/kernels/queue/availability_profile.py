"""Where a job fits into the profile, and which resources it takes there.

Rule: the earliest slice from which on enough is free for as long as the job may take. BASIC needs no more than the
counts: it takes the lowest numbers when it starts. The other variants look, where counts allow it, at the resources
that no other has in that time, and take theirs among them.
Source of the variants: thesis of Poquet (2017), chapter 5.
"""

from __future__ import annotations

import math

import numpy as np

from ..jit import inner
from .blocks import room, shortage, survey
from .tables import ALLOCATION, BASIC, CONTIGUOUS, LOCAL, MACHINE, NOW, RUNNING, SLICES, STRICT, WAITING

_ALL, _ONE, _NONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1), np.uint64(0)


@inner
def until(start, wall):
    """When a job that starts then ends at the latest; who takes no time holds his place for the shortest moment."""
    end = start + wall
    return end if end > start else start + (abs(start) * 2.0**-52 + 5e-324)


@inner
def _without(world, job, other, begin, end):
    """What is free, less what another has in that time."""
    row = world.jobs[other]
    if other != job and row.start < end and row.until > begin:
        for word in range(row.low_word, row.high_word + 1):
            world.free[word] &= ~world.sets[row.set_row, word]


@inner
def _find_free(world, job, begin, end):
    """The resources that no other has from `begin` to `end`. O(words of the machine, and of all jobs in that time)."""
    machine = world.count[MACHINE]
    words = (machine + 63) // 64
    for word in range(words):
        world.free[word] = _ALL
    if machine % 64:
        world.free[words - 1] = _ALL >> np.uint64(64 - machine % 64)
    for i in range(world.count[RUNNING]):
        _without(world, job, world.heap_job[i], begin, end)
    for i in range(world.count[WAITING]):
        _without(world, job, world.queue[i], begin, end)


@inner
def _lowest(world, job, begin, end):
    """The lowest resources from `begin` to before `end`; False where there are not enough. Fills the job's set."""
    row, left = world.jobs[job].set_row, world.jobs[job].size
    low, high = begin // 64, (end - 1) // 64
    world.jobs[job].low_word = low
    for word in range(low, high + 1):
        bits = world.free[word]
        if word == low:
            bits &= _ALL << np.uint64(begin % 64)
        if word == high:
            bits &= _ALL >> np.uint64(63 - (end - 1) % 64)
        taken = _NONE
        while bits != _NONE and left > 0:
            lowest = bits & (~bits + _ONE)
            taken |= lowest
            bits ^= lowest
            left -= 1
        world.sets[row, word] = taken
        if left == 0:
            world.jobs[job].high_word = word
            return True
    return False


@inner
def _block(world, job):
    """The lowest run of neighbouring resources; False where none is long enough."""
    row, size, machine = world.jobs[job].set_row, world.jobs[job].size, world.count[MACHINE]
    run, begin = np.int64(0), np.int64(0)
    for word in range((machine + 63) // 64):
        bits = world.free[word]
        if bits == _ALL and run + 64 < size:
            begin = word * 64 if run == 0 else begin
            run += 64
            continue
        for bit in range(64):
            if bits >> np.uint64(bit) & _ONE:
                begin = word * 64 + bit if run == 0 else begin
                run += 1
                if run == size:
                    _fill(world, job, row, begin, begin + size - 1)
                    return True
            else:
                run = 0
    return False


@inner
def _fill(world, job, row, first, last):
    low, high = first // 64, last // 64
    for word in range(low, high + 1):
        world.sets[row, word] = _ALL
    world.sets[row, low] &= _ALL << np.uint64(first % 64)
    world.sets[row, high] &= _ALL >> np.uint64(63 - last % 64)
    world.jobs[job].low_word, world.jobs[job].high_word = low, high


@inner
def _choose(world, job, start, stop):
    """Take resources in a hole, as the variant wants them; False where it refuses the hole."""
    kind, machine = world.count[ALLOCATION], world.count[MACHINE]
    _find_free(world, job, start, stop)
    if kind == CONTIGUOUS and _block(world, job):
        return True
    if kind == LOCAL:
        for group in range(len(world.groups)):
            begin, end = np.int64(world.groups[group].first), np.int64(world.groups[group].last) + 1
            if _lowest(world, job, begin, end):
                return True
    if world.count[STRICT] == 1:
        return False
    return _lowest(world, job, np.int64(0), machine)


@inner
def find(world, job):
    """The earliest start for a job, its set filled; inf: it fits into no hole, however late."""
    slices, total = world.slices, world.count[SLICES]
    size, wall, now = world.jobs[job].size, world.jobs[job].wall, world.clock[NOW]
    survey(world)
    first = room(world, 0, size, math.inf)
    while first < total:
        begin = max(now, slices[first].time)
        end = until(begin, wall)
        short = shortage(world, first, size, end)
        if short < 0:
            if world.count[ALLOCATION] == BASIC or _choose(world, job, begin, end):
                return begin
            short = first
        first = room(world, short + 1, size, math.inf)
    return math.inf
