"""The place of one record in the plan of a backfill pass: it starts now, or has a reservation, or neither.

Rule: Slurm looks again at a later time whenever something becomes free before the job could start; each look is a
`try` here. Complexity: O(tries x (slices x words + candidates)), and O(slices) for all tries that cannot help.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import add, contains, copy, empty, number_of
from .job_limits import has_certain_cpus, is_blocked_on_all_nodes, is_blocked_with_nodes, minutes_of
from .node_ends import find_free, note_ends
from .pass_records import least_priority
from .place_bounds import first_look, note_bound
from .plan import (
    SURELY_TOO_FEW,
    TOO_FEW,
    is_clear,
    leave_out_if_enough,
    leave_out_reserved,
    next_freed,
    next_with_room,
)
from .plan_slices import reserve
from .reserved_nodes import is_outside_all, nodes_outside_reservations
from .start_test import chosen_memory, find_candidates, has_required, try_start
from .tables import AVAILABLE, BY_BACKFILL, CANDIDATES, CHOSEN, LIMITED, NOT_AT_ALL, RESERVED, STARTED, WHOLE
from .will_run import NO_START, earliest_start

#: How often a job's place in the plan is looked for in a pass.
_MOST_TRIES = 10_000
#: What becomes of a record.
HAS_STARTED, IS_PLANNED, IS_PASSED_OVER = range(3)
#: No start was found at this time; nor will one be found later.
_NOT_NOW, _NEVER = int64(-1), int64(-2)
_NONE = np.uint64(0)


@inner
def plan_record(world: Block, job: int, slot: int, part: int, now: int) -> int:
    """Start a job, or reserve nodes for it; return what became of it.

    A job with TimeMin is planned with that time, and starts with the longest limit that delays no reservation; with
    its own limit where TimeMin is a soft one.
    """
    row, limit, most = world.jobs[job], world.jobs[job].limit, world.partitions[part].max_time
    if is_never_planned(world, job, part):
        return IS_PASSED_OVER
    if not 0 < row.time_min < limit:
        return _plan(world, job, slot, part, now)
    if 0 <= most < limit:
        row.granted = most
    else:
        row.granted = limit
    row.limit = row.time_min
    outcome = _plan(world, job, slot, part, now)
    if outcome != HAS_STARTED:
        row.limit = limit
    row.granted = -1
    return outcome


@inner
def is_never_planned(world: Block, job: int, part: int) -> bool:
    """Return True if a limit stops a job on all nodes, and no later question is about its place in the plan."""
    rules = world.rules
    if world.count.plans == 1 or rules.preempts != NOT_AT_ALL or rules.bf_one_resv_per_job == 1:
        return False
    return has_certain_cpus(world, job, part) and is_blocked_on_all_nodes(world, job, part)


@inner
def _shorten(world: Block, job: int, now: int) -> None:
    """Let a job start with the most minutes in which no reservation has one of its chosen nodes, TimeMin at least."""
    row, words = world.jobs[job], world.scratch[CHOSEN]
    for i in range(world.count.slices):
        slice_ = world.slices[i]
        if slice_.end > now and not contains(world.slice_nodes[slice_.nodes], words):
            row.granted = max(row.time_min, min(row.granted, (slice_.begin - now) // 60))
            return


@inner
def _plan(world: Block, job: int, slot: int, part: int, now: int) -> int:
    rules, row, count = world.rules, world.jobs[job], world.count
    is_now_only = _is_now_only(world, job, slot, now)
    limit = planned_minutes(world, job, part)
    step, at = rules.bf_resolution, first_look(world, job, slot, limit, now, is_now_only)
    for _ in range(_MOST_TRIES):
        at = _next_look(world, job, part, at, 60 * limit, is_now_only)
        begin = _look_from(world, job, slot, at, limit, now, is_now_only)
        later = count.try_later
        if begin < 0:
            if begin == _NEVER or later == 0 or is_now_only:
                return IS_PASSED_OVER
            at = later
            continue
        if 0 < later < begin and not is_now_only:
            at = later
            continue
        cpus, nodes, memory = count.chosen_cpus, count.chosen, chosen_memory(world, job)
        row.counted_cpus = cpus
        if begin <= now:
            answer = _try_start(world, job, slot, now)
            if answer == STARTED:
                return HAS_STARTED
            if answer == LIMITED or answer == RESERVED:
                return IS_PASSED_OVER
        elif is_now_only:
            _expect(world, job, begin)
            return IS_PASSED_OVER
        if begin > now + rules.bf_window:
            _expect(world, job, begin)
            return IS_PASSED_OVER
        first, last = begin // step * step, (begin + 60 * limit) // step * step
        if rules.short_jobs_apart == 1:
            last = max(last, first + step)
        if not is_clear(world, world.scratch[CHOSEN], max(at, now) + 60 * limit, first, last):
            at = begin
            continue
        if row.expected == 0 or begin < row.expected:
            _expect(world, job, begin)
        if is_blocked_with_nodes(world, job, part, now, cpus, nodes, memory, row.gpus * nodes):
            return IS_PASSED_OVER
        if not _may_reserve(world, job, part):
            return IS_PASSED_OVER
        reserve(world, world.scratch[CHOSEN], first, max(last, first + step))
        note_bound(world, job, slot, limit, now)
        return IS_PLANNED
    return IS_PASSED_OVER


@inner
def _expect(world: Block, job: int, begin: int) -> None:
    """Note when a job is expected to start."""
    row, count = world.jobs[job], world.count
    if row.expected == 0:
        world.planned[count.planned] = job
        count.planned += 1
    row.expected = begin


@inner
def _try_start(world: Block, job: int, slot: int, now: int) -> int:
    """Start a job on some of the candidates; return STARTED, or why it cannot start."""
    if world.jobs[job].granted >= 0 and world.rules.soft_time_min == 0:
        _shorten(world, job, now)
    copy(world.scratch[WHOLE], world.scratch[CANDIDATES])
    return try_start(world, job, slot, world.scratch[WHOLE], now, int64(BY_BACKFILL))


@inner
def _next_look(world: Block, job: int, part: int, at: int, length: int, is_now_only: bool) -> int:
    """Return the first time from one on at which a job that runs for `length` seconds may have room."""
    if is_now_only or world.rules.preempts != NOT_AT_ALL or not is_outside_all(world, job):
        return at
    words = world.scratch[CANDIDATES]
    find_candidates(world, job, part, world.scratch[AVAILABLE])
    return next_with_room(world, words, part, at, length, max(world.jobs[job].min_nodes, int64(1)))


@inner
def planned_minutes(world: Block, job: int, part: int) -> int:
    """Return for how long a job would hold its nodes in the plan: its TimeMin, else its limit."""
    limit, most, least = minutes_of(world, job, part), world.partitions[part].max_time, world.jobs[job].time_min
    if 0 < least < limit:
        limit = least
    return min(limit, most) if most >= 0 else limit


@inner
def _is_now_only(world: Block, job: int, slot: int, now: int) -> bool:
    """Return whether a job may start now, but have no reservation."""
    rules, row = world.rules, world.jobs[job]
    if now - row.begin < rules.bf_min_age_reserve:
        return True
    limits, most = world.partitions[world.job_parts[slot]], rules.bf_job_part_count_reserve
    if most > 0 and limits.reserves_pass == world.count.passes and limits.reserves >= most:
        return True
    if world.part_priority[slot] < least_priority(world, job):
        return True
    return bool(rules.bf_one_resv_per_job == 1 and row.expected > 0)


@inner
def _may_reserve(world: Block, job: int, part: int) -> bool:
    """Return whether a job's QOS lets it have a reservation, and count it in its partition."""
    if world.qos[world.jobs[job].qos].no_reserve == 1:
        return False
    row, passes = world.partitions[part], world.count.passes
    if row.reserves_pass != passes:
        row.reserves_pass, row.reserves = passes, 0
    row.reserves += 1
    return True


