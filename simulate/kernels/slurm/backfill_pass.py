"""The backfill pass: each job that cannot start has a reservation of whole nodes (`_attempt_backfill`).

Rule: a job may start only on nodes that no reservation of a job before it has during its time limit. Every tested job
gets a reservation, and the plan is thrown away after the pass.
Complexity: O(records x (slices x words + running + candidates)).
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from ..queue.resources import popcount
from .bits import copy
from .job_limits import has_licences, is_allowed_when_shortened, is_blocked_before_nodes
from .job_states import is_eligible
from .pass_records import begin_pass, count_test, is_task_refused, refuse_tasks
from .plan import begin_plan, is_full
from .record_plan import HAS_STARTED, IS_PASSED_OVER, plan_record
from .tables import AVAILABLE, CLEAN, FREE, IDLE, TAKING


@inner
def backfill_pass(world: Block, now: int) -> int:
    """Carry out one backfill pass; return the number of jobs that it started."""
    count, rules = world.count, world.rules
    _begin(world, now)
    started, tests, last_array = int64(0), int64(0), int64(-1)
    for k in range(_records_to_plan(world, now)):
        job, slot = world.records[k].job, world.records[k].slot
        part, array = world.job_parts[slot], world.jobs[job].array
        if not is_eligible(world, job, now):
            continue
        if tests >= rules.bf_max_job_test or is_full(world):
            break
        if rules.bf_max_job_start > 0 and started >= rules.bf_max_job_start:
            break
        if rules.assoc_limit_stop == 0 and is_blocked_before_nodes(world, job, part, now):
            continue
        if is_task_refused(world, job, part):
            continue
        is_next_task = array >= 0 and array == last_array
        last_array = array
        if not is_next_task and _is_over_count(world, job, part):
            continue
        if not is_allowed_when_shortened(world, job, part) or not has_licences(world, job):
            continue
        tests += 1
        outcome = plan_record(world, job, slot, part, now)
        if outcome == HAS_STARTED:
            started += 1
        elif array >= 0:
            _count_task(world, array, part, outcome == IS_PASSED_OVER)
    count.in_pass = 0
    return started


@inner
def _records_to_plan(world: Block, now: int) -> int:
    """Return how many records the pass looks at: unless starts are forecast, none after the last that may start now.

    A record may start if as many nodes of its partition are free, and clean, as it needs; what else could stop it is
    left to the plan.
    """
    count = world.count
    if count.plans == 1 or world.rules.preempts == 1:
        return int64(count.records)
    last = int64(0)
    for part in range(len(world.partitions)):
        _count_room(world, part)
    for k in range(count.records):
        job, slot = world.records[k].job, world.records[k].slot
        part = world.job_parts[slot]
        row, limits = world.jobs[job], world.partitions[part]
        is_whole = row.exclusive == 1 or limits.exclusive == 1
        if is_eligible(world, job, now) and row.min_nodes <= (limits.idle_room if is_whole else limits.free_room):
            last = k + 1
    return last


@inner
def _count_room(world: Block, part: int) -> None:
    """Count the nodes of a partition on which a job could start now: idle ones, and those with free cores."""
    row, words, sets = world.partitions[part], world.partition_nodes[part], world.node_sets
    row.idle_room, row.free_room = 0, 0
    for word in range(len(words)):
        usable = words[word] & sets[TAKING, word] & sets[CLEAN, word]
        row.idle_room += popcount(usable & sets[IDLE, word])
        row.free_room += popcount(usable & sets[FREE, word])


@inner
def _begin(world: Block, now: int) -> None:
    """Begin a pass with an empty plan; jobs have no expected starts."""
    begin_pass(world)
    count = world.count
    count.backfill_started = now
    copy(world.scratch[AVAILABLE], world.node_sets[TAKING])
    begin_plan(world, world.scratch[AVAILABLE], now)
    for i in range(len(world.user_counts)):
        world.user_counts[i] = 0
    for i in range(count.waiting):
        world.jobs[world.waiting[i]].expected = 0


@inner
def _is_over_count(world: Block, job: int, part: int) -> bool:
    """Count a record for its user and partition; return whether that is one too many (bf_max_job_user, _part)."""
    rules, user = world.rules, world.jobs[job].user
    tested = count_test(world, part)
    if rules.bf_max_job_part > 0 and tested > rules.bf_max_job_part:
        return True
    if rules.bf_max_job_user > 0:
        world.user_counts[user] += 1
        return bool(world.user_counts[user] > rules.bf_max_job_user)
    return False


@inner
def _count_task(world: Block, array: int, part: int, is_last: bool) -> None:
    """Count a task that did not start; refuse the others of its array if it is one of too many reservations."""
    head, passes = world.jobs[array], world.count.passes
    if head.refused_part != part or head.resv_pass != passes:
        head.resv_count, head.resv_pass, head.refused_part = 0, passes, part
    head.resv_count += 1
    if is_last or head.resv_count >= world.rules.bf_max_job_array_resv:
        refuse_tasks(world, array, part)
