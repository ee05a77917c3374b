"""Records of a backfill pass whose place in the plan cannot matter: they are put off, and planned only if it may.

Rule: a pass plans records so that it knows on which nodes a later one may start now. That one takes *free nodes*, those
with free cores now, until its limit, and the latest such limit is the *horizon*. A record whose reservation can have no
free node before the horizon decides no start. Each node that it would take is free by the horizon, and not reserved
from there to the slice in which the reservation ends at the earliest; so it is put off if none of these is free now, or
if they are too few for it. A record that needs a place after all gets it once those put off before it have theirs, in
their order, each with the jobs that ran when its turn came. So does one that may start and ends after the horizon: once
a user is at a limit, a pass tests fewer of the jobs before it, and reaches it.
Complexity: O(slices x words) after each reservation, O(records) after each start, O(log slices) a record.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import are_shared, copy, intersect, meet, number_of
from .job_limits import count_end, count_start
from .known_cpus import has_known_cpus
from .node_choice import choose_nodes
from .node_ends import find_free, note_ends
from .node_use import give_on_node, take_on_node
from .plan import leave_out_reserved
from .plan_slices import slice_at
from .record_plan import HAS_STARTED, IS_PASSED_OVER, plan_record, planned_minutes
from .reserved_nodes import nodes_outside_reservations
from .running_order import add_running, remove_running
from .start_hopes import longest_hope
from .start_test import find_candidates, try_start
from .tables import AVAILABLE, BY_BACKFILL, CANDIDATES, CHOSEN, FREE, LIMITED, NOW, OWN, RESERVED, STARTED, WHOLE

#: Whether a record starts cannot be said without the plan.
UNDECIDED = 3


@inner
def begin_putting_off(world: Block, plans_all: bool) -> None:
    """Begin a pass; no record is put off in it if a rule reads more of the plan than who starts."""
    rules, count = world.rules, world.count
    reads_more = plans_all or rules.bf_one_resv_per_job == 1 or rules.bf_job_part_count_reserve > 0
    count.puts_off = int64(not reads_more and rules.suspend_time <= 0)
    count.put_off = 0
    note_new_hopes(world)


@inner
def note_new_hopes(world: Block) -> None:
    """Note that other records may start now than before."""
    world.count.horizon = 0
    world.count.reach += 1


@inner
def note_plan(world: Block) -> None:
    """Note that the last record has a reservation of the nodes in CHOSEN."""
    if are_shared(world.scratch[CHOSEN], world.node_sets[FREE]):
        world.count.horizon = 0
    world.count.reach += 1


@inner
def is_put_off(world: Block, record: int, hope: int, now: int) -> bool:
    """Put a record off if its place in the plan cannot matter; return whether it was.

    Args:
        world: the state.
        record: the record, which does not start.
        hope: the first record that may start now, not before that one.
        now: the time.
    """
    count = world.count
    job, slot = world.records[record].job, world.records[record].slot
    row, part = world.jobs[job], world.job_parts[slot]
    least = max(world.part_least_nodes[slot], row.min_nodes, int64(1))
    if count.puts_off == 0 or row.array >= 0 or not has_known_cpus(world, job, slot, least):
        return False
    if least <= _most_nodes(world, part, now + 60 * planned_minutes(world, job, part), hope, now):
        return False
    entry = world.put_off[count.put_off]
    entry.record, entry.starts = record, count.starts
    count.put_off_until = count.horizon if count.put_off == 0 else min(count.put_off_until, count.horizon)
    count.put_off += 1
    return True


@inner
def _most_nodes(world: Block, part: int, end: int, hope: int, now: int) -> int:
    """Return how many nodes a reservation in a partition could have that has a free node before the horizon, at most.

    Args:
        world: the state.
        part: the partition.
        end: when the reservation ends at the earliest.
        hope: the first record that may start now.
        now: the time.
    """
    count, row = world.count, world.partitions[part]
    if count.horizon == 0:
        step = world.rules.bf_resolution
        count.horizon = ((now + 60 * longest_hope(world, hope, now)) // step + 1) * step
        count.reach += 1
    if row.reach != count.reach:
        _measure_reach(world, part, now)
    place = min(slice_at(world, end), count.slices - 1)
    if place > row.reach_last:
        return int64(0)
    return int64(world.reach[part, place]) if place >= row.reach_first else int64(row.reach_nodes)


@inner
def _measure_reach(world: Block, part: int, now: int) -> None:
    """Measure `_most_nodes` of a partition for all ends."""
    words, row, count = world.scratch[OWN], world.partitions[part], world.count
    note_ends(world, now)
    find_free(world, words, False, int64(count.horizon))
    intersect(words, world.scratch[AVAILABLE])
    intersect(words, world.partition_nodes[part])
    row.reach, row.reach_last = count.reach, _last_open(world, words)
    row.reach_first, row.reach_nodes = slice_at(world, int64(count.horizon)), number_of(words)
    for place in range(row.reach_first, row.reach_last + 1):
        world.reach[part, place] = meet(words, words, world.slice_nodes[world.slices[place].nodes])


@inner
def _last_open(world: Block, words: Array) -> int:
    """Return the last slice up to whose end a free node of a set has no reservation, -1 if each has one now."""
    free, low, high = world.node_sets[FREE], int64(-1), int64(world.count.slices) - 1
    while low < high:
        middle, is_open = (low + high + 1) // 2, False
        nodes = world.open_nodes[world.slices[middle].nodes]
        for word in range(len(words)):
            is_open = is_open or words[word] & free[word] & nodes[word] != 0
        if is_open:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def start_without_plan(world: Block, job: int, slot: int, part: int, now: int) -> int:
    """Start a job that may start now, as `plan_record` would; return what became of it, or UNDECIDED."""
    row, words, count = world.jobs[job], world.scratch[CANDIDATES], world.count
    if count.puts_off == 0 or row.parts > 1 or row.required >= 0 or 0 < row.time_min < row.limit:
        return int64(UNDECIDED)
    limit = planned_minutes(world, job, part)
    if now + 60 * limit >= count.put_off_until:
        plan_put_off(world, now)
    find_candidates(world, job, part, world.scratch[AVAILABLE])
    if nodes_outside_reservations(world, job, part, now, limit, CANDIDATES) != now:
        return int64(UNDECIDED)
    leave_out_reserved(world, words, now, now + 60 * limit)
    if not choose_nodes(world, job, slot, CANDIDATES, NOW):
        return int64(UNDECIDED)
    for place in range(count.chosen):
        if world.nodes[world.chosen[place]].completing > 0:
            return int64(UNDECIDED)
    row.counted_cpus = count.chosen_cpus
    copy(world.scratch[WHOLE], words)
    answer = try_start(world, job, slot, world.scratch[WHOLE], now, int64(BY_BACKFILL))
    if answer == STARTED:
        return int64(HAS_STARTED)
    if answer == RESERVED or (answer == LIMITED and count.chosen > 0):
        return int64(IS_PASSED_OVER)
    return int64(UNDECIDED)


@inner
def plan_put_off(world: Block, now: int) -> None:
    """Plan the records that were put off, each with the jobs that ran then."""
    count = world.count
    if count.put_off == 0:
        return
    shown = world.put_off[0].starts
    for entry in range(count.starts - 1, shown - 1, -1):
        _take_back(world, int64(world.starts[entry].job))
    for place in range(count.put_off):
        while shown < world.put_off[place].starts:
            _bring_back(world, int64(world.starts[shown].job))
            shown += 1
        record = world.records[world.put_off[place].record]
        plan_record(world, int64(record.job), int64(record.slot), int64(world.job_parts[record.slot]), now)
    while shown < count.starts:
        _bring_back(world, int64(world.starts[shown].job))
        shown += 1
    count.put_off = 0
    count.reach += 1


@inner
def _take_back(world: Block, job: int) -> None:
    """Let a job that has started in this pass not run for a moment."""
    row = world.jobs[job]
    remove_running(world, job)
    count_end(world, job)
    for place in range(row.piece0, row.piece0 + row.pieces):
        piece = world.pieces[place]
        give_on_node(world, piece.node, row.part, piece.cores, piece.memory, row.gpus)
    world.count.ends_noted = -1


@inner
def _bring_back(world: Block, job: int) -> None:
    """Let a job run again that was taken back."""
    row = world.jobs[job]
    for place in range(row.piece0, row.piece0 + row.pieces):
        piece = world.pieces[place]
        take_on_node(world, piece.node, row.part, piece.cores, piece.memory, row.gpus)
    count_start(world, job)
    add_running(world, job)
    world.count.ends_noted = -1
