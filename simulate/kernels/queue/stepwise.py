"""A replay under a policy in Python: what happens between two of its calls, and which jobs it can backfill.

Rule: one call processes all starts of the last decision and the events of the next instant, and logs each start and
end. The instants are those of `replay_loop`, whose pass is left to the caller. Jobs are ranked as they are submitted.
What-if questions leave the state as it was.
"""

from __future__ import annotations

import math

from ..block import Block
from ..compile import register
from ..heap import push
from ..jit import inlined, inner
from .dependencies import are_all_submitted, release_followers
from .easy_pass import behind_by_rank
from .replay_loop import replay_loop
from .resources import give_back, take, take_out
from .running import add_latest_end, add_running, earliest, ended_well, pop_running, remove_latest_end
from .tables import (
    ADVANCE,
    BACKFILL,
    CHOSEN,
    ENDED,
    ENDS,
    FREE,
    FULL,
    GOES_ON,
    JOB_ASKED,
    KILL,
    LOGGED,
    MANY,
    NO_JOB,
    NOW,
    QUESTION,
    RANKS,
    REJECT,
    REJECTED,
    RESERVATION,
    RUNS,
    SKIPS,
    SPARE,
    START,
    START_ON,
    UNTIL,
    WAITS,
    Stepwise,
)
from .waiting import insert, never_refused, remove, search

StepwiseType = register(Stepwise, __name__)


@inner
def _log_end(world: Block, job: int) -> None:
    count = world.count
    give_back(world, job)
    count.free += world.jobs[job].size
    world.jobs[job].state = ENDED
    world.log[count.logged] = -1 - job
    count.logged += 1
    count.ended += 1


@inner
def _start(world: Block, job: int, now: float) -> None:
    """Start a job that has its resources."""
    row, count = world.jobs[job], world.count
    row.start, row.finish, row.state = now, now + row.run, RUNS
    count.free -= row.size
    add_running(world, job, row.finish, now + row.wall)
    remove(world, row.rank)
    count.waiting -= 1
    world.log[count.logged] = job
    count.logged += 1


@inner
def _start_chosen(world: Block, chosen_count: int, now: float) -> None:
    for i in range(chosen_count):
        take(world, world.jobs[world.chosen[i]].size, world.chosen[i])
        _start(world, world.chosen[i], now)


@inner
def _start_on(world: Block, job: int, pieces: int, now: float) -> None:
    """Start a job on the resources that the caller has written behind those of all other jobs."""
    row, count = world.jobs[job], world.count
    row.piece0, row.pieces = count.pieces, pieces
    for i in range(count.pieces, count.pieces + pieces):
        take_out(world.free, world.pieces[i].first, world.pieces[i].last)
    count.pieces += pieces
    _start(world, job, now)


@inner
def _some_fits(world: Block) -> bool:
    """Return whether a waiting job fits what is free, by the top level of the tree."""
    least, levels, smallest = world.least, world.levels, NO_JOB
    for cell in range(levels[len(levels) - 2], levels[len(levels) - 1]):
        smallest = min(smallest, least[cell].size)
    return smallest <= world.count.free


# --- the steps of the loop ---
@inlined
def _goes_on(world: Block) -> int:
    return GOES_ON


@inlined
def _until(world: Block) -> float:
    """Return the latest time to advance to."""
    return world.times[UNTIL]


@inlined
def _end(world: Block, now: float) -> None:
    job = pop_running(world)
    _log_end(world, job)
    release_followers(world, job, ended_well(world, job))


@inlined
def _submit(world: Block, job: int, now: float, alone: bool) -> bool:
    row, count = world.jobs[job], world.count
    if row.size > count.machine:
        row.state = REJECTED
        return False
    row.rank = count.ranks
    world.ranked[row.rank] = job
    count.ranks += 1
    insert(world, row.rank, row.size, row.wall)
    count.waiting += 1
    return True


@inlined
def _decide(world: Block, now: float, changed: bool) -> None:
    """Leave the pass to the caller."""
    world.times[NOW] = now


_run = replay_loop(_goes_on, _end, _submit, _decide, planned=_until)


@inner
def _advance(world: Block, until: float) -> int:
    """Process the next instant at which the policy is called, or let time pass until then, if that is before.

    Return whether there is any event, now or later. `count.instants` counts the instants that are left out.
    """
    count = world.count
    while count.running > 0 or not are_all_submitted(world):
        _run(world, 1)
        if world.times[NOW] == until or world.asked[SKIPS] == 0 or _some_fits(world):
            count.instants -= 1
            return 1
    return 0


@inner
def _reject(world: Block, job: int) -> None:
    world.jobs[job].state = REJECTED
    remove(world, world.jobs[job].rank)
    world.count.waiting -= 1