@inner
def _look_from(world: Block, job: int, slot: int, at: int, limit: int, now: int, is_now_only: bool) -> int:
    """Return when a job could start if it starts at `at` at the earliest, _NOT_NOW or _NEVER.

    The chosen nodes are in the row CHOSEN of `scratch`; `count.try_later` is when something else becomes free, or 0.
    `count.is_sure` becomes 0 unless too few nodes are free from `at` on until then, whatever a later record asks for.
    """
    count, part = world.count, world.job_parts[slot]
    words, chosen = world.scratch[CANDIDATES], world.scratch[CHOSEN]
    count.looks += 1
    if count.is_sure == 1:
        count.bound = at
    find_candidates(world, job, part, world.scratch[AVAILABLE])
    start = nodes_outside_reservations(world, job, part, at, limit, CANDIDATES)
    count.try_later = 0
    if start < 0:
        return _NEVER
    least, end = max(world.jobs[job].min_nodes, int64(1)), max(start, now) + 60 * limit
    count.try_later = next_freed(world, words, start, end)
    step = world.rules.bf_resolution
    freed = (count.reservation_end + step - 1) // step * step
    if freed > 0 and (count.try_later == 0 or freed + 1 < count.try_later):
        count.try_later = freed + 1
    if count.try_later == 0 or is_now_only or world.rules.preempts != NOT_AT_ALL:
        count.is_sure = 0
        leave_out_reserved(world, words, start, end)
    else:  # what else becomes free decides anyway when the job starts, if too few nodes are free until then
        free = world.scratch[WHOLE]
        note_ends(world, now)
        is_whole = world.jobs[job].exclusive == 1 or world.partitions[part].exclusive == 1
        find_free(world, free, is_whole, count.try_later)
        answer = leave_out_if_enough(world, words, free, start, end, least)
        if answer == SURELY_TOO_FEW:
            return _NOT_NOW
        count.is_sure = 0
        if answer == TOO_FEW:
            return _NOT_NOW
    if number_of(words) < least or not has_required(world, job, words):
        return _NOT_NOW
    begin = earliest_start(world, job, slot, CANDIDATES, now, start, int64(0) if is_now_only else count.try_later)
    if begin == NO_START:
        return _NOT_NOW
    begin = max(begin, start)
    if 0 < count.try_later < begin and not is_now_only:
        return begin
    is_completing = _note_chosen(world, chosen)
    if begin <= now and is_completing:
        count.try_later = 0
        return now + 1
    return begin


@inner
def _note_chosen(world: Block, words: Array) -> bool:
    """Put the chosen nodes into a set, and list the words that have some; return whether one is completing."""
    count, is_completing = world.count, False
    empty(words)
    count.chosen_words = 0
    for i in range(count.chosen):
        node = world.chosen[i]
        if words[node // 64] == _NONE:
            world.chosen_words[count.chosen_words] = node // 64
            count.chosen_words += 1
        add(words, node)
        is_completing = is_completing or world.nodes[node].completing > 0
    return is_completing
