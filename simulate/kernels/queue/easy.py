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

from numba import types

from ..compile import register
from ..jit import inner
from .dependencies import assign_rank, next_submitted, release_followers
from .network.tables import Networked
from .resources import give_back, take
from .running import (
    add_latest_end,
    add_running,
    correct_ends,
    decisions_take_time,
    earliest,
    has_dependencies,
    has_predictions,
    lacks_prediction,
    next_end,
    next_expected_end,
    note_ended,
    pop_running,
    remove_latest_end,
)
from .tables import (
    BUSY,
    DECIDED,
    DONE,
    ENDED,
    FILLS,
    FREE,
    GROW,
    HEAD,
    IN_TURN,
    INSTANTS,
    MACHINE,
    NEWS,
    NEXT,
    NO_JOB,
    NOW,
    ORDER,
    PAUSED,
    PIECES,
    REJECTED,
    RESERVATION,
    RESERVED,
    RUNNING,
    RUNS,
    SPARE,
    TAKES,
    WAITING,
    Replay,
    RichReplay,
)
from .waiting import append_to_queue, insert, never_refused, remove, search, sort_queue


@inner
def no_delay(world, size):
    """Return the boot delay of a job's resources: none without switched machines."""
    return 0.0


@inner
def submit(world, job, now, direct, start, delay):
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
    if size > count[MACHINE]:
        row.state = REJECTED
        return False
    waits = count[WAITING] > 0
    if waits and row.rank > count[HEAD]:
        direct = direct and count[RESERVED] == 1
        if direct and count[FILLS] == 1 and size <= count[FREE]:
            late = now + delay(world, size) + row.wall > world.clock[RESERVATION]
            if not late or size <= count[SPARE]:
                start(world, job, now)
                if late:
                    count[SPARE] -= size
                return False
    else:
        if not waits and direct and size <= count[FREE]:
            start(world, job, now)
            return False
        count[HEAD], count[RESERVED], direct = row.rank, 0, False
    insert(world, row.rank, size, row.wall)
    count[WAITING] += 1
    return not direct


ReplayType = register(Replay, __name__)
RichReplayType = register(RichReplay, __name__)
NetworkedType = register(Networked, __name__)


@inner
def _start(replay, job, now):
    """Start a job, or schedule its start if decisions take time.

    `_start_decided` repeats some of these lines; sharing them would slow down all other replays by 5 %.
    """
    row, count = replay.jobs[job], replay.count
    row.start, row.state = now, RUNS
    if not decisions_take_time(replay):
        row.finish = now + row.run
        take(replay, row.size, job)
        count[FREE] -= row.size
        add_running(replay, job, row.finish, now + row.wall)
        return
    count[FREE] -= row.size
    add_latest_end(replay, job, now + row.wall)
    replay.decided[count[DECIDED]] = job
    count[DECIDED] += 1


@inner
def _start_decided(replay, now):
    """Start the jobs of the pending decision."""
    count = replay.count
    many = count[DECIDED]
    for i in range(many):
        job = replay.decided[i]
        row = replay.jobs[job]
        remove_latest_end(replay, job)
        count[DECIDED] -= 1
        row.start, row.finish = now, now + row.run
        take(replay, row.size, job)
        add_running(replay, job, row.finish, now + row.wall)
    replay.clock[BUSY] = math.inf


@inner
def _begins_decision(replay, now, news):
    """Apply a decision that is due. Return True if the next decision begins now, because something has happened."""
    count, clock = replay.count, replay.clock
    if news or clock[BUSY] == math.inf:
        count[NEWS] = 1
    if clock[BUSY] == now:
        _start_decided(replay, now)
    if clock[BUSY] < math.inf or count[NEWS] == 0:
        return False
    count[NEWS] = count[RESERVED] = 0
    clock[BUSY] = now + clock[TAKES]
    return True


@inner
def _start_waiting(replay, rank, now):
    _start(replay, replay.ranked[rank], now)
    remove(replay, rank)
    replay.count[WAITING] -= 1


@inner
def _next_head(replay, rank):
    """Return the rank of the first waiting job from `rank` on."""
    return search(replay, rank, NO_JOB - 1, NO_JOB - 1, 0.0, 0.0, never_refused)


