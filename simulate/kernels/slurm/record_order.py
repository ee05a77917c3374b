"""The order of the queue (`sort_job_queue2`).

Rule: a job that can preempt another comes first, then jobs in a reservation, then by the tier of the partition, the
priority in it, submission, and id. The order is kept: a new job is inserted, and new priorities sort it once.
Complexity: O(log waiting) comparisons to insert; O(n log n) after priorities were calculated.
"""

from __future__ import annotations

from ...arrays import Array, Row
from ..block import Block, int64
from ..jit import inner
from .held_order import add_turn, drop_old_turns
from .tables import HELD, NOT_AT_ALL, PENDING
from .victims import record_outranks

#: Jobs in a reservation stand before those of any tier.
_RESERVED = int64(1) << 62


@inner
def comes_before(world: Block, job: int, slot: int, other: int, other_slot: int) -> bool:
    """Return whether a record stands before another one."""
    row, rival = world.jobs[job], world.jobs[other]
    if world.rules.preempts != NOT_AT_ALL:
        if record_outranks(world, job, slot, other, other_slot):
            return True
        if record_outranks(world, other, other_slot, job, slot):
            return False
    if (row.reservation >= 0) != (rival.reservation >= 0):
        return row.reservation >= 0
    tier = world.partitions[world.job_parts[slot]].tier
    other_tier = world.partitions[world.job_parts[other_slot]].tier
    if tier != other_tier:
        return tier > other_tier
    priority, other_priority = int64(world.part_priority[slot]), int64(world.part_priority[other_slot])
    if priority != other_priority:
        return priority > other_priority
    if row.submit != rival.submit:
        return row.submit < rival.submit
    if job != other:
        return job < other
    return slot < other_slot


@inner
def add_records(world: Block, job: int) -> None:
    """Insert the records of a new job."""
    row, count, records = world.jobs[job], world.count, world.records
    for slot in range(row.part0, row.part0 + row.parts):
        if count.records >= len(records):
            drop_old_records(world)
        place = _place_for(world, job, slot)
        for i in range(count.records, place, -1):
            records[i].job, records[i].slot = records[i - 1].job, records[i - 1].slot
        records[place].job, records[place].slot = job, slot
        count.records += 1
        add_turn(world, slot)


@inner
def _place_for(world: Block, job: int, slot: int) -> int:
    """Return where a new record belongs; before records are sorted, any place will do.

    From the end where the order is none of numbers: with preemption, and where a job that started in a reservation
    still has its record.
    """
    records, low, high = world.records, int64(0), int64(world.count.records)
    is_from_end = world.rules.preempts != NOT_AT_ALL or len(world.magnets) > 0
    while low < high:
        middle = high - 1 if is_from_end else (low + high) // 2
        if comes_before(world, job, slot, records[middle].job, records[middle].slot):
            high = middle
        else:
            low = middle + 1
    return low


@inner
def drop_old_records(world: Block) -> None:
    """Remove the records of jobs that no longer wait."""
    number, records = int64(0), world.records
    for i in range(world.count.records):
        state = world.jobs[records[i].job].state
        if state == PENDING or state == HELD:
            records[number].job, records[number].slot = records[i].job, records[i].slot
            number += 1
    world.count.records = number
    drop_old_turns(world)


@inner
def sort_records(world: Block) -> None:
    """Bring the records into order after priorities have changed: a merge sort; parts that are in order stay."""
    drop_old_records(world)
    _note_order(world)
    number, width, is_merged = world.count.records, int64(1), False
    while width < number:
        for low in range(0, number, 2 * width):
            middle, high = min(low + width, number), min(low + 2 * width, number)
            if is_merged:
                _merge(world, world.merged, world.records, low, middle, high)
            else:
                _merge(world, world.records, world.merged, low, middle, high)
        is_merged = not is_merged
        width *= 2
    for place in range(number if is_merged else int64(0)):
        _copy_record(world.records[place], world.merged[place])
    world.count.stale = 0


@inner
def _note_order(world: Block) -> None:
    """Note the numbers by which records are in order; with preemption, they are all equal."""
    for place in range(world.count.records):
        record = world.records[place]
        record.rank, record.priority, record.submit = 0, 0, 0
        if world.rules.preempts == NOT_AT_ALL:
            row = world.jobs[record.job]
            record.rank = -int64(world.partitions[world.job_parts[record.slot]].tier)
            if row.reservation >= 0:
                record.rank -= _RESERVED
            record.priority, record.submit = int64(world.part_priority[record.slot]), row.submit


@inner
def _merge(world: Block, records: Array, merged: Array, low: int, middle: int, high: int) -> None:
    """Merge two sorted parts of a table, [low, middle) and [middle, high), into another one."""
    first, right = low, middle
    is_sorted = middle >= high or not _precedes(world, records[middle], records[middle - 1])
    for place in range(low, high):
        if first < middle and (is_sorted or right >= high or not _precedes(world, records[right], records[first])):
            _copy_record(merged[place], records[first])
            first += 1
        else:
            _copy_record(merged[place], records[right])
            right += 1


@inner
def _precedes(world: Block, record: Row, other: Row) -> bool:
    """Return whether a record stands before another one; only of two with equal numbers, all rules are asked."""
    if record.rank != other.rank:
        return bool(record.rank < other.rank)
    if record.priority != other.priority:
        return bool(record.priority > other.priority)
    if record.submit != other.submit:
        return bool(record.submit < other.submit)
    return comes_before(world, int64(record.job), int64(record.slot), int64(other.job), int64(other.slot))


@inner
def _copy_record(new: Row, old: Row) -> None:
    new.rank, new.priority, new.submit, new.job, new.slot = old.rank, old.priority, old.submit, old.job, old.slot
