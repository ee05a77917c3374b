"""Jobs that were handed over: while they are held, something else than Slurm orders them.

Rule: a held job has no place in Slurm's queue. It stands behind all jobs that are not held, and those of a group are in
an order of their own. While any job that is not held waits in its partition after a pass, it is released: it then waits
in Slurm's order, and its age begins. A hold also ends at `held_until`, and when a job is requeued. Outside a pass the
queue has Slurm's own order.
Complexity: O(records) a pass, O(turns) a new job; nothing where no job was handed over.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .job_limits import is_allowed_in_partition
from .tables import HELD, NOT_AT_ALL, PENDING


@inner
def add_turn(world: Block, slot: int) -> None:
    """Note that a record is in the queue, if its job was handed over."""
    if len(world.part_turn) == 0 or world.part_turn[slot] < 0:
        return
    turn, turns, place = world.part_turn[slot], world.turns, int64(world.count.turns)
    while place > 0 and turns[place - 1] > turn:
        turns[place] = turns[place - 1]
        place -= 1
    turns[place] = turn
    world.count.turns += 1


@inner
def drop_old_turns(world: Block) -> None:
    """Remove the turns of jobs that no longer wait."""
    number, turns = int64(0), world.turns
    for i in range(world.count.turns):
        state = world.jobs[world.turn_records[turns[i]].job].state
        if state == PENDING or state == HELD:
            turns[number] = turns[i]
            number += 1
    world.count.turns = number


@inner
def _is_ordered(world: Block, job: int, now: int) -> bool:
    row = world.jobs[job]
    return bool(now < row.held_until and row.state == PENDING and row.begin_at <= now and row.restarts == 0)


@inner
def _could_start(world: Block, job: int, slot: int, now: int) -> bool:
    """Return whether the job of a record is not held, and waits for nodes alone."""
    row = world.jobs[job]
    if row.state != PENDING or row.begin_at > now or row.unmet > 0 or row.reservation >= 0 or row.limited == 1:
        return False
    return bool(not _is_ordered(world, job, now) and is_allowed_in_partition(world, job, world.job_parts[slot]))


@inner
def order_held(world: Block, now: int) -> None:
    """Put held jobs behind the others, each group in its own order, and keep Slurm's order."""
    count, records, before, turns, next_turn = (
        world.count, world.records, world.merged, world.turns, world.next_turn,
    )  # fmt: skip
    if count.turns == 0:
        return
    for group in range(len(next_turn)):
        next_turn[group] = count.turns
    for i in range(count.turns - 1, -1, -1):
        next_turn[world.turn_records[turns[i]].group] = i
    number = int64(0)
    for k in range(count.records):
        job, slot = records[k].job, records[k].slot
        before[k].job, before[k].slot = job, slot
        if not _is_ordered(world, job, now):
            records[number].job, records[number].slot = job, slot
            number += 1
    for k in range(count.records):
        if not _is_ordered(world, before[k].job, now):
            continue
        group = world.turn_records[world.part_turn[before[k].slot]].group
        i = next_turn[group]
        while i < count.turns - 1 and not _is_ordered(world, world.turn_records[turns[i]].job, now):
            i += 1
        records[number].job, records[number].slot = world.turn_records[turns[i]].job, world.turn_records[turns[i]].slot
        next_turn[group] = i + 1
        number += 1


@inner
def restore_order(world: Block, now: int) -> None:
    """Bring Slurm's order back after a pass, and release the held jobs that others would pass.

    Where the pass may have requeued jobs, the next one sorts the records.
    """
    if world.count.turns == 0:
        return
    if world.rules.preempts != NOT_AT_ALL:
        world.count.stale = 1
    else:
        records, before = world.records, world.merged
        for k in range(world.count.records):
            records[k].job, records[k].slot = before[k].job, before[k].slot
    _release_passed(world, now)


@inner
def _release_passed(world: Block, now: int) -> None:
    count, records = world.count, world.records
    for k in range(count.records):
        if _could_start(world, records[k].job, records[k].slot, now):
            world.partitions[world.job_parts[records[k].slot]].passing = count.passes
    for i in range(count.turns):
        turn = world.turn_records[world.turns[i]]
        if world.partitions[world.job_parts[turn.slot]].passing == count.passes and _is_ordered(world, turn.job, now):
            row = world.jobs[turn.job]
            row.held_until, row.accrue = 0, now
            count.wanted, count.changed = 1, now
