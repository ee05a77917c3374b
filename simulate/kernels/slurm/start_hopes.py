"""The records that may start in a backfill pass: only what stands before one of them needs a plan.

Rule: what a pass takes or reserves is gone for the rest of it, so a record that may not start will not. A bound may let
through what a test then refuses.
Complexity: O(records) a pass, O(words) more for a record for which nodes enough are free.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from ..queue.resources import popcount
from .bits import copy, intersect
from .job_limits import has_licences, is_allowed_when_shortened, is_blocked_before_nodes
from .job_states import is_eligible
from .pass_records import is_task_refused
from .plan import are_free_until
from .record_plan import is_never_planned, planned_minutes
from .tables import AVAILABLE, CLEAN, FREE, IDLE, OWN, PENDING


@inner
def next_that_may_start(world: Block, first: int, tests: int, now: int) -> int:
    """Return the first record from one on that may start and that the pass reaches, else -1.

    Args:
        world: the state; `count.reached` becomes the least number of tests up to that record, if no hopes are listed.
        first: the first record.
        tests: how many tests the pass has made at least when it comes to it.
        now: the time.
    """
    count, most = world.count, world.count.most_tests
    if _are_hopes_listed(world):
        for place in range(count.hopes):
            record = world.hopes[place]
            if record >= first and _may_start(world, world.records[record].job, world.records[record].slot, now):
                return int64(record)
        return int64(-1)
    for k in range(first, count.records):
        job, slot = world.records[k].job, world.records[k].slot
        if not is_eligible(world, job, now):
            continue
        if _may_start(world, job, slot, now):
            count.reached = tests
            return int64(k)
        if tests + count.records - k > most and _is_tested(world, job, slot, now):
            tests += 1
            if tests >= most:
                break
    return int64(-1)


@inner
def longest_hope(world: Block, first: int, now: int) -> int:
    """Return for how many minutes a record from one on that may start would run at most; see `next_that_may_start`."""
    count, longest, number = world.count, int64(0), int64(0)
    if not _are_hopes_listed(world):
        _list_hopes(world, first, now)
    for place in range(count.hopes):
        record = world.hopes[place]
        if record < first:
            continue
        job, slot = world.records[record].job, world.records[record].slot
        minutes = planned_minutes(world, job, world.job_parts[slot])
        if minutes > longest:
            if not _may_start(world, job, slot, now):
                continue
            longest = minutes
        world.hopes[number] = record
        number += 1
    count.hopes = number
    return longest


@inner
def _are_hopes_listed(world: Block) -> bool:
    """Return whether `hopes` has all records that may start: what may not will not before another job starts."""
    return bool(world.count.hopes_pass == world.count.passes and world.count.hopes_starts == world.count.starts)


@inner
def _list_hopes(world: Block, first: int, now: int) -> None:
    """List the records from one on that may start and that the pass reaches."""
    count, most, tests = world.count, world.count.most_tests, world.count.reached
    count.hopes, count.hopes_pass, count.hopes_starts = 0, count.passes, count.starts
    for k in range(first, count.records):
        job, slot = world.records[k].job, world.records[k].slot
        row = world.jobs[job]
        if row.state != PENDING or row.unmet > 0 or row.begin_at > now:
            continue
        if _may_start(world, job, slot, now):
            world.hopes[count.hopes] = k
            count.hopes += 1
        if tests + count.records - k > most and _is_tested(world, job, slot, now):
            tests += 1
            if tests >= most:
                break


@inner
def still_may_start(world: Block, record: int, now: int) -> int:
    """Return a record that could start before a reservation was made, or the next one that may, else -1."""
    if _may_start(world, world.records[record].job, world.records[record].slot, now):
        return record
    return next_that_may_start(world, record + 1, world.count.reached, now)


@inner
def _is_tested(world: Block, job: int, slot: int, now: int) -> bool:
    """Return whether a pass that reaches an eligible job surely tests it."""
    rules, part = world.rules, world.job_parts[slot]
    if world.jobs[job].array >= 0 or has_counts(world):
        return False
    if rules.assoc_limit_stop == 0 and is_blocked_before_nodes(world, job, part, now):
        return False
    return is_allowed_when_shortened(world, job, part) and has_licences(world, job)


@inner
def has_counts(world: Block) -> bool:
    """Return whether a pass tests only so many jobs of a partition, a user or an association."""
    rules = world.rules
    most = max(rules.bf_max_job_part, rules.bf_max_job_user, rules.bf_max_job_assoc, rules.bf_max_job_user_part)
    return bool(most > 0)


@inner
def _may_start(world: Block, job: int, slot: int, now: int) -> bool:
    """Return whether an eligible job could start now: no limit stops it, and nodes enough are free and not reserved."""
    row, part = world.jobs[job], world.job_parts[slot]
    least = max(world.part_least_nodes[slot], row.min_nodes, int64(1))
    is_whole = int64(row.exclusive == 1 or world.partitions[part].exclusive == 1)
    if _number_startable(world, part, is_whole) < least:
        return False
    if is_task_refused(world, job, part) or not has_licences(world, job):
        return False
    if is_blocked_before_nodes(world, job, part, now) or is_never_planned(world, job, part):
        return False
    if world.count.slices == 1 and row.allowed < 0:
        return True
    words = world.scratch[OWN]
    copy(words, world.startable_nodes[2 * part + is_whole])
    if row.allowed >= 0:
        intersect(words, world.allowed_nodes[row.allowed])
    return are_free_until(world, words, now, now + 60 * planned_minutes(world, job, part), least)


@inner
def _number_startable(world: Block, part: int, is_whole: int) -> int:
    """Return on how many nodes of a partition a job may start now, and note them.

    Args:
        world: the state.
        part: the partition.
        is_whole: 1: on nodes without jobs; 0: on nodes with free cores.
    """
    count, row = world.count, world.startable[part, is_whole]
    if row.passes != count.passes or row.starts != count.starts:
        row.passes, row.starts, row.nodes = count.passes, count.starts, 0
        words, nodes = world.startable_nodes[2 * part + is_whole], world.partition_nodes[part]
        free, clean = world.node_sets[IDLE if is_whole == 1 else FREE], world.node_sets[CLEAN]
        for word in range(len(words)):
            words[word] = nodes[word] & free[word] & clean[word] & world.scratch[AVAILABLE, word]
            row.nodes += popcount(words[word])
    return int64(row.nodes)
