"""The availability profile: the number of free resources over time, if all jobs run until their walltimes.

Rule: slices ascend in time and the last has no end. A boundary exists as long as a job begins or ends at it.
The slices are the rows from FIRST_SLICE to before SLICES of three columns, so that loops over them use vector
instructions. A search compares SPAN slices at once: for the few thousand slices of real traces that is faster than a
tree, which each reservation would have to update. Slices of the past stay in the columns until they are half of them.
A job fits at the earliest slice from which enough resources are free for its walltime. The allocation BASIC needs only
counts: it takes the lowest free numbers when the job starts. The other variants choose among the resources that no
other job has in that time (thesis of Poquet, 2017, chapter 5).
"""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Array
from .. import heap
from ..block import int64
from ..compile import compare_64, trailing_zeros
from ..jit import inner
from .resources import popcount, word_mask
from .tables import BASIC, CONTIGUOUS, LOCAL, SPAN, Reserving

_ALL, _ONE, _NONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1), np.uint64(0)


@inner
def find_gap(world: Reserving, first: int, job: int, before: float, until: float) -> int:
    """Return the first slice at which a job can start, by the counts; -1 if all are short.

    O(slices / SPAN + starts of gaps that are too short).

    Args:
        world: the tables.
        first: the slice to begin with.
        job: the job.
        before: the slice begins before this time.
        until: time from which on the job needs no other resources than its own.
    """
    times, spare, total = world.times, world.spare, world.count.slices
    size, wall = world.jobs[job].size, world.jobs[job].wall
    enough = np.uint64(compare_64(spare, first, size))
    while True:
        while enough == _NONE:
            first += SPAN
            if first >= total or times[first] >= before:
                return -1
            enough = compare_64(spare, first, size)
        place = trailing_zeros(enough)
        k = first + int64(place)
        if k >= total or times[k] >= before:
            return -1
        end = min(latest_end(times[k], wall), until)
        short = ~enough & _ALL << np.uint64(place)
        while short == _NONE:
            first += SPAN
            if first >= total or times[first] >= end:
                return k
            enough = compare_64(spare, first, size)
            short = ~enough
        place = trailing_zeros(short)
        if first + int64(place) >= total or times[first + int64(place)] >= end:
            return k
        enough &= _ALL << np.uint64(place)


@inner
def slice_of(world: Reserving, time: float) -> int:
    """Return the slice that contains `time`. O(log slices), without branches that depend on the times."""
    times, low = world.times, world.count.first_slice
    length = world.count.slices - low
    while length > 1:
        half = length >> 1
        low += half * int64(times[np.uint64(low + half)] <= time)
        length -= half
    return low


@inner
def _shift_up(column: Array) -> None:
    """Move all but the last cell up by one."""
    for i in range(len(column) - 1, 0, -1):
        column[i] = column[i - 1]


@inner
def _shift_down(column: Array, by: int) -> None:
    """Move all cells down by some cells; the last ones stay."""
    for i in range(len(column) - by):
        column[i] = column[i + by]


@inner
def _add_boundary(world: Reserving, time: float) -> int:
    """Add a user to the boundary at `time`, creating it if needed. Return its slice. O(slices behind it)."""
    count, k = world.count, slice_of(world, time)
    if world.times[k] != time:
        k += 1
        end = count.slices + 1
        _shift_up(world.times[k:end])
        _shift_up(world.spare[k:end])
        _shift_up(world.users[k:end])
        world.times[k], world.spare[k], world.users[k] = time, world.spare[k - 1], 0
        count.slices = end
    world.users[k] += 1
    return k


@inner
def _drop_boundary(world: Reserving, k: int) -> None:
    """Remove a user from the boundary at the begin of slice `k`, and the boundary with its last user.

    The first slice stays in any case. O(slices behind it).
    """
    count, end = world.count, world.count.slices
    world.users[k] -= 1
    if world.users[k] > 0 or k == count.first_slice:
        return
    _shift_down(world.times[k:end], 1)
    _shift_down(world.spare[k:end], 1)
    _shift_down(world.users[k:end], 1)
    count.slices = end - 1


@inner
def _add(world: Reserving, begin: int, end: int, size: int) -> None:
    """Add free resources to the slices from `begin` to before `end`. O(slices)."""
    spare = world.spare[begin:end]
    for k in range(len(spare)):
        spare[k] += size


