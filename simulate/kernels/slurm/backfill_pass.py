"""The backfill pass: each job that cannot start has a reservation of whole nodes (`_attempt_backfill`).

Rule: a job may start only on nodes that no reservation of a job before it has during its time limit. Every tested job
gets a reservation, and the plan is thrown away after the pass.
Complexity: O(records x (slices x words + running + candidates)).
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .bits import add, copy, empty, number_of
from .job_limits import has_licences, is_blocked_before_nodes, is_blocked_with_nodes
from .job_states import is_eligible
from .plan import begin_plan, is_clear, is_full, look, reserve
from .record_order import sort_records
from .reserved_nodes import nodes_outside_reservations
from .start_test import chosen_memory, find_candidates, has_required, try_start
from .tables import AVAILABLE, BY_BACKFILL, CANDIDATES, CHOSEN, LIMITED, RESERVED, STARTED, TAKING, WHOLE
from .will_run import NO_START, earliest_start

#: Longest time of a job without any limit, minutes: a year.
_NO_LIMIT_MIN = int64(365 * 24 * 60)
#: How often a job's place in the plan is looked for in a pass.
_MOST_TRIES = 10_000
#: What became of a record: it started; it did not, and has a reservation; neither.
_HAS_STARTED, _IS_PLANNED, _IS_PASSED_OVER = range(3)


@inner
def backfill_pass(world: Block, now: int) -> int:
    """Carry out one backfill pass; return the number of jobs that it started."""
    count, rules = world.count, world.rules
    if count.stale == 1:
        sort_records(world)
    count.passes += 1
    count.backfill_passes += 1
    count.in_pass = 1
    count.backfill_started = now
    copy(world.scratch[AVAILABLE], world.node_sets[TAKING])
    begin_plan(world, world.scratch[AVAILABLE], now)
    for i in range(len(world.user_counts)):
        world.user_counts[i] = 0
    for i in range(count.waiting):
        world.jobs[world.waiting[i]].expected = 0
    started, tests, last_array = int64(0), int64(0), int64(-1)
    for k in range(count.records):
        job, slot = world.records[k].job, world.records[k].slot
        part = world.job_parts[slot]
        row, limits = world.jobs[job], world.partitions[part]
        if not is_eligible(world, job, now):
            continue
        if tests >= rules.bf_max_job_test or is_full(world):
            break
        if rules.bf_max_job_start > 0 and started >= rules.bf_max_job_start:
            break
        if is_blocked_before_nodes(world, job, part, now) and rules.assoc_limit_stop == 0:
            continue
        if row.array >= 0:
            head = world.jobs[row.array]
            if head.refused == count.passes and head.refused_part == part:
                continue
            if head.array_limit > 0 and head.running_tasks >= head.array_limit:
                continue
        if limits.tested_pass != count.passes:
            limits.tested_pass, limits.tested = count.passes, 0
        is_next_task = row.array >= 0 and row.array == last_array
        last_array = row.array
        if not is_next_task and _is_over_count(world, job, part):
            continue
        if world.part_allowed[slot] == 0 or limits.up == 0 or not has_licences(world, job):
            continue
        tests += 1
        outcome = _plan_record(world, job, slot, part, now)
        if outcome == _HAS_STARTED:
            started += 1
        elif row.array >= 0:
            head = world.jobs[row.array]
            if head.refused_part != part or head.resv_pass != count.passes:
                head.resv_count, head.resv_pass = 0, count.passes
            head.resv_count += 1
            head.refused_part = part
            if outcome == _IS_PASSED_OVER or head.resv_count >= rules.bf_max_job_array_resv:
                head.refused = count.passes
    count.in_pass = 0
    return started


@inner
def _is_over_count(world: Block, job: int, part: int) -> bool:
    """Count a record for its user and partition; return whether that is one too many (bf_max_job_user, _part)."""
    rules, row, limits = world.rules, world.jobs[job], world.partitions[part]
    limits.tested += 1
    if rules.bf_max_job_part > 0 and limits.tested > rules.bf_max_job_part:
        return True
    if rules.bf_max_job_user > 0:
        world.user_counts[row.user] += 1
        return bool(world.user_counts[row.user] > rules.bf_max_job_user)
    return False


@inner
def _plan_record(world: Block, job: int, slot: int, part: int, now: int) -> int:
    """Start a job, or reserve nodes for it; return what became of it."""
    count, rules, row, limits = world.count, world.rules, world.jobs[job], world.partitions[part]
    is_now_only = (
        now - row.begin < rules.bf_min_age_reserve
        or (rules.bf_min_prio_reserve > 0 and world.part_priority[slot] < rules.bf_min_prio_reserve)
        or (rules.bf_one_resv_per_job == 1 and row.expected > 0)
    )
    limit = row.limit if row.limit >= 0 else _NO_LIMIT_MIN
    if limits.max_time >= 0:
        limit = min(limit, limits.max_time)
    words, whole, chosen = world.scratch[CANDIDATES], world.scratch[WHOLE], world.scratch[CHOSEN]
    later = now
    for _ in range(_MOST_TRIES):
        start = later
        find_candidates(world, job, part, world.scratch[AVAILABLE])
        start = nodes_outside_reservations(world, job, part, start, limit, CANDIDATES)
        if start < 0:
            return _IS_PASSED_OVER
        end = max(start, now) + 60 * limit
        copy(whole, words)
        later = look(world, words, whole, start, end)
        freed = count.reservation_end
        if freed > 0 and (later == 0 or freed + 1 < later):
            later = freed + 1
        can_try_later = later > 0 and not is_now_only
        if number_of(words) < max(row.min_nodes, int64(1)) or not has_required(world, job, words):
            if can_try_later:
                continue
            return _IS_PASSED_OVER
        begin = earliest_start(world, job, slot, CANDIDATES, now)
        if begin == NO_START:
            if can_try_later:
                continue
            return _IS_PASSED_OVER
        begin = max(begin, start)
        empty(chosen)
        is_completing = False
        for i in range(count.chosen):
            add(chosen, world.chosen[i])
            is_completing = is_completing or world.nodes[world.chosen[i]].completing > 0
        if begin <= now and is_completing:
            begin, later = now + 1, int64(0)
        cpus, nodes, memory = count.chosen_cpus, count.chosen, chosen_memory(world, job)
        row.counted_cpus = cpus
        if begin <= now:
            answer = try_start(world, job, slot, chosen, now, int64(BY_BACKFILL))
            if answer == STARTED:
                return _HAS_STARTED
            if answer == LIMITED or answer == RESERVED:
                return _IS_PASSED_OVER
        elif is_now_only:
            row.expected = begin
            return _IS_PASSED_OVER
        if 0 < later < begin:
            continue
        if begin > now + rules.bf_window:
            row.expected = begin
            return _IS_PASSED_OVER
        step = rules.bf_resolution
        first, last = begin // step * step, (begin + 60 * limit) // step * step
        if not is_clear(world, chosen, first, last):
            later = begin
            continue
        if is_blocked_with_nodes(world, job, part, now, cpus, nodes, memory, row.gpus * nodes):
            return _IS_PASSED_OVER
        if row.expected == 0 or begin < row.expected:
            row.expected = begin
        if world.qos[row.qos].no_reserve == 1:
            return _IS_PASSED_OVER
        if limits.reserves_pass != count.passes:
            limits.reserves_pass, limits.reserves = count.passes, 0
        if rules.bf_job_part_count_reserve > 0 and limits.reserves >= rules.bf_job_part_count_reserve:
            return _IS_PASSED_OVER
        limits.reserves += 1
        reserve(world, chosen, first, max(last, first + step))
        return _IS_PLANNED
    return _IS_PASSED_OVER
