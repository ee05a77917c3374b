"""Replay with contention under a pair of rules: one for the next job, one for its resources or its node.

Rule: at each instant all ends are processed, then all submissions, then one pass, which starts the rule's next job
until one does not fit. Complexity: O(cores of its processor + log processors) per start and end of a task, O(log queue)
per job.
"""

from __future__ import annotations

import math

from numba import types

from ...compile import register
from ...jit import inner
from ..dependencies import are_all_submitted, assign_rank, release_followers
from ..replay_loop import replay_loop
from ..tables import DONE, ENDED, GOES_ON, REJECTED
from .placement import choose, give_back, place, place_again, push, remove
from .tables import DECIDE, IDLE_CORE, REPLAY, STEP, Contended
from .task_rates import account, rate

ContendedType = register(Contended, __name__)


@inner
def _end(world: Contended, now: float) -> None:
    """End the tasks of a processor that end now, and the jobs whose last task ends."""
    p = world.next_end[0]
    account(world, p, now)
    processor, cores, jobs = world.processors[p], world.cores, world.jobs
    node = world.nodes[processor.node]
    common = processor.share + node.share
    for i in range(processor.first, processor.last):
        core = cores[i]
        if core.job < 0 or core.end != now:
            continue
        row = jobs[core.job]
        if core.since + core.left / core.rate > core.until:
            row.overran = 1
        row.joules += processor.per_core * (now - row.start) + (common - core.common)
        world.tasks[core.task].end = now
        processor.running -= 1
        node.running -= 1
        job, core.job = core.job, IDLE_CORE
        row.left -= 1
        if row.left == 0:
            row.finish, row.state = now, ENDED
            give_back(world, job)
            release_followers(world, job, row.overran == 0)
    rate(world, p, now)


@inner
def _submit(world: Contended, job: int, now: float, alone: bool) -> bool:
    assign_rank(world, job)
    if world.jobs[job].state != REJECTED:
        push(world, world.jobs[job].rank)
    return True


@inner
def start_jobs(world: Contended, now: float) -> None:
    """Start the rule's next job until one does not fit."""
    while world.count.waiting > 0:
        at = choose(world)
        job = world.ranked[world.queue[at]]
        if world.jobs[job].size > world.count.free - world.count.blocked or not place(world, job, now):
            return
        remove(world, at)


replay, instant = replay_loop(
    inner(lambda world: DONE if are_all_submitted(world) and world.ends[0] == math.inf else GOES_ON),
    _end,
    _submit,
    inner(lambda world, now, changed, submitted: start_jobs(world, now)),
    next_end=inner(lambda world, before: world.ends[0]),
)


@inner
def call(world: Contended, question: int, number: int, now: float) -> int:
    """Do one operation.

    REPLAY: run the replay for `number` instants, and return DONE or PAUSED. For decisions that take time and for
    predicted run times: STEP: process the ends and submissions of `now`. DECIDE: start the rule's jobs. START: start
    the job in row `number`, see `place_again`.
    """
    if question == REPLAY:
        return replay(world, number)
    if question == STEP:
        instant(world, now)
    elif question == DECIDE:
        start_jobs(world, now)
    else:
        place_again(world, number, now)
    return 0


SIGNATURES = {"queue.contention.pairs_loop": (ContendedType(), types.int64, types.int64, types.float64)}
