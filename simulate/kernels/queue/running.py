"""Running jobs: their true ends, and their latest ends by walltime as the scheduler sees them.

Rule: the type of the state selects at compile time how ends are found (known at the start, or from the network),
whether jobs have dependencies or predicted run times, and whether decisions take time. Plain replays pay nothing for
features that they do not have. A latest end that is predicted is an expected end: `correct_ends` moves it when a job
outlasts it.
"""

from __future__ import annotations

import math
from typing import Any

from ..block import Block
from ..heap import push, remove_first
from ..jit import by_type, inner
from .network import fair_share, job_progress
from .network.tables import Networked, NetworkedPowered, NetworkedReserving
from .tables import INCREMENTS_S, Replay, RichReplay


@inner
def _begin(world: Block, job: int, finish: float) -> None:
    push(world.heap_time, world.heap_job, None, world.count.running, finish, job)
    world.count.running += 1


@inner
def _end_first(world: Block) -> int:
    first = world.heap_job[0]
    world.count.running -= 1
    remove_first(world.heap_time, world.heap_job, None, world.count.running)
    return first


@inner
def _first_in_heap(world: Block, before: float) -> float:
    return world.heap_time[0] if world.count.running > 0 else math.inf


def _communicates(world: Any) -> bool:
    return world in (Networked.numba_type, NetworkedReserving.numba_type, NetworkedPowered.numba_type)


def _may_depend(world: Any) -> bool:
    return world != Replay.numba_type


def _may_be_predicted(world: Any) -> bool:
    return world == RichReplay.numba_type


def _may_take_time(world: Any) -> bool:
    return world in (RichReplay.numba_type, Networked.numba_type)


#: begin(world, job, finish): add a running job, which by its run time ends at `finish`. O(log n).
begin = by_type(_communicates, job_progress.begin, _begin)
#: next_end(world, before): return the next end, if not after `before`; else a later time, or infinity. O(1).
next_end = by_type(_communicates, job_progress.next_end, _first_in_heap)
#: must_pause(world): return whether the power log must be emptied before the next instant.
must_pause = by_type(_communicates, fair_share.log_is_full, inner(lambda world: False))
#: end_first(world): remove and return the job that ends first. O(log n).
end_first = by_type(_communicates, job_progress.end_first, _end_first)
#: ended_well(world, job): return whether an ended job succeeded, as far as the replay decides it.
ended_well = by_type(_communicates, job_progress.ended_well, inner(lambda world, job: True))
#: Return whether any job has dependencies.
has_dependencies = by_type(_may_depend, inner(lambda world: len(world.unmet) > 0), inner(lambda world: False))
#: Return whether run times are predicted.
has_predictions = by_type(_may_be_predicted, inner(lambda world: len(world.expected) > 0), inner(lambda world: False))
#: Return whether decisions take time.
decisions_take_time = by_type(_may_take_time, inner(lambda world: world.clock.takes > 0.0), inner(lambda world: False))
#: Return the number of jobs that start when the pending decision is applied.
decided_count = by_type(_may_take_time, inner(lambda world: world.count.decided), inner(lambda world: 0))


@inner
def add_running(replay: Block, job: int, finish: float, until: float) -> None:
    """Add a running job. O(log n) and a shift of the shorter side of the sorted list."""
    add_latest_end(replay, job, until)
    begin(replay, job, finish)


@inner
def pop_running(replay: Block) -> int:
    """Remove and return the job that ends first."""
    remove_latest_end(replay, replay.heap_job[0])
    return end_first(replay)


@inner
def add_latest_end(replay: Block, job: int, until: float) -> None:
    """Add a job's latest end. The caller increments RUNNING or DECIDED afterwards."""
    _insert(replay, job, until, _latest_ends(replay))


@inner
def remove_latest_end(replay: Block, job: int) -> None:
    """Remove a job's latest end. The caller decrements RUNNING or DECIDED afterwards."""
    _remove(replay, job, _latest_ends(replay))


@inner
def _latest_ends(replay: Block) -> int:
    return replay.count.running + decided_count(replay)


@inner
def first_after(replay: Block, time: float, size: int) -> int:
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
def _insert(replay: Block, job: int, until: float, size: int) -> None:
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
    at = first_after(replay, until, size)
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
def _remove(replay: Block, job: int, size: int) -> None:
    ends, count = replay.ends, replay.count
    begin = count.first_end
    until = replay.jobs[job].start + replay.jobs[job].wall
    at = first_after(replay, until, size) - 1
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
def next_expected_end(world: Block) -> float:
    """Return the first latest end of a running job; infinity if none runs."""
    return world.ends[world.count.first_end].time if world.count.running > 0 else math.inf


@inner
def correct_ends(world: Block, now: float) -> bool:
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
def lacks_prediction(world: Block) -> bool:
    """Return whether the next instant submits a job whose run time has not been predicted yet."""
    job = world.count.next
    if not has_predictions(world) or job >= len(world.jobs) or not math.isnan(world.jobs[job].wall):
        return False
    return world.jobs[job].submit <= min(next_expected_end(world), _first_in_heap(world, 0.0))


@inner
def note_ended(world: Block, job: int) -> None:
    """Note that a job has ended, for predictions."""
    if has_predictions(world):
        world.ended[world.count.unlearned] = job
        world.count.unlearned += 1


@inner
def earliest(replay: Block, wanted: int) -> tuple[float, int]:
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
