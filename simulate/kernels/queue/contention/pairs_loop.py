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
from ..dependencies import assign_rank, next_submitted, release_followers
from ..running import has_dependencies
from ..tables import DONE, ENDED, PAUSED, REJECTED
from .placement import choose, give_back, place, push, remove
from .tables import IDLE_CORE, Contended
from .task_rates import account, rate

ContendedType = register(Contended, __name__)


@inner
def _end_tasks(world: Contended, p: int, now: float) -> None:
    """End the tasks of a processor that end now, and the jobs whose last task ends."""
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
            if row.overran == 0 and has_dependencies(world):
                release_followers(world, job)
    rate(world, p, now)


@inner
def _submit(world: Contended, now: float) -> None:
    jobs, some = world.jobs, has_dependencies(world)
    job = next_submitted(world, len(jobs), now, some)
    while job >= 0:
        if some:
            assign_rank(world, job)
        if jobs[job].state != REJECTED:
            push(world, jobs[job].rank)
        job = next_submitted(world, len(jobs), now, some)


@inner
def instant(world: Contended, now: float) -> None:
    """Process all ends at `now`, then all submissions."""
    world.count.instants += 1
    world.clock.now = now
    while world.ends[0] == now:
        _end_tasks(world, world.next_end[0], now)
    _submit(world, now)


@inner
def start_jobs(world: Contended, now: float) -> None:
    """Start the rule's next job until one does not fit."""
    while world.count.waiting > 0:
        at = choose(world)
        if not place(world, world.ranked[world.queue[at]], now):
            return
        remove(world, at)


@inner
def call(world: Contended, instants: int) -> int:
    """Run the replay for a number of instants. Return DONE or PAUSED."""
    jobs, count = world.jobs, world.count
    while True:
        soonest = world.ends[0]
        if count.next >= len(jobs) and soonest == math.inf:
            return DONE
        if instants == 0:
            return PAUSED
        instants -= 1
        now = min(soonest, jobs[count.next].submit) if count.next < len(jobs) else soonest
        instant(world, now)
        start_jobs(world, now)


SIGNATURES = {"queue.contention.pairs_loop": (ContendedType(), types.int64)}
