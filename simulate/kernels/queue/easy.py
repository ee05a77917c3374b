"""EASY backfilling, exactly (thesis of Poquet, 2017; the rules are in `simulate.replay`).

Rule: at each instant all ends, then all submissions, then one pass. While nothing ends the head's reservation stands
and who was refused stays refused, so that only newcomers are looked at. Where deciding takes time, what was decided at
an instant is carried out that much later; what happens in between is decided on then.
Cost of a job: O(log running + levels of the tree + pieces), and the shift of the running jobs' sorted ends; of a pass
after an end: O(ends up to the reservation).
"""

from __future__ import annotations

import math

from numba.core import types

from ..jit import inner
from ..native import BlockType, register
from .dependents import next_submitted, release_followers, take_turn
from .ends import next_end
from .free import give_back, take
from .rich import some_wait, thinks
from .running import add, earliest, forget, pop, promise
from .scored import queue_up, sort_queue
from .submission import at_once, submit
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
    NOBODY,
    NOW,
    ORDER,
    PAUSED,
    PIECES,
    RESERVATION,
    RESERVED,
    RUNNING,
    RUNS,
    SPARE,
    TAKES,
    WAITING,
    Replay,
)
from .waiting import nothing, remove, search


class ReplayType(BlockType):
    """Numba's type of Replay."""


register(Replay, ReplayType)


@inner
def _start(replay, job, now):
    """A job starts, or will when the decision is carried out (which has these lines, too: shared with it, they cost all
    other replays 5 %)."""
    row, count = replay.jobs[job], replay.count
    row.start, row.state = now, RUNS
    if not thinks(replay):
        row.finish = now + row.run
        take(replay, row.size, job)
        count[FREE] -= row.size
        add(replay, job, row.finish, now + row.wall)
        return
    count[FREE] -= row.size
    promise(replay, job, now + row.wall)
    replay.decided[count[DECIDED]] = job
    count[DECIDED] += 1


@inner
def _carry_out(replay, now):
    """Who was decided starts."""
    count = replay.count
    many = count[DECIDED]
    for i in range(many):
        job = replay.decided[i]
        row = replay.jobs[job]
        forget(replay, job)
        count[DECIDED] -= 1
        row.start, row.finish = now, now + row.run
        take(replay, row.size, job)
        add(replay, job, row.finish, now + row.wall)
    replay.clock[BUSY] = math.inf


@inner
def _thinks_anew(replay, now, news):
    """Carry out what was decided; True if it is to be decided anew: on what has happened since, if anything has."""
    count, clock = replay.count, replay.clock
    if news or clock[BUSY] == math.inf:
        count[NEWS] = 1
    if clock[BUSY] == now:
        _carry_out(replay, now)
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
    """The first that waits from `rank` on."""
    return search(replay, rank, NOBODY - 1, NOBODY - 1, 0.0, 0.0, nothing)


@inner
def _pass(replay, now):
    """Start heads while they fit, reserve for the first that does not, and fill in behind it."""
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
        rank = search(replay, rank + 1, count[FREE], count[SPARE], now, reservation, nothing)
        if rank < 0:
            break
        _start_waiting(replay, rank, now)
        job = replay.ranked[rank]
        if now + jobs[job].wall > reservation:
            count[SPARE] -= jobs[job].size


@inner
def _pass_sorted(replay, now):
    """The same, with the queue sorted anew."""
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
def _settle(replay, now):
    if replay.count[WAITING] == 0:
        return
    if replay.count[ORDER] > 0:
        _pass_sorted(replay, now)
    else:
        _pass(replay, now)


@inner
def _submit(replay, job, now, direct):
    """Take a job in; True if a pass has to look at it."""
    count = replay.count
    if count[ORDER] == 0:
        return submit(replay, job, now, direct, _start, at_once)
    return queue_up(replay, job)


@inner
def call(replay, instants):
    """Go on for so many instants; DONE, GROW or PAUSED."""
    jobs, count, clock = replay.jobs, replay.count, replay.clock
    total, capacity, some = len(jobs), len(replay.pieces) - count[MACHINE], some_wait(replay)
    while True:
        if count[NEXT] >= total and count[RUNNING] == 0 and not (thinks(replay) and clock[BUSY] < math.inf):
            return DONE
        if count[PIECES] > capacity:
            return GROW
        if instants == 0:
            return PAUSED
        instants -= 1
        count[INSTANTS] += 1
        now = jobs[count[NEXT]].submit if count[NEXT] < total else math.inf
        if thinks(replay):
            now = min(now, clock[BUSY])
        unsettled, waited = count[ORDER] > 0, count[WAITING]  # in such orders time alone may put another first
        end = next_end(replay, now)
        if end <= now:
            now = clock[NOW] = end
            while next_end(replay, now) == now:
                job = pop(replay)
                give_back(replay, job)
                count[FREE] += jobs[job].size
                jobs[job].state = ENDED
                if some:
                    release_followers(replay, job)
            count[RESERVED], unsettled = 0, True
        clock[NOW] = now
        first = count[NEXT]
        job = next_submitted(replay, total, now, some)
        while job >= 0:
            if some:
                take_turn(replay, job)
            alone = job == first and (job + 1 == total or jobs[job + 1].submit != now)
            if _submit(replay, job, now, (count[IN_TURN] == 1 or alone) and not thinks(replay)):
                unsettled = True
            job = next_submitted(replay, total, now, some)
        if thinks(replay):
            unsettled = _thinks_anew(replay, now, end == now or count[WAITING] > waited)
        if unsettled:
            _settle(replay, now)
        if thinks(replay) and clock[BUSY] == now:  # it takes no time that could be told from none
            _carry_out(replay, now)


SIGNATURE = (ReplayType(), types.int64)
