"""Places in the queue that jobs exchange during a pass, because something else than Slurm orders them.

Rule: jobs that were handed over exchange places among those of their group alone, so that every other job keeps its
place, and the group its places. A job takes part while it could start and is not held for longer than `rules.hold`
seconds after its submission; a requeued job does not. Outside a pass the queue has Slurm's own order.
Complexity: O(records) a pass, O(turns) a new job; nothing where no job was handed over.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
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
def _takes_part(world: Block, job: int, slot: int, now: int) -> bool:
    row = world.jobs[job]
    if world.part_turn[slot] < 0 or row.state != PENDING or row.begin_at > now or row.restarts > 0:
        return False
    return bool(now < row.submit + world.rules.hold)


@inner
def exchange_places(world: Block, now: int) -> None:
    """Give the places of each group to its jobs in their own order, and keep Slurm's order."""
    count, records, before, turns, next_turn = (
        world.count, world.records, world.merged, world.turns, world.next_turn,
    )  # fmt: skip
    if count.turns == 0:
        return
    for group in range(len(next_turn)):
        next_turn[group] = count.turns
    for i in range(count.turns - 1, -1, -1):
        next_turn[world.turn_records[turns[i]].group] = i
    for k in range(count.records):
        job, slot = records[k].job, records[k].slot
        before[k].job, before[k].slot = job, slot
        if not _takes_part(world, job, slot, now):
            continue
        group = world.turn_records[world.part_turn[slot]].group
        i = next_turn[group]
        while i < count.turns - 1 and not _takes_part(
            world, world.turn_records[turns[i]].job, world.turn_records[turns[i]].slot, now
        ):
            i += 1
        records[k].job, records[k].slot = world.turn_records[turns[i]].job, world.turn_records[turns[i]].slot
        next_turn[group] = i + 1


@inner
def restore_places(world: Block) -> None:
    """Bring Slurm's order back after a pass; where the pass may have requeued jobs, the next one sorts them."""
    if world.count.turns == 0:
        return
    if world.rules.preempts != NOT_AT_ALL:
        world.count.stale = 1
        return
    records, before = world.records, world.merged
    for k in range(world.count.records):
        records[k].job, records[k].slot = before[k].job, before[k].slot
