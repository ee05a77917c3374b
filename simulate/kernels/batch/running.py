"""Jobs that run: by when they end, and, as a scheduler knows it, by when their walltimes do."""

from __future__ import annotations

from ..jit import inner
from .ends import begin, end_first
from .rich import decided
from .tables import FIRST_END, FREE, RUNNING


@inner
def add(replay, job, finish, until):
    """A job starts. O(log n) and the shift of the shorter side of the sorted list."""
    promise(replay, job, until)
    begin(replay, job, finish)


@inner
def pop(replay):
    """Take out the job that ends first."""
    forget(replay, replay.heap_job[0])
    return end_first(replay)


@inner
def promise(replay, job, until):
    """A job is to have its resources until then. It is counted afterwards: as one that runs, or is decided."""
    _insert(replay, job, until, _listed(replay))


@inner
def forget(replay, job):
    """It is not. It is still counted."""
    _remove(replay, job, _listed(replay))


@inner
def _listed(replay):
    return replay.count[RUNNING] + decided(replay)


@inner
def _place(replay, time, size):
    """Where the first end after `time` stands among the `size` sorted ones."""
    ends, low = replay.ends, replay.count[FIRST_END]
    high = low + size
    while low < high:
        middle = (low + high) >> 1
        if ends[middle].time <= time:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _insert(replay, job, until, size):
    ends, count = replay.ends, replay.count
    begin = count[FIRST_END]
    if begin == 0 or begin + size == len(ends):  # both sides need a free cell: back to the middle
        middle = (len(ends) - size) >> 1
        if middle > begin:
            for i in range(size - 1, -1, -1):
                ends[middle + i] = ends[begin + i]
        else:
            for i in range(size):
                ends[middle + i] = ends[begin + i]
        begin = count[FIRST_END] = middle
    at = _place(replay, until, size)
    if at - begin < begin + size - at:
        for i in range(begin, at):
            ends[i - 1] = ends[i]
        at -= 1
        count[FIRST_END] = begin - 1
    else:
        for i in range(begin + size, at, -1):
            ends[i] = ends[i - 1]
    ends[at].time, ends[at].size, ends[at].job = until, replay.jobs[job].size, job


@inner
def _remove(replay, job, size):
    ends, count = replay.ends, replay.count
    begin = count[FIRST_END]
    until = replay.jobs[job].start + replay.jobs[job].wall
    at = _place(replay, until, size) - 1
    while ends[at].job != job:
        at -= 1
    if at - begin < begin + size - at:
        for i in range(at, begin, -1):
            ends[i] = ends[i - 1]
        count[FIRST_END] = begin + 1
    else:
        for i in range(at, begin + size - 1):
            ends[i] = ends[i + 1]


@inner
def earliest(replay, wanted):
    """When `wanted` resources are free, if all run until their walltimes, and how many are free then. O(n)."""
    ends, free, i = replay.ends, replay.count[FREE], replay.count[FIRST_END]
    while free < wanted:
        free += ends[i].size
        i += 1
    time, end = ends[i - 1].time, replay.count[FIRST_END] + _listed(replay)
    while i < end and ends[i].time == time:
        free += ends[i].size
        i += 1
    return time, free
