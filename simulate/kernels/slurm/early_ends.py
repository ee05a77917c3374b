"""Running jobs that end before they would: nodes fail, limits are used up, and other jobs preempt them.

Rule: a victim with a grace time may end by itself in it; else the first check of time limits after it ends the job.
Complexity: O(running) a job.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .job_limits import is_out_of_minutes
from .job_states import end, finish_at, first_end, note_change, suspend
from .running_order import end_until, running_jobs
from .tables import BY_TIER, IS_CANCELLED, IS_REQUEUED, IS_SUSPENDED
from .victims import fate_of


@inner
def kill(world: Block, job: int, time: float, fate: int) -> None:
    """Let a running job end at a time before its end; what is to be requeued is cancelled if it may not."""
    row = world.jobs[job]
    if row.finish > time:
        row.fate = IS_CANCELLED if row.requeued == 0 else fate
        finish_at(world, job, time)


@inner
def fail_node(world: Block, node: int) -> None:
    """Kill the jobs that run on a node; they are requeued (NODE_FAIL)."""
    running = running_jobs(world)
    for k in range(world.count.running):
        row = world.jobs[running[k]]
        for place in range(row.piece0, row.piece0 + row.pieces):
            if world.pieces[place].node == node:
                kill(world, running[k], world.clock.now, int64(IS_REQUEUED))


@inner
def kill_out_of_minutes(world: Block, now: int) -> None:
    """Kill the jobs whose groups have used up their minutes, at the next check of time limits."""
    running = running_jobs(world)
    for k in range(world.count.running):
        if is_out_of_minutes(world, running[k]):
            kill(world, running[k], _next_check(world, now), int64(IS_CANCELLED))


@inner
def _next_check(world: Block, time: int) -> float:
    """Return when time limits are checked next, at a time or after it."""
    return time + (world.count.limit_phase - time) % 30.0


@inner
def preempt(world: Block, job: int, victims: int, now: int) -> bool:
    """Let a job preempt the first `victims` of `victims`, unless those of its last test may still be ending.

    Returns:
        Whether all are suspended, so that the job starts at once.
    """
    row, suspends = world.jobs[job], True
    for place in range(victims):
        suspends = suspends and fate_of(world, world.victims[place]) == IS_SUSPENDED
    if suspends:
        for place in range(victims):
            suspend(world, world.victims[place], now)
        return True
    if row.preempted_at > 0 and now < row.preempted_at + world.rules.preempt_pause:
        return False
    row.preempted_at, row.preempted_pass = now, world.count.passes
    for place in range(victims):
        if fate_of(world, world.victims[place]) == IS_SUSPENDED:
            suspend(world, world.victims[place], now)
        else:
            _yield(world, world.victims[place], now)
    return False


@inner
def _yield(world: Block, job: int, now: int) -> None:
    """End a job that is preempted: at once, or after its grace time."""
    row = world.jobs[job]
    if row.yields == 1:
        return
    row.yields = 1
    grace = world.partitions[row.part].grace if world.rules.preempts == BY_TIER else world.qos[row.qos].grace
    if grace > 0:
        end_until(world, job, min(now + grace, row.until))
        kill(world, job, _next_check(world, row.until), fate_of(world, job))
        note_change(world, now)
    else:
        kill(world, job, -1.0, fate_of(world, job))
        end(world, first_end(world), now)