@inner
def occupy(world: Reserving, begin: float, end: float, size: int) -> None:
    """Reserve resources from `begin` to `end`, and create the boundaries. O(slices)."""
    first = _add_boundary(world, begin)
    _add(world, first, _add_boundary(world, end), -size)


@inner
def release(world: Reserving, begin: float, end: float, size: int) -> None:
    """Release resources from `begin` to `end`, and drop the boundaries. O(slices)."""
    first, last = slice_of(world, begin), slice_of(world, end)
    _add(world, first, last, size)
    _drop_boundary(world, last)
    _drop_boundary(world, first)


@inner
def advance(world: Reserving, job: int, k: int) -> None:
    """Move the reservation of a job to the begin of an earlier slice `k`. O(slices)."""
    row = world.jobs[job]
    start, until, size = row.start, row.until, row.size
    row.start = world.times[k]
    row.until = latest_end(row.start, row.wall)
    world.users[k] += 1
    end = _add_boundary(world, row.until)
    first, last = slice_of(world, start), slice_of(world, until)
    _add(world, k, min(first, end), -size)
    _add(world, max(first, end), last, size)
    _drop_boundary(world, last)
    _drop_boundary(world, first)


@inner
def drop_before(world: Reserving, now: float) -> None:
    """Remove the part of the profile before `now`. O(log slices); O(slices) once half of the rows are in the past."""
    count, first = world.count, slice_of(world, now)
    end = count.slices
    if first >= len(world.times) // 2:
        _shift_down(world.times[:end], first)
        _shift_down(world.spare[:end], first)
        _shift_down(world.users[:end], first)
        count.slices = end - first
        first = 0
    count.first_slice = first
    world.times[first] = now


@inner
def latest_end(start: float, wall: float) -> float:
    """Return the latest end of a job; a job of zero walltime holds its resources until the next representable time."""
    end = start + wall
    return end if end > start else start + (abs(start) * 2.0**-52 + 5e-324)


@inner
def _without(world: Reserving, job: int, other: int, begin: float, end: float) -> None:
    """Remove the resources that another job has in that time from the free set, and record that job."""
    row, count = world.jobs[other], world.count
    if other == job or row.start >= end or row.until <= begin:
        return
    crossing = world.crossing[count.crossing]
    crossing.time, crossing.job = -row.until, other
    count.crossing += 1
    _remove(world, other)


@inner
def _remove(world: Reserving, job: int) -> int:
    """Remove the resources of a job from the free set. Return how many were there. O(words of the job)."""
    row, number = world.jobs[job], int64(0)
    free = world.free[row.low_word : row.high_word + 1]
    words = world.sets[row.set_row, row.low_word : row.high_word + 1]
    for word in range(len(free)):
        number += popcount(free[word] & words[word])
        free[word] &= ~words[word]
    return number


@inner
def _free_all(world: Reserving) -> None:
    """Set the free set to all resources. O(words)."""
    free = world.free
    free[:] = _ALL
    if world.count.machine % 64:
        free[len(free) - 1] = _ALL >> np.uint64(64 - world.count.machine % 64)


@inner
def _find_free(world: Reserving, job: int, begin: float, end: float) -> int:
    """Set the free set to the resources that no other job has from `begin` to `end`; return their number.

    O(jobs + words of the machine and of all jobs in that time).
    """
    count, free = world.count, world.free
    _free_all(world)
    count.crossing = 0
    for i in range(count.running):
        _without(world, job, world.heap_job[i], begin, end)
    for i in range(count.waiting):
        _without(world, job, world.queue[i], begin, end)
    number = int64(0)
    for word in range(len(free)):
        number += popcount(free[word])
    return number


