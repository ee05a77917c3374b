"""Running jobs: their true ends, and their latest ends by walltime as the scheduler sees them.

Rule: the type of the state selects at compile time how ends are found (known at the start, or from the network),
whether jobs have dependencies or predicted run times, and whether decisions take time. Plain replays pay nothing for
features that they do not have. A latest end that is predicted is an expected end: `correct_ends` moves it when a job
outlasts it.
Compiling selects by `overload`; in plain Python (see `interpreted`) the bodies do.
"""

from __future__ import annotations

import math

from numba.extending import overload

from ..jit import inner
from .end_heap import pop, push
from .network import job_progress
from .network.tables import Networked, NetworkedPowered, NetworkedReserving
from .tables import INCREMENTS_S, Replay, RichReplay

_OPTIONS = {"jit_options": {"error_model": "numpy"}, "strict": False}  # strict: annotations must be the same, too


def begin(world, job, finish):
    """Add a running job, which by its run time ends at `finish`. O(log n)."""
    return _chosen(world.numba_type, job_progress.begin, push)(world, job, finish)


def next_end(world, before):
    """Return the next end, if not after `before`; else a later time, or infinity. O(1)."""
    return _chosen(world.numba_type, job_progress.next_end, _first_in_heap)(world, before)


def end_first(world):
    """Remove and return the job that ends first. O(log n)."""
    return _chosen(world.numba_type, job_progress.end_first, pop)(world)


def ended_well(world, job):
    """Return whether an ended job succeeded, as far as the replay decides it."""
    return _chosen(world.numba_type, job_progress.ended_well, _success_known_before)(world, job)


@inner
def _first_in_heap(world, before):
    return world.heap_time[0] if world.count.running > 0 else math.inf


@inner
def _success_known_before(world, job):
    return True


def _chosen(world, networked, fixed):
    """Select one of two functions by the type of the state."""
    kinds = (Networked.numba_type, NetworkedReserving.numba_type, NetworkedPowered.numba_type)
    return networked if world in kinds else fixed


@overload(begin, **_OPTIONS)
def _begin(world, job, finish):
    return _chosen(world, job_progress.begin, push).py_func


@overload(next_end, **_OPTIONS)
def _next_end(world, before):
    return _chosen(world, job_progress.next_end, _first_in_heap).py_func


@overload(end_first, **_OPTIONS)
def _end_first(world):
    return _chosen(world, job_progress.end_first, pop).py_func


@overload(ended_well, **_OPTIONS)
def _ended_well(world, job):
    return _chosen(world, job_progress.ended_well, _success_known_before).py_func


def has_dependencies(world):
    """Return whether any job has dependencies."""
    return len(world.unmet) > 0


def has_predictions(world):
    """Return whether run times are predicted."""
    return world.numba_type == RichReplay.numba_type and len(world.expected) > 0


def decisions_take_time(world):
    """Return whether decisions take time."""
    return _may_take_time(world.numba_type) and world.clock.takes > 0.0


def decided_count(world):
    """Return the number of jobs that start when the pending decision is applied."""
    return world.count.decided if _may_take_time(world.numba_type) else 0


@inner
def _never(world):
    return False


@inner
def _has_unmet(world):
    return len(world.unmet) > 0


@inner
def _has_expected(world):
    return len(world.expected) > 0


@inner
def _takes_time(world):
    return world.clock.takes > 0.0


@inner
def _none(world):
    return 0


@inner
def _count(world):
    return world.count.decided


@overload(has_dependencies, **_OPTIONS)
def _has_dependencies(world):
    return (_never if world == Replay.numba_type else _has_unmet).py_func


@overload(has_predictions, **_OPTIONS)
def _has_predictions(world):
    return (_has_expected if world == RichReplay.numba_type else _never).py_func


@overload(decisions_take_time, **_OPTIONS)
def _decisions_take_time(world):
    return (_takes_time if _may_take_time(world) else _never).py_func


@overload(decided_count, **_OPTIONS)
def _decided_count(world):
    return (_count if _may_take_time(world) else _none).py_func


