"""The backfill pass: each job that cannot start has a reservation of whole nodes (`_attempt_backfill`).

Rule: a job may start only on nodes that no reservation of a job before it has during its time limit. Every tested job
gets a reservation, and the plan is thrown away after the pass. Records are planned as long as a later one may start.
Complexity: O(records x (slices x words + running + candidates)).
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .bits import copy
from .job_limits import has_licences, is_allowed_when_shortened, is_blocked_before_nodes
from .job_states import is_eligible
from .pass_length import most_tests
from .pass_records import begin_pass, count_test, end_pass, is_preempting, is_task_refused, refuse_tasks
from .plan import begin_plan, is_full
from .put_off import (
    UNDECIDED,
    begin_putting_off,
    is_put_off,
    note_new_hopes,
    note_plan,
    plan_put_off,
    start_without_plan,
)
from .record_plan import HAS_STARTED, IS_PASSED_OVER, IS_PLANNED, plan_record
from .sleeping_nodes import save_power
from .start_hopes import has_counts, next_that_may_start, still_may_start
from .start_test import count_whole_nodes
from .tables import AVAILABLE, NOT_AT_ALL, TAKING


@inner
def backfill_pass(world: Block, now: int) -> int:
    """Carry out one backfill pass; return the number of jobs that it started."""
    count, rules = world.count, world.rules
    _begin(world, now)
    started, tests, last_array = int64(0), int64(0), int64(-1)
    plans_all = count.plans == 1 or rules.preempts != NOT_AT_ALL
    begin_putting_off(world, plans_all)
    hope = count.records if plans_all else next_that_may_start(world, int64(0), int64(0), now)
    for k in range(count.records):
        job, slot = world.records[k].job, world.records[k].slot
        part, array = world.job_parts[slot], world.jobs[job].array
        if not is_eligible(world, job, now) or is_preempting(world, job):
            continue
        if tests >= count.most_tests or is_full(world):
            break
        if 0 <= hope < k:
            hope = next_that_may_start(world, k, tests, now)
        is_counted = world.jobs[job].counted_cpus > 0
        if hope < 0 and is_counted and not has_counts(world) and tests + count.records - k <= count.most_tests:
            continue
        if rules.bf_max_job_start > 0 and started >= rules.bf_max_job_start:
            break
        if _is_refused(world, job, part, now):
            continue
        is_next_task = array >= 0 and array == last_array
        last_array = array
        if not is_next_task and _is_over_count(world, job, part):
            continue
        if not has_licences(world, job):
            continue
        tests += 1
        if hope < 0:
            if not is_counted:
                count_whole_nodes(world, job, part)
            continue
        outcome = _place(world, k, hope, now)
        if outcome == HAS_STARTED:
            started += 1
        elif array >= 0:
            _count_task(world, array, part, outcome == IS_PASSED_OVER)
        if outcome == IS_PLANNED and k < hope < count.records:
            hope = still_may_start(world, hope, now)
    end_pass(world, now)
    return started


@inner
def _is_refused(world: Block, job: int, part: int, now: int) -> bool:
    """Return whether a job is not tested: a limit or the partition stops it, or a task of its array was refused."""
    if world.rules.assoc_limit_stop == 0 and is_blocked_before_nodes(world, job, part, now):
        return True
    return is_task_refused(world, job, part) or not is_allowed_when_shortened(world, job, part)


@inner
def _place(world: Block, record: int, hope: int, now: int) -> int:
    """Start a record, put it off, or give it its place in the plan; return what became of it."""
    job, slot = world.records[record].job, world.records[record].slot
    part, outcome = world.job_parts[slot], int64(UNDECIDED)
    if record == hope:
        outcome = start_without_plan(world, job, slot, part, now)
    if outcome == UNDECIDED:
        if is_put_off(world, record, hope, now):
            return int64(UNDECIDED)
        plan_put_off(world, now)
        outcome = plan_record(world, job, slot, part, now)
    if outcome == HAS_STARTED:
        note_new_hopes(world)
    elif outcome == IS_PLANNED:
        note_plan(world)
    return outcome


@inner
def _begin(world: Block, now: int) -> None:
    """Begin a pass with an empty plan; jobs have no expected starts."""
    begin_pass(world, now)
    count = world.count
    count.backfill_started, count.ends_noted, count.most_tests = now, -1, most_tests(world)
    copy(world.scratch[AVAILABLE], world.node_sets[TAKING])
    save_power(world, now)
    begin_plan(world, world.scratch[AVAILABLE], now)
    for i in range(len(world.user_counts)):
        world.user_counts[i] = 0
        for part in range(len(world.partitions) if world.rules.bf_max_job_user_part > 0 else int64(0)):
            world.user_part_counts[i, part] = 0
    for i in range(len(world.associations) if world.rules.bf_max_job_assoc > 0 else int64(0)):
        world.association_counts[i] = 0
    for i in range(count.planned):
        world.jobs[world.planned[i]].expected = 0
    count.planned = 0


@inner
def _is_over_count(world: Block, job: int, part: int) -> bool:
    """Count a record for its partition, user and association; return whether that is one too many (bf_max_job_*).

    Of the limits of users and associations, that of associations counts.
    """
    rules, user, association = world.rules, world.jobs[job].user, world.jobs[job].assoc
    is_over = 0 < rules.bf_max_job_part < count_test(world, part)
    if rules.bf_max_job_assoc > 0 and association >= 0:
        world.association_counts[association] += 1
        is_over = is_over or world.association_counts[association] > rules.bf_max_job_assoc
    elif rules.bf_max_job_user > 0:
        world.user_counts[user] += 1
        is_over = is_over or world.user_counts[user] > rules.bf_max_job_user
    if rules.bf_max_job_user_part > 0:
        world.user_part_counts[user, part] += 1
        is_over = is_over or world.user_part_counts[user, part] > rules.bf_max_job_user_part
    return bool(is_over)


@inner
def _count_task(world: Block, array: int, part: int, is_last: bool) -> None:
    """Count a task that did not start; refuse the others of its array if it is one of too many reservations."""
    head, passes = world.jobs[array], world.count.passes
    if head.refused_part != part or head.resv_pass != passes:
        head.resv_count, head.resv_pass, head.refused_part = 0, passes, part
    head.resv_count += 1
    if is_last or head.resv_count >= world.rules.bf_max_job_array_resv:
        refuse_tasks(world, array, part)
