"""One step of many copies of a world in which a policy orders the queue of EASY backfilling.

Rule: at each instant all ends are processed, then all submissions, then one pass. The first jobs of the queue start
while they fit; the first that does not (the head) has a reservation; others start behind it if they fit now and do not
delay it, until none can. Which job is next is the choice of the policy, or of a rule. A choice that cannot change any
start is not asked for. At the end of an episode the copy begins the next one in the same step.
Complexity: a step of a copy costs O(queue + running jobs) for each instant that it passes.
"""

from __future__ import annotations

import math

from numba import types

from ...arrays import Row
from ..compile import register
from ..heap import push, remove_first
from ..jit import inner
from .tables import AGAIN, BSLD, FILL, INSPECT, JOB_COLUMNS, MACHINE_COLUMNS, ORDER, STEP, OrderCopies

#: What is seen is at most this, and "no" is the distance from it to 1.
_MOST = 1.0 - 1e-5
_LEAST = 1e-5
#: Slowdowns are bounded for run times below, seconds.
_TAU_S = 10.0
#: Waiting jobs that are seen as 1, logarithmic.
_MANY = 1000.0

OrdersType = register(OrderCopies, __name__)


@inner
def call(world: OrderCopies, how: int) -> int:
    """Carry out the action of each copy, or begin an episode.

    Args:
        world: the copies.
        how: STEP, RESET or AGAIN.

    Returns:
        0; or 1 + the first copy whose action the mask forbids, and nothing has changed.
    """
    copies, width = len(world.copies), world.mask.shape[1]
    if how == STEP:
        for copy in range(copies):
            action = world.action[copy]
            if action < 0 or action >= width or world.mask[copy, action] == 0:
                return copy + 1
    for copy in range(copies):
        if how == AGAIN and world.idle[copy] == 0:
            continue
        if how != AGAIN:
            world.reward[copy], world.done[copy] = 0.0, 0
        if how == STEP:
            _take(world, copy, world.action[copy])
            goes_on = _advance(world, copy)
            world.reward[copy], world.copies[copy].owed = world.copies[copy].owed, 0.0
            if not goes_on:
                _end(world, copy)
                _begin(world, copy)
        else:
            _begin(world, copy)
        _observe(world, copy)
    return 0


@inner
def _begin(world: OrderCopies, copy: int) -> None:
    """Begin the upcoming episode on an empty machine, and go on to its first decision."""
    row = world.copies[copy]
    row.begin = world.upcoming[copy]
    row.time = world.jobs[row.begin].submit
    row.next, row.queued, row.running, row.passes = 0, 0, 0, 0
    row.free, row.head, row.chosen = world.settings.processors, -1, -1
    row.held, row.wake, row.total, row.owed = -1, math.inf, 0.0, 0.0
    for user in range(world.last_run.shape[1]):
        world.last_run[copy, user] = math.nan
    world.idle[copy] = 0 if _advance(world, copy) else 1


@inner
def _end(world: OrderCopies, copy: int) -> None:
    """Keep what the end of an episode looks like."""
    world.done[copy] = 1
    world.last_total[copy] = world.copies[copy].total
    _observe_machine(world, copy)
    for cell in range(MACHINE_COLUMNS):
        world.last_machine[copy, cell] = world.seen_machine[copy, cell]


@inner
def _take(world: OrderCopies, copy: int, action: int) -> None:
    """Carry out an action that is allowed."""
    row = world.copies[copy]
    if action == world.settings.rows:
        row.passes, row.held, row.wake = 0, world.queue[copy, row.chosen], row.time + world.settings.pause
    else:
        _try(world, copy, _place_of(world, copy, action))
    row.chosen = -1


@inner
def _place_of(world: OrderCopies, copy: int, shown: int) -> int:
    """Return the place in the queue of a job that is shown."""
    at = -1
    while shown >= 0:
        at += 1
        if _is_shown(world, copy, at):
            shown -= 1
    return at


@inner
def _is_shown(world: OrderCopies, copy: int, at: int) -> bool:
    """Return whether the policy sees the job at a place of the queue, if there are rows for it."""
    if world.copies[copy].chosen >= 0:
        return world.copies[copy].chosen == at
    return world.settings.decides != FILL or _may_start(world, copy, at)


@inner
def _try(world: OrderCopies, copy: int, at: int) -> None:
    """Start the job at a place of the queue, or reserve for it if it is the first that does not fit."""
    row = world.copies[copy]
    if row.head >= 0 or _job(world, copy, at).size <= row.free:
        _start(world, copy, at)
    else:
        _reserve(world, copy, at)