@inner
def _pass(replay, now):
    """Start head jobs while they fit, reserve for the first that does not, and backfill behind it."""
    count, jobs = replay.count, replay.jobs
    while count[WAITING] > 0 and replay.least[count[HEAD]].size <= count[FREE]:
        _start_waiting(replay, count[HEAD], now)
        count[RESERVED] = 0
        if count[WAITING] > 0:
            count[HEAD] = _next_head(replay, count[HEAD] + 1)
    if count[WAITING] == 0:
        count[RESERVED] = 0
        return
    head = count[HEAD]
    if count[FILLS] == 0:
        count[RESERVED] = 1
        return
    if count[RESERVED] == 0:
        wanted = replay.least[head].size
        time, free = earliest(replay, wanted)
        replay.clock[RESERVATION], count[SPARE] = time, free - wanted
        count[RESERVED] = 1
    reservation, rank = replay.clock[RESERVATION], head
    while count[FREE] > 0 and count[WAITING] > 1:
        rank = search(replay, rank + 1, count[FREE], count[SPARE], now, reservation, never_refused)
        if rank < 0:
            break
        _start_waiting(replay, rank, now)
        job = replay.ranked[rank]
        if now + jobs[job].wall > reservation:
            count[SPARE] -= jobs[job].size


@inner
def _pass_sorted(replay, now):
    """Run a pass for an order that changes with time: sort the queue first."""
    count, jobs, queue, clock = replay.count, replay.jobs, replay.queue, replay.clock
    sort_queue(replay, count[ORDER], now)
    kept = 0
    for i in range(count[WAITING]):
        job = queue[i]
        size, fits = jobs[job].size, jobs[job].size <= count[FREE]
        if kept > 0 and fits:
            late = now + jobs[job].wall > clock[RESERVATION]
            fits = count[FILLS] == 1 and (not late or size <= count[SPARE])
            if fits and late:
                count[SPARE] -= size
        if fits:
            _start(replay, job, now)
            continue
        if kept == 0:
            time, free = earliest(replay, size)
            clock[RESERVATION], count[SPARE] = time, free - size
        queue[kept] = job
        kept += 1
    count[WAITING] = kept


@inner
def _run_pass(replay, now):
    if replay.count[WAITING] == 0:
        return
    if replay.count[ORDER] > 0:
        _pass_sorted(replay, now)
    else:
        _pass(replay, now)


@inner
def _submit(replay, job, now, direct):
    """Submit a job. Return True if a pass is needed."""
    count = replay.count
    if count[ORDER] == 0:
        return submit(replay, job, now, direct, _start, no_delay)
    return append_to_queue(replay, job)


@inner
def _next_planned(replay, total):
    """Return the time of the next submission, end of a decision, or expected end; infinity if no more is planned."""
    count = replay.count
    now = replay.jobs[count[NEXT]].submit if count[NEXT] < total else math.inf
    if decisions_take_time(replay):
        now = min(now, replay.clock[BUSY])
    if has_predictions(replay):
        now = min(now, next_expected_end(replay))
    return now


@inner
def call(replay, instants):
    """Run the replay for a number of instants. Return DONE, GROW or PAUSED."""
    jobs, count, clock = replay.jobs, replay.count, replay.clock
    total, capacity, some = len(jobs), len(replay.pieces) - count[MACHINE], has_dependencies(replay)
    while True:
        if (
            count[NEXT] >= total
            and count[RUNNING] == 0
            and not (decisions_take_time(replay) and clock[BUSY] < math.inf)
        ):
            return DONE
        if count[PIECES] > capacity:
            return GROW
        if instants == 0 or lacks_prediction(replay):
            return PAUSED
        instants -= 1
        count[INSTANTS] += 1
        now = _next_planned(replay, total)
        unsettled, waited = count[ORDER] > 0, count[WAITING]  # such orders can change with time alone
        end = next_end(replay, now)
        if end <= now:
            now = clock[NOW] = end
            while next_end(replay, now) == now:
                job = pop_running(replay)
                give_back(replay, job)
                count[FREE] += jobs[job].size
                jobs[job].state = ENDED
                note_ended(replay, job)
                if some:
                    release_followers(replay, job)
            count[RESERVED], unsettled = 0, True
        if correct_ends(replay, now):
            count[RESERVED], unsettled = 0, True
        clock[NOW] = now
        first = count[NEXT]
        job = next_submitted(replay, total, now, some)
        while job >= 0:
            if some:
                assign_rank(replay, job)
            alone = job == first and (job + 1 == total or jobs[job + 1].submit != now)
            if _submit(replay, job, now, (count[IN_TURN] == 1 or alone) and not decisions_take_time(replay)):
                unsettled = True
            job = next_submitted(replay, total, now, some)
        if decisions_take_time(replay):
            unsettled = _begins_decision(replay, now, end == now or count[WAITING] > waited)
        if unsettled:
            _run_pass(replay, now)
        if decisions_take_time(replay) and clock[BUSY] == now:  # the decision time is below the resolution of the clock
            _start_decided(replay, now)


SIGNATURES = {
    "queue.easy": (ReplayType(), types.int64),
    "queue.easy_rich": (RichReplayType(), types.int64),
    "queue.easy_networked": (NetworkedType(), types.int64),
}