@inner
def _kill(world: Block, killed: int, now: float) -> None:
    """End a running job; the heap is built again without it."""
    count, size = world.count, 0
    remove_latest_end(world, killed)
    for i in range(count.running):
        time, job = world.heap_time[i], world.heap_job[i]
        if job != killed:
            push(world.heap_time, world.heap_job, None, size, time, job)
            size += 1
    count.running = size
    world.jobs[killed].finish = now
    _log_end(world, killed)
    release_followers(world, killed, False)


@inner
def _choose(world: Block, chosen_count: int, old: int, new: int) -> int:
    """Change the state of the first `chosen_count` chosen jobs that are in the old one; return their resources."""
    size = 0
    for i in range(chosen_count):
        job = world.chosen[i]
        if 0 <= job < world.count.total and world.jobs[job].state == old:
            world.jobs[job].state = new
            size += world.jobs[job].size
    return size


@inner
def _reserve(world: Block, head: int, chosen_count: int, now: float) -> None:
    """Set when the head can start at the latest if the chosen jobs start now, and what it leaves free then."""
    jobs, count, clock = world.jobs, world.count, world.clock
    count.spare, clock.reservation = count.free - jobs[head].size, now
    if count.spare >= 0:
        return
    for i in range(chosen_count):
        if jobs[world.chosen[i]].state == CHOSEN:
            jobs[world.chosen[i]].start = now
            add_latest_end(world, world.chosen[i], now + jobs[world.chosen[i]].wall)
            count.running += 1
    clock.reservation, later = earliest(world, jobs[head].size)
    count.spare = later - jobs[head].size
    for i in range(chosen_count):
        if jobs[world.chosen[i]].state == CHOSEN:
            remove_latest_end(world, world.chosen[i])
            count.running -= 1


@inlined
def _candidate(world: Block, head: int, rank: int, now: float) -> int:
    if world.count.free <= 0:
        return -1
    return search(world, rank, world.count.free, world.count.spare, now, world.clock.reservation, never_refused)


@inlined
def _choose_behind(world: Block, head: int, rank: int, now: float) -> None:
    """Choose a job that delays no reservation, if it is neither the head nor chosen already."""
    job, count = world.ranked[rank], world.count
    row = world.jobs[job]
    if job == head or row.state == CHOSEN:
        return
    count.free -= row.size
    if now + row.wall > world.clock.reservation:
        count.spare -= row.size
    world.chosen[world.asked[MANY]] = job
    world.asked[MANY] += 1


#: Choose all jobs, in their order, that fit now and do not delay the reservation; the context is the head, -1: no job
#: has a reservation.
_backfill = behind_by_rank(_candidate, _choose_behind)


@inner
def _what_if(world: Block, question: int, head: int, chosen_count: int, now: float) -> int:
    """Answer a question as if the chosen jobs started now. Return how many are chosen then."""
    count, free = world.count, world.count.free
    if head >= count.total or (head >= 0 and world.jobs[head].state != WAITS):
        return chosen_count  # it does not wait
    count.free -= _choose(world, chosen_count, WAITS, CHOSEN)
    if math.isnan(world.clock.reservation):
        _reserve(world, head, chosen_count, now)
    if question == BACKFILL:
        _backfill(world, head, 0, now)
    _choose(world, chosen_count, CHOSEN, WAITS)
    count.free = free
    return int(world.asked[MANY])


@inner
def _carry_out(world: Block, question: int, job: int, number: int, now: float) -> int:
    """Carry out a request; return what its answer is, see `tables`."""
    times = world.times
    if question == ADVANCE:
        _start_chosen(world, number, now)
        return _advance(world, times[UNTIL])
    if question == START:
        _start_chosen(world, number, now)
    elif question == START_ON:
        _start_on(world, job, number, now)
    elif question == REJECT:
        _reject(world, job)
    elif question == KILL:
        _kill(world, job, now)
    else:
        world.count.spare, world.clock.reservation = world.asked[SPARE], times[RESERVATION]
        number = _what_if(world, question, job, number, now)
        world.asked[SPARE], times[RESERVATION] = world.count.spare, world.clock.reservation
    return number


@inner
def call(world: Block) -> int:
    """Carry out the request in `asked`, and write there what the caller reads. Return the answer."""
    request, count = world.asked, world.count
    answer = _carry_out(world, request[QUESTION], request[JOB_ASKED], request[MANY], world.times[NOW])
    request[QUESTION], request[MANY] = ADVANCE, 0
    request[FREE], request[RANKS], request[LOGGED], request[ENDS] = count.free, count.ranks, count.logged, count.ended
    request[FULL] = count.pieces > len(world.pieces) - count.machine
    return answer


SIGNATURES = {"queue.stepwise": (StepwiseType(),)}
