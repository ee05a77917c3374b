"""Times before which the plan of a pass has no room for a job, known from a job before it that needs no more.

Rule: during a pass, nodes are only taken. A *bound* says that from no time before its own on, so many nodes of a
partition are free for so many minutes. It holds for each later record that needs as many nodes for as long. Such a
search would pass all times before the bound at which something becomes free, one after another, and so begins with
the last of these. It goes through all times if it would not get there by such steps.
Complexity: O(bounds + slices x words) a record.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .known_cpus import whole_cpus
from .plan import last_freed
from .reserved_nodes import is_outside_all
from .start_test import find_candidates
from .tables import AVAILABLE, CANDIDATES, NOT_AT_ALL


@inner
def first_look(world: Block, job: int, slot: int, minutes: int, now: int, is_now_only: bool) -> int:
    """Return the first time at which a job may have room in the plan: `now`, or a time at which nodes become free.

    Args:
        world: the state; `count.is_sure` becomes 1 if its search can show a bound, which is in `count.bound`, else 0.
        job: its row.
        slot: the row of its partition in `job_parts`.
        minutes: how long it would hold its nodes.
        now: the time.
        is_now_only: whether it has no reservation.
    """
    part, nodes, time = world.job_parts[slot], max(world.jobs[job].min_nodes, int64(1)), now
    world.count.bound, world.count.is_sure = now, int64(not is_now_only and _is_bound_by_others(world, job, slot))
    if world.count.is_sure == 0:
        return now
    for place in range(world.count.bounds):
        bound = world.bounds[place]
        if bound.nodes <= nodes and bound.minutes <= minutes and bound.part == part:
            time = max(time, int64(bound.time))
    if time == now:
        return now
    find_candidates(world, job, part, world.scratch[AVAILABLE])
    return last_freed(world, world.scratch[CANDIDATES], now, time, 60 * minutes)


@inner
def _is_bound_by_others(world: Block, job: int, slot: int) -> bool:
    """Return whether bounds hold for a job: it takes whole nodes, and its CPUs do not depend on the times tried."""
    row, part = world.jobs[job], world.job_parts[slot]
    if row.exclusive == 0 and world.partitions[part].exclusive == 0:
        return False
    if world.rules.preempts != NOT_AT_ALL or row.required >= 0 or not is_outside_all(world, job):
        return False
    least = max(world.part_least_nodes[slot], row.min_nodes, int64(1))
    return bool(0 < row.counted_cpus == whole_cpus(world, job, part, least))


@inner
def note_bound(world: Block, job: int, slot: int, minutes: int, now: int) -> None:
    """Note the bound that a search has shown, if it is later than now, in the place of one that says less.

    Args:
        world: the state.
        job: whose search it was; if it may use only some nodes of its partition, the bound says nothing of others.
        slot: the row of its partition in `job_parts`.
        minutes: how long it would hold its nodes.
        now: the time.
    """
    count, time = world.count, int64(world.count.bound)
    if time <= now or world.jobs[job].allowed >= 0:
        return
    part, nodes = world.job_parts[slot], max(world.jobs[job].min_nodes, int64(1))
    place = count.bounds
    for other in range(count.bounds):
        bound = world.bounds[other]
        if bound.part != part:
            continue
        if bound.nodes <= nodes and bound.minutes <= minutes and bound.time >= time:
            return
        if nodes <= bound.nodes and minutes <= bound.minutes and time >= bound.time:
            place = other
            break
    if place == len(world.bounds):
        return
    if place == count.bounds:
        count.bounds += 1
    bound = world.bounds[place]
    bound.part, bound.nodes, bound.minutes, bound.time = part, nodes, minutes, time
