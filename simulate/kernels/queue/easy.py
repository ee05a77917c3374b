"""EASY backfilling and strict order, exact (thesis of Poquet, 2017; the rules are in `simulate.replay.replay`).

Rule: at each instant all ends are processed, then all submissions, then one pass. Until a job ends, the reservation of
the first waiting job (the head) stands and rejected backfill candidates stay rejected, so only new jobs are examined.
If run times are predicted, a run pauses before each submission, so that the caller writes the prediction into `wall`.
A time at which a running job outlasts its expected end is an instant, too, with a pass.
If decisions take time, each is applied that much later, and events in between are left to the next decision.
Complexity: a job costs O(log running + levels of the tree + pieces) and a shift of the sorted ends of running jobs; a
pass after an end costs O(ends up to the reservation).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numba import types

from ..block import Block
from ..compile import register
from ..jit import by_type, inlined, inner
from .dependencies import are_all_submitted, assign_rank, release_followers
from .easy_pass import listed_pass, ranked_pass
from .learned_score import describe, learn_run_time
from .network.tables import Networked
from .replay_loop import replay_loop
from .resources import give_back, take
from .running import (
    add_latest_end,
    add_running,
    correct_ends,
    decisions_take_time,
    earliest,
    ended_well,
    has_predictions,
    lacks_prediction,
    next_expected_end,
    note_ended,
    pop_running,
    remove_latest_end,
)
from .tables import DONE, ENDED, GOES_ON, GROW, PAUSED, REJECTED, RUNS, Replay, RichReplay
from .waiting import append_to_queue, insert, never_refused, remove, search, sort_candidates, sort_queue


@inner
def no_delay(world: Block, size: int) -> float:
    """Return the boot delay of a job's resources: none without switched machines."""
    return 0.0


@inner
def submit(
    world: Block, job: int, now: float, direct: bool, start: Callable[[Any, int, float], None], delay: Callable[[Any,
    int], float],
) -> bool:  # fmt: skip
    """Submit a job: start it, put it in the queue, or reject it. Return True if a pass is needed.

    Args:
        world: the state.
        job: row of the job.
        now: seconds.
        direct: the job may be started without regard to other submissions of this instant.
        start: function that starts a job.
        delay: function that returns the boot delay of a job, see `no_delay`.
    """
    row, count = world.jobs[job], world.count
    size = row.size
    if size > count.machine:
        row.state = REJECTED
        return False
    waits = count.waiting > 0
    if waits and row.rank > count.head:
        direct = direct and count.reserved == 1
        if direct and count.fills == 1 and size <= count.free:
            late = now + delay(world, size) + row.wall > world.clock.reservation
            if not late or size <= count.spare:
                start(world, job, now)
                if late:
                    count.spare -= size
                return False
    else:
        if not waits and direct and size <= count.free:
            start(world, job, now)
            return False
        count.head, count.reserved, direct = row.rank, 0, False
    insert(world, row.rank, size, row.wall)
    count.waiting += 1
    return not direct


ReplayType = register(Replay, __name__)
RichReplayType = register(RichReplay, __name__)
NetworkedType = register(Networked, __name__)


def _may_be_learned(world: Any) -> bool:
    return world == RichReplay.numba_type


_nothing = inner(lambda world, job: None)
_describe = by_type(_may_be_learned, describe, _nothing)
_learn_run_time = by_type(_may_be_learned, learn_run_time, _nothing)
_arrange = by_type(_may_be_learned, sort_candidates, inner(lambda world, first: None))


@inlined
def _begin(replay: Block, job: int, now: float) -> None:
    """Let a job run from now on."""
    row = replay.jobs[job]
    row.start, row.finish = now, now + row.run
    take(replay, row.size, job)
    add_running(replay, job, row.finish, now + row.wall)


@inner
def _start(replay: Block, job: int, now: float) -> None:
    """Start a job, or schedule its start if decisions take time."""
    row, count = replay.jobs[job], replay.count
    row.state = RUNS
    count.free -= row.size
    if not decisions_take_time(replay):
        _begin(replay, job, now)
        return
    row.start = now
    add_latest_end(replay, job, now + row.wall)
    replay.decided[count.decided] = job
    count.decided += 1


@inner
def _start_decided(replay: Block, now: float) -> None:
    """Start the jobs of the pending decision."""
    job_count = replay.count.decided
    for i in range(job_count):
        remove_latest_end(replay, replay.decided[i])
        replay.count.decided -= 1
        _begin(replay, replay.decided[i], now)
    replay.clock.busy = math.inf


@inner
def _begins_decision(replay: Block, now: float) -> bool:
    """Apply a decision that is due. Return True if the next decision begins now, because something has happened."""
    count, clock = replay.count, replay.clock
    if clock.busy == math.inf:
        count.news = 1
    if clock.busy == now:
        _start_decided(replay, now)
    if clock.busy < math.inf or count.news == 0:
        return False
    count.news = count.reserved = 0
    clock.busy = now + clock.takes
    return True


