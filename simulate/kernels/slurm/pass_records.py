"""Questions that both passes ask of a record before they look at nodes: its array, and how many came before it."""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .accrual import begin_to_accrue
from .held_order import order_held, restore_order
from .record_order import sort_records


@inner
def begin_pass(world: Block, now: int) -> None:
    """Begin a pass, with the records in order."""
    begin_to_accrue(world, now)
    if world.count.stale == 1:
        sort_records(world)
    order_held(world, now)
    world.count.passes += 1
    world.count.in_pass = 1


@inner
def end_pass(world: Block, now: int) -> None:
    """End a pass."""
    world.count.in_pass = 0
    restore_order(world, now)


@inner
def is_task_refused(world: Block, job: int, part: int) -> bool:
    """Return whether a task of the same array was refused in this pass and partition, or too many of its tasks run."""
    array = world.jobs[job].array
    if array < 0:
        return False
    head = world.jobs[array]
    if head.refused == world.count.passes and head.refused_part == part:
        return True
    return bool(head.array_limit > 0 and head.running_tasks >= head.array_limit)


@inner
def refuse_tasks(world: Block, array: int, part: int) -> None:
    """Refuse all further tasks of an array in this pass and partition."""
    world.jobs[array].refused, world.jobs[array].refused_part = world.count.passes, part


@inner
def is_preempting(world: Block, job: int) -> bool:
    """Return whether a job has preempted others in this pass, from another of its partitions."""
    return bool(world.jobs[job].preempted_pass == world.count.passes)


@inner
def count_test(world: Block, part: int) -> int:
    """Count a record of a partition; return how many there were in this pass."""
    row = world.partitions[part]
    if row.tested_pass != world.count.passes:
        row.tested_pass, row.tested = world.count.passes, 0
    row.tested += 1
    return row.tested


@inner
def least_priority(world: Block, job: int) -> int:
    """Return the priority below which a job neither closes its partition nor has a reservation."""
    least = world.qos[world.jobs[job].qos].least_priority
    return int64(least if least > 0 else world.rules.bf_min_prio_reserve)