@inner
def _start(world: OrderCopies, copy: int, at: int) -> None:
    """Start the job at a place of the queue, and pay for it."""
    row, job = world.copies[copy], world.queue[copy, at]
    started = world.jobs[row.begin + job]
    row.queued -= 1
    for i in range(at, row.queued):
        world.queue[copy, i] = world.queue[copy, i + 1]
    row.free -= started.size
    if row.head >= 0 and row.time + started.wall > row.reservation:
        row.spare -= started.size
    world.starts[copy, job] = row.time
    push(world.heap_time[copy], world.heap_job[copy], None, row.running, row.time + started.run, job)
    until, i = row.time + started.wall, row.running
    while i > 0 and world.end_time[copy, i - 1] > until:
        world.end_time[copy, i], world.end_job[copy, i] = world.end_time[copy, i - 1], world.end_job[copy, i - 1]
        i -= 1
    world.end_time[copy, i], world.end_job[copy, i] = until, job
    row.running += 1
    if job >= world.settings.warm:
        cost = row.time - started.submit
        if world.settings.objective == BSLD:
            cost = max((cost + started.run) / max(started.run, _TAU_S), 1.0)
        cost /= world.settings.episode - world.settings.warm
        row.owed -= cost
        row.total -= cost


@inner
def _reserve(world: OrderCopies, copy: int, at: int) -> None:
    """Reserve for the job at a place of the queue: the first time at which it fits if all run to their limits."""
    row = world.copies[copy]
    row.head = world.queue[copy, at]
    size, free, i = _job(world, copy, at).size, row.free, 0
    while free < size:
        free += world.jobs[row.begin + world.end_job[copy, i]].size
        i += 1
    row.reservation = world.end_time[copy, i - 1]
    while i < row.running and world.end_time[copy, i] == row.reservation:
        free += world.jobs[row.begin + world.end_job[copy, i]].size
        i += 1
    row.spare = free - size
    world.promise[copy, row.head] = min(world.promise[copy, row.head], row.reservation)


@inner
def _advance(world: OrderCopies, copy: int) -> bool:
    """Move the clock to the next decision; return whether there is one in this episode."""
    row, jobs = world.copies[copy], world.settings.episode
    while True:
        if row.passes == 1:
            if _is_due(world, copy):
                return True
            row.passes, row.head = 0, -1
        if row.queued == 0 and row.next == jobs:
            return False
        later = world.jobs[row.begin + row.next].submit if row.next < jobs else math.inf
        if row.running > 0:
            later = min(later, world.heap_time[copy, 0])
        later = min(later, row.wake)
        if row.held >= 0:
            world.waited[copy, row.held] += later - row.time
        row.time, row.wake, row.held = later, math.inf, -1
        while row.running > 0 and world.heap_time[copy, 0] <= row.time:
            _finish(world, copy)
        while row.next < jobs and world.jobs[row.begin + row.next].submit <= row.time:
            _submit(world, copy)
        row.passes, row.head = 1, -1


@inner
def _finish(world: OrderCopies, copy: int) -> None:
    """End the job that ends first."""
    row, job = world.copies[copy], world.heap_job[copy, 0]
    row.running -= 1
    remove_first(world.heap_time[copy], world.heap_job[copy], None, row.running)
    ended, i = world.jobs[row.begin + job], 0
    while world.end_job[copy, i] != job:
        i += 1
    for k in range(i, row.running):
        world.end_time[copy, k], world.end_job[copy, k] = world.end_time[copy, k + 1], world.end_job[copy, k + 1]
    row.free += ended.size
    if ended.user >= 0:
        last = world.last_run[copy, ended.user]
        world.run_before[copy, ended.user] = ended.run if math.isnan(last) else last
        world.last_run[copy, ended.user] = ended.run


@inner
def _submit(world: OrderCopies, copy: int) -> None:
    """Put the next job into the queue."""
    row = world.copies[copy]
    job, came = row.next, world.jobs[row.begin + row.next]
    expected = came.wall
    if came.user >= 0 and not math.isnan(world.last_run[copy, came.user]):
        expected = min(0.5 * (world.last_run[copy, came.user] + world.run_before[copy, came.user]), came.wall)
    world.expected[copy, job], world.promise[copy, job], world.waited[copy, job] = expected, math.inf, 0.0
    world.queue[copy, row.queued] = job
    row.queued += 1
    row.next += 1