@inner
def _possible_from(world: Reserving, job: int) -> float:
    """Return before when no gap fits that is later than the one examined last, which does not.

    A job that has resources in that gap has them in each later one that begins before its end. So the free set lacks
    the resources of those that end last, and the end of the first one with which it does not suffice is returned.
    O(jobs in the gap * log jobs + words of these jobs and of the machine).
    """
    count, size, contiguous = world.count, world.jobs[job].size, world.count.strict == 1
    contiguous = contiguous and count.allocation == CONTIGUOUS
    times, others = world.crossing["time"], world.crossing["job"]
    number, begin, until = count.machine, int64(0), math.inf
    _free_all(world)
    for i in range(count.crossing):
        heap.push(times, others, None, i, times[i], others[i])
    while count.crossing > 0:
        until, other = -times[0], others[0]
        row = world.jobs[other]
        count.crossing -= 1
        heap.remove_first(times, others, None, count.crossing)
        number -= _remove(world, other)
        if contiguous and row.low_word * 64 < begin + size and row.high_word * 64 + 64 > begin:
            begin = _lowest_block(world, size, begin // 64)
        if number < size or begin < 0:
            break
    return until


@inner
def _lowest(world: Reserving, job: int, begin: int, end: int) -> bool:
    """Choose the lowest free resources in [begin, end) for a job. Return False if there are not enough. O(words)."""
    row, missing = world.jobs[job].set_row, world.jobs[job].size
    low, high = begin // 64, (end - 1) // 64
    world.jobs[job].low_word = low
    for word in range(low, high + 1):
        bits = world.free[word] & word_mask(word, begin, end - 1)
        free_count = popcount(bits)
        if free_count >= missing:
            others = bits
            for _ in range(missing):
                others &= others - _ONE
            world.sets[row, word] = bits ^ others
            world.jobs[job].high_word = word
            return True
        world.sets[row, word] = bits
        missing -= free_count
    return False


@inner
def _lowest_block(world: Reserving, size: int, first: int) -> int:
    """Return the first of the lowest contiguous free resources from a word on; -1 if no interval is long enough.

    O(words + intervals).
    """
    run, begin = int64(0), int64(0)
    for word in range(first, len(world.free)):
        bits = world.free[word]
        zeros, ones = int64(0), int64(64)
        while bits != _NONE:
            if bits != _ALL:
                zeros = int64(trailing_zeros(bits))
                ones = int64(trailing_zeros(~(bits >> np.uint64(zeros))))
            if run == 0 or zeros > 0:
                run, begin = int64(0), word * 64 + zeros
            run += ones
            if run >= size:
                return begin
            bits = bits & _ALL << np.uint64(zeros) << np.uint64(ones) if ones < 64 else _NONE
        if world.free[word] >> np.uint64(63) == _NONE:
            run = int64(0)
    return int64(-1)


@inner
def _block(world: Reserving, job: int) -> bool:
    """Choose the lowest contiguous free resources for a job. Return False if no interval is long enough."""
    size = world.jobs[job].size
    begin = _lowest_block(world, size, int64(0))
    if begin >= 0:
        _fill(world, job, begin, begin + size - 1)
    return begin >= 0


@inner
def _fill(world: Reserving, job: int, first: int, last: int) -> None:
    """Give a job the resources from `first` to `last`. O(words)."""
    row = world.jobs[job]
    row.low_word, row.high_word = first // 64, last // 64
    for word in range(row.low_word, row.high_word + 1):
        world.sets[row.set_row, word] = word_mask(word, first, last)


@inner
def _choose(world: Reserving, job: int, start: float, stop: float) -> bool:
    """Choose resources in a gap by the allocation variant. Return False if it rejects the gap."""
    kind, machine = world.count.allocation, world.count.machine
    if _find_free(world, job, start, stop) < world.jobs[job].size:
        return False
    if kind == CONTIGUOUS and _block(world, job):
        return True
    if kind == LOCAL:
        for group in range(len(world.groups)):
            begin, end = int64(world.groups[group].first), int64(world.groups[group].last) + 1
            if _lowest(world, job, begin, end):
                return True
    return world.count.strict == 0 and _lowest(world, job, int64(0), machine)


@inner
def find_earliest(world: Reserving, job: int, before: float) -> float:
    """Return the earliest start of a job before a time and fill its set; inf if no gap fits it.

    O(slices / SPAN + gaps examined * (jobs + words of the machine and of the jobs in the gap)).
    """
    k = find_gap(world, world.count.first_slice, job, before, math.inf)
    while k >= 0:
        begin = world.times[k]
        if world.count.allocation == BASIC:
            return begin
        if _choose(world, job, begin, latest_end(begin, world.jobs[job].wall)):
            return begin
        begin = _possible_from(world, job)
        if begin >= before:
            return math.inf
        k = find_gap(world, max(k + 1, slice_of(world, begin)), job, before, math.inf)
    return math.inf