def _may_take_time(world):
    return world in (RichReplay.numba_type, Networked.numba_type)


@inner
def add_running(replay, job, finish, until):
    """Add a running job. O(log n) and a shift of the shorter side of the sorted list."""
    add_latest_end(replay, job, until)
    begin(replay, job, finish)


@inner
def pop_running(replay):
    """Remove and return the job that ends first."""
    remove_latest_end(replay, replay.heap_job[0])
    return end_first(replay)


@inner
def add_latest_end(replay, job, until):
    """Add a job's latest end. The caller increments RUNNING or DECIDED afterwards."""
    _insert(replay, job, until, _latest_ends(replay))


@inner
def remove_latest_end(replay, job):
    """Remove a job's latest end. The caller decrements RUNNING or DECIDED afterwards."""
    _remove(replay, job, _latest_ends(replay))


@inner
def _latest_ends(replay):
    return replay.count.running + decided_count(replay)


@inner
def _place(replay, time, size):
    """Return the position of the first end after `time` among the `size` sorted ones."""
    ends, low = replay.ends, replay.count.first_end
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
    begin = count.first_end
    if begin == 0 or begin + size == len(ends):  # both sides need a free cell: back to the middle
        middle = (len(ends) - size) >> 1
        if middle > begin:
            for i in range(size - 1, -1, -1):
                ends[middle + i] = ends[begin + i]
        else:
            for i in range(size):
                ends[middle + i] = ends[begin + i]
        begin = count.first_end = middle
    at = _place(replay, until, size)
    if at - begin < begin + size - at:
        for i in range(begin, at):
            ends[i - 1] = ends[i]
        at -= 1
        count.first_end = begin - 1
    else:
        for i in range(begin + size, at, -1):
            ends[i] = ends[i - 1]
    ends[at].time, ends[at].size, ends[at].job = until, replay.jobs[job].size, job


@inner
def _remove(replay, job, size):
    ends, count = replay.ends, replay.count
    begin = count.first_end
    until = replay.jobs[job].start + replay.jobs[job].wall
    at = _place(replay, until, size) - 1
    while ends[at].job != job:
        at -= 1
    if at - begin < begin + size - at:
        for i in range(at, begin, -1):
            ends[i] = ends[i - 1]
        count.first_end = begin + 1
    else:
        for i in range(at, begin + size - 1):
            ends[i] = ends[i + 1]


@inner
def next_expected_end(world):
    """Return the first latest end of a running job; infinity if none runs."""
    return world.ends[world.count.first_end].time if world.count.running > 0 else math.inf


@inner
def correct_ends(world, now):
    """Move the expected ends that have passed, at most to the walltime. Return whether there were any."""
    corrected = False
    while has_predictions(world) and next_expected_end(world) <= now:
        job = world.ends[world.count.first_end].job
        row, expected = world.jobs[job], world.expected[job]
        _remove(world, job, world.count.running)
        row.wall = min(now - row.start + INCREMENTS_S[expected.corrections], expected.limit)
        expected.corrections += 1
        _insert(world, job, row.start + row.wall, world.count.running - 1)
        corrected = True
    return corrected


@inner
def lacks_prediction(world):
    """Return whether the next instant submits a job whose run time has not been predicted yet."""
    job = world.count.next
    if not has_predictions(world) or job >= len(world.jobs) or not math.isnan(world.jobs[job].wall):
        return False
    return world.jobs[job].submit <= min(next_expected_end(world), _first_in_heap(world, 0.0))


@inner
def note_ended(world, job):
    """Note that a job has ended, for predictions."""
    if has_predictions(world):
        world.ended[world.count.unlearned] = job
        world.count.unlearned += 1


@inner
def earliest(replay, wanted):
    """Return when `wanted` resources are free if all jobs run to their walltimes, and how many are free then. O(n)."""
    ends, free, i = replay.ends, replay.count.free, replay.count.first_end
    while free < wanted:
        free += ends[i].size
        i += 1
    time, end = ends[i - 1].time, replay.count.first_end + _latest_ends(replay)
    while i < end and ends[i].time == time:
        free += ends[i].size
        i += 1
    return time, free