# --- the steps of a pass; the context of the first is always False ---
@inlined
def _fits(replay: Block, _: bool, rank: int, now: float) -> bool:
    return replay.least[rank].size <= replay.count.free


@inlined
def _start_waiting(replay: Block, _: bool, rank: int, now: float) -> None:
    _start(replay, replay.ranked[rank], now)
    remove(replay, rank)
    replay.count.waiting -= 1


@inlined
def _hold(replay: Block, _: bool, rank: int, now: float) -> None:
    if replay.count.reserved == 0 and replay.count.fills == 1:
        _reserve(replay, replay.ranked[rank], now)


@inner
def _reserve(replay: Block, job: int, now: float) -> None:
    size = replay.jobs[job].size
    time, free = earliest(replay, size)
    replay.clock.reservation, replay.count.spare = time, free - size


@inlined
def _candidate(replay: Block, _: bool, rank: int, now: float) -> int:
    count = replay.count
    if count.free == 0 or count.waiting <= 1:
        return -1
    return search(replay, rank, count.free, count.spare, now, replay.clock.reservation, never_refused)


@inlined
def _fill(replay: Block, _: bool, rank: int, now: float) -> None:
    _start_waiting(replay, False, rank, now)
    row = replay.jobs[replay.ranked[rank]]
    if now + row.wall > replay.clock.reservation:
        replay.count.spare -= row.size


@inlined
def _starts(replay: Block, job: int, behind: bool, now: float) -> bool:
    """Start a job of a list if it fits, and delays no reservation."""
    row, count = replay.jobs[job], replay.count
    size = row.size
    if size > count.free:
        return False
    if behind:
        late = now + row.wall > replay.clock.reservation
        if count.fills == 0 or (late and size > count.spare):
            return False
        if late:
            count.spare -= size
    _start(replay, job, now)
    return True


_pass = ranked_pass(_fits, _start_waiting, _hold, _candidate, _fill)
_pass_in_list = listed_pass(_starts, _reserve, _arrange)


# --- the steps of the loop ---
@inner
def _status(replay: Block) -> int:
    count, pending = replay.count, decisions_take_time(replay) and replay.clock.busy < math.inf
    if are_all_submitted(replay) and count.running == 0 and not pending:
        return DONE
    if count.pieces > len(replay.pieces) - count.machine:
        return GROW
    return PAUSED if lacks_prediction(replay) else GOES_ON


@inner
def _planned(replay: Block) -> float:
    """Return when the pending decision is applied, or a job outlasts its expected end."""
    planned = math.inf
    if decisions_take_time(replay):
        planned = replay.clock.busy
    if has_predictions(replay):
        planned = min(planned, next_expected_end(replay))
    return planned


@inner
def _end(replay: Block, now: float) -> None:
    count, job = replay.count, pop_running(replay)
    give_back(replay, job)
    count.free += replay.jobs[job].size
    replay.jobs[job].state = ENDED
    note_ended(replay, job)
    _learn_run_time(replay, job)
    release_followers(replay, job, ended_well(replay, job))
    count.reserved, count.news = 0, 1


@inner
def _settle(replay: Block, now: float) -> bool:
    """Correct expected ends. Such orders as change with time need a pass in any case."""
    corrected = correct_ends(replay, now)
    if corrected:
        replay.count.reserved = 0
    return corrected or replay.count.order > 0


@inner
def _submit(replay: Block, job: int, now: float, alone: bool) -> bool:
    count = replay.count
    waiting = count.waiting
    assign_rank(replay, job)
    if count.order > 0:
        _describe(replay, job)
        needed = append_to_queue(replay, job)
    else:
        direct = (count.in_turn == 1 or alone) and not decisions_take_time(replay)
        needed = submit(replay, job, now, direct, _start, no_delay)
    if count.waiting > waiting:
        count.news = 1
    return needed


@inner
def _decide(replay: Block, now: float, changed: bool) -> None:
    if decisions_take_time(replay):
        changed = _begins_decision(replay, now)
    if changed and replay.count.waiting > 0:
        if replay.count.order > 0:
            sort_queue(replay, replay.count.order, now)
            _pass_in_list(replay, now)
        else:
            _pass(replay, False, now)
    if decisions_take_time(replay) and replay.clock.busy == now:  # its duration is below the resolution of the clock
        _start_decided(replay, now)


_run = replay_loop(_status, _end, _submit, _decide, planned=_planned, settle=_settle)


@inner
def call(replay: Block, instants: int) -> int:
    """Run the replay for a number of instants. Return DONE, GROW or PAUSED."""
    return _run(replay, instants)


SIGNATURES = {
    "queue.easy": (ReplayType(), types.int64),
    "queue.easy_rich": (RichReplayType(), types.int64),
    "queue.easy_networked": (NetworkedType(), types.int64),
}