@inner
def _is_due(world: OrderCopies, copy: int) -> bool:
    """Go on with a pass to its next decision; return whether there is one."""
    row, decides = world.copies[copy], world.settings.decides
    while row.head < 0:
        if decides == ORDER:
            return _may_any_start(world, copy)
        first = _first_of(world, copy)
        if first < 0:
            return False
        if decides == INSPECT and _job(world, copy, first).size <= row.free and _may_wait(world, copy, first):
            row.chosen = first
            return True
        _try(world, copy, first)
    if decides != INSPECT:
        return _may_any_start(world, copy)
    first = _first_of(world, copy)
    while first >= 0:
        _start(world, copy, first)
        first = _first_of(world, copy)
    return False


@inner
def _may_wait(world: OrderCopies, copy: int, at: int) -> bool:
    """Return whether the policy may let a job wait that could start: not past a promise, nor for long in all."""
    row, job, pause = world.copies[copy], world.queue[copy, at], world.settings.pause
    return row.time + pause <= world.promise[copy, job] and world.waited[copy, job] + pause <= world.settings.patience


@inner
def _may_any_start(world: OrderCopies, copy: int) -> bool:
    """Return whether a job that the policy sees may start now."""
    queued = world.copies[copy].queued
    for at in range(queued if world.settings.decides == FILL else min(queued, world.settings.rows)):
        if _may_start(world, copy, at):
            return True
    return False


@inner
def _may_start(world: OrderCopies, copy: int, at: int) -> bool:
    """Return whether the job at a place of the queue fits now, and delays no reservation."""
    row, job = world.copies[copy], _job(world, copy, at)
    if job.size > row.free or row.head == world.queue[copy, at]:
        return False
    return row.head < 0 or row.time + job.wall <= row.reservation or job.size <= row.spare


@inner
def _first_of(world: OrderCopies, copy: int) -> int:
    """Return the place of the waiting job that the rule has first, behind a reservation of those that may start."""
    row, first = world.copies[copy], -1
    for at in range(row.queued):
        if row.head >= 0 and not _may_start(world, copy, at):
            continue
        if first < 0 or _job(world, copy, at).key < _job(world, copy, first).key:
            first = at
    return first


@inner
def _job(world: OrderCopies, copy: int, at: int) -> Row:
    """Return the row of the job at a place of the queue."""
    return world.jobs[world.copies[copy].begin + world.queue[copy, at]]


@inner
def _seen_time(world: OrderCopies, seconds: float) -> float:
    return min(math.log1p(max(seconds, 0.0)) / math.log1p(world.settings.longest), _MOST)


@inner
def _observe(world: OrderCopies, copy: int) -> None:
    """Write what a policy sees, and the mask."""
    row, rows, shown = world.copies[copy], world.settings.rows, 0
    for at in range(row.queued):
        if shown == rows or not _is_shown(world, copy, at):
            continue
        cell = shown * JOB_COLUMNS
        job, may_start = _job(world, copy, at), _may_start(world, copy, at)
        world.seen_jobs[copy, cell] = _seen_time(world, row.time - job.submit)
        world.seen_jobs[copy, cell + 1] = job.long
        world.seen_jobs[copy, cell + 2] = _seen_time(world, world.expected[copy, world.queue[copy, at]])
        world.seen_jobs[copy, cell + 3] = job.wide
        world.seen_jobs[copy, cell + 4] = _MOST if job.size <= row.free else _LEAST
        world.seen_jobs[copy, cell + 5] = _MOST if may_start else _LEAST
        asks_all = world.settings.decides == ORDER and row.head < 0
        world.mask[copy, shown] = 1 if asks_all or may_start else 0
        shown += 1
    for i in range(shown, row.shown):
        cell = i * JOB_COLUMNS
        for column in range(JOB_COLUMNS):
            world.seen_jobs[copy, cell + column] = 0.0
        world.mask[copy, i] = 0
    row.shown = shown
    world.mask[copy, rows] = 1 if row.chosen >= 0 else 0
    _observe_machine(world, copy)


@inner
def _observe_machine(world: OrderCopies, copy: int) -> None:
    row, columns, processors = world.copies[copy], world.seen_machine[copy], world.settings.processors
    stands = row.head >= 0
    columns[0] = min(row.free / processors, _MOST)
    columns[1] = min(math.log1p(row.queued) / math.log1p(_MANY), _MOST)
    columns[2] = _MOST if stands else _LEAST
    columns[3] = _seen_time(world, row.reservation - row.time) if stands else 0.0
    columns[4] = min(max(row.spare, 0) / processors, _MOST) if stands else 0.0
    columns[5] = 0.0
    if row.chosen >= 0:
        columns[5] = min(world.waited[copy, world.queue[copy, row.chosen]] / world.settings.patience, _MOST)


SIGNATURES = {"orders.choices": (OrdersType(), types.int64)}
