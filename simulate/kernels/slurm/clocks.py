"""The clocks of slurmctld: what happens when, between two times.

Rule: a pass runs at the second of its event, and passes never overlap. The background thread looks once a second
whether a main pass is due; the end of a job's last epilog asks for one at once. A backfill pass follows the one before
by `bf_interval`, and waits for a change if there was none.
Complexity: O(log jobs) an event, and the passes.
"""

from __future__ import annotations

import math

from ...arrays import Array
from ..block import Block, int64
from ..compile import register
from ..jit import inner
from .accrual import begin_to_accrue
from .backfill_pass import backfill_pass
from .bits import add, drop, next_node
from .early_ends import fail_node, kill_out_of_minutes
from .job_limits import age_run_minutes, counts_minutes, is_blocked_before_nodes
from .job_states import (
    cancel,
    clean_up,
    draw,
    end,
    first_end,
    first_epilog,
    note_change,
    release,
    requeue,
    see_eligible,
    start,
    submit,
)
from .main_pass import main_pass
from .node_choice import choose_nodes
from .priority import calculate_priorities, start_priorities
from .reserved_nodes import begin_and_end_reservations
from .start_test import count_whole_nodes
from .tables import (
    BY_HISTORY,
    CANCEL,
    CANDIDATES,
    DOWN,
    NODE_STATE,
    NOW,
    RELEASE,
    RESERVATION_EDGE,
    SUBMIT,
    TAKING,
    UP,
    Slurm,
)

SlurmType = register(Slurm, __name__)


@inner
def advance(world: Block, until: float) -> None:
    """Let time pass until `until`, seconds since the epoch; events at that time have happened then.

    It stops earlier, with `count.full` at 1, if the tables need more rows.
    """
    count, clock = world.count, world.clock
    if count.last_period == 0:
        start_priorities(world, int64(math.floor(clock.next_period)) - world.rules.period)
    while not _is_full(world):
        time, kind = _next_event(world)
        if time > until:
            clock.now = max(clock.now, until)
            break
        clock.now = max(clock.now, time)
        now = int64(math.floor(clock.now))
        if kind == 0:
            end(world, first_end(world), now)
        elif kind == 1:
            clean_up(world, first_epilog(world), now)
            if count.history == 0:
                _after_epilog(world, now)
        elif kind == 2:
            _happen(world, now)
        elif kind == 3:
            _calculate(world, now)
        elif kind == 4:
            _tick(world, now)
        elif kind == 6:
            _main(world, now, count.owed == 2)
        else:
            _backfill(world, now)


@inner
def _is_full(world: Block) -> bool:
    """Note and return whether the tables have too few rows for the next pass: requeued jobs start more than once."""
    count, rules = world.count, world.rules
    if rules.restarts == 1 and count.history == 0:
        starts, pieces = len(world.starts) - count.starts, len(world.pieces) - count.pieces
        count.full = int64(starts < count.waiting + 1 or pieces < rules.cpus_total)
    return bool(count.full == 1)


@inner
def _next_event(world: Block) -> tuple[float, int]:
    """Return the time of the next event and its kind; of equal times, ends come first, and passes last."""
    count, clock = world.count, world.clock
    time, kind = math.inf, int64(-1)
    if count.ends > 0:
        time, kind = world.ends_at[0], int64(0)
    if count.epilogs > 0 and world.epilogs_at[0] < time:
        time, kind = world.epilogs_at[0], int64(1)
    busy = count.waiting > 0 or count.running > 0 or count.epilogs > 0
    if count.next_event < len(world.agenda):
        busy = True
        if world.agenda[count.next_event].time < time:
            time, kind = world.agenda[count.next_event].time * 1.0, int64(2)
    if not busy:
        return math.inf, int64(-1)
    if clock.next_period < time:
        time, kind = clock.next_period, int64(3)
    if count.history == 0 and count.waiting > 0:
        tick = _next_tick(world)
        if tick < time:
            time, kind = tick, int64(4)
        if count.owed > 0 and clock.main_ended + world.rules.sched_min_interval < time:
            time, kind = clock.main_ended + world.rules.sched_min_interval, int64(6)
        if count.armed == 0 and world.rules.backfills == 1 and clock.next_backfill < time:
            time, kind = clock.next_backfill, int64(5)
    return time, kind


@inner
def _next_tick(world: Block) -> float:
    """Return when the background thread next starts a main pass."""
    count, rules, clock = world.count, world.rules, world.clock
    due = math.inf
    if rules.sched_interval > 0:
        due = count.last_full + rules.sched_interval * 1.0
    if count.wanted == 1:
        due = min(due, count.last_sched + rules.batch_sched_delay * 1.0)
    if due == math.inf:
        return due
    due = max(due, clock.now)
    tick = math.floor(due) + clock.tick_phase
    return tick if tick >= due else tick + 1.0


@inner
def _tick(world: Block, now: int) -> None:
    """Start the main pass that the background thread owes."""
    count, rules = world.count, world.rules
    is_full = rules.sched_interval > 0 and now - count.last_full >= rules.sched_interval
    if is_full:
        count.last_full = now
    count.last_sched, count.wanted = now, 0
    _main(world, now, is_full)


@inner
def _after_epilog(world: Block, now: int) -> None:
    """The nodes of a job are clean: a main pass follows at once, or is asked for if passes are deferred."""
    if world.rules.deferred == 1:
        world.count.wanted = 1
    elif world.count.waiting > 0:
        _main(world, now, False)


@inner
def _drop_hopeless(world: Block, now: int) -> None:
    """Take waiting jobs out that cannot end by their deadline, or whose dependency can no longer be met. O(waiting)."""
    place, kills = int64(0), world.rules.kills_dependents
    while place < world.count.waiting:
        job = world.waiting[place]
        row = world.jobs[job]
        least = row.time_min if 0 < row.time_min < row.limit else row.limit
        if (row.deadline > 0 and now + 60 * least > row.deadline) or (kills == 1 and row.never == 1):
            cancel(world, job, now)
            place = int64(0)  # others may wait for it, before this place
        else:
            place += 1


@inner
def _main(world: Block, now: int, is_full: bool) -> None:
    """Carry out a main pass, or owe it until sched_min_interval has passed since the last one."""
    count, clock, wait = world.count, world.clock, world.rules.sched_min_interval
    if wait > 0 and clock.now < clock.main_ended + wait:
        count.owed = max(count.owed, int64(2 if is_full else 1))
        return
    count.owed, clock.main_ended = 0, clock.now
    if not _waits_for_nodes(world, now):
        if world.rules.drops_jobs == 1:
            _drop_hopeless(world, now)
        main_pass(world, now, is_full)


@inner
def _waits_for_nodes(world: Block, now: int) -> bool:
    """Return whether a job ended less than CompleteWait ago and its nodes are not clean: then there is no pass."""
    for place in range(world.count.epilogs if world.rules.complete_wait > 0 else int64(0)):
        if now - world.jobs[world.epilogs_job[place]].finish < world.rules.complete_wait:
            return True
    return False


@inner
def _backfill(world: Block, now: int) -> None:
    """Carry out a backfill pass, or wait for a change."""
    count, rules, clock = world.count, world.rules, world.clock
    if count.changed < count.backfill_started:
        count.armed = 1
        return
    if _waits_for_nodes(world, now):
        clock.next_backfill += 1.0
        return
    if rules.drops_jobs == 1:
        _drop_hopeless(world, now)
    backfill_pass(world, now)
    length = rules.pass_least + (rules.pass_most - rules.pass_least) * draw(world)
    clock.next_backfill = clock.now + length + rules.bf_interval


@inner
def _calculate(world: Block, now: int) -> None:
    """Book usage, and calculate shares and priorities again (the decay thread)."""
    see_eligible(world, now)
    if world.count.history == 1:  # a record has passes that are not repeated
        _count_untested(world)
        begin_to_accrue(world, now)
    calculate_priorities(world, now)
    if counts_minutes(world):
        age_run_minutes(world, now)
        if world.count.history == 0:
            kill_out_of_minutes(world, now)
    world.count.stale = 1
    world.clock.next_period += world.rules.period
    note_change(world, now)


@inner
def _count_untested(world: Block) -> None:
    """Note the CPUs of jobs that want whole nodes, as a pass would have."""
    for i in range(world.count.waiting):
        job = world.waiting[i]
        if world.jobs[job].counted_cpus == 0 and world.jobs[job].begin > 0:
            count_whole_nodes(world, job, world.job_parts[world.jobs[job].part0])


@inner
def _happen(world: Block, now: int) -> None:
    """Carry out the next entry of the agenda."""
    event = world.agenda[world.count.next_event]
    world.count.next_event += 1
    kind, row = event.kind, int64(event.what)
    if kind == SUBMIT:
        if event.state == 0:
            submit(world, row, now)
        else:
            requeue(world, row, now, int64(event.state))
    elif kind == RELEASE:
        release(world, row, now)
    elif kind == CANCEL:
        cancel(world, row, now)
    elif kind == NODE_STATE:
        world.nodes[row].state = event.state
        if event.state == UP:
            add(world.node_sets[TAKING], row)
        else:
            drop(world.node_sets[TAKING], row)
        if event.state == DOWN and world.count.history == 0:
            fail_node(world, row)
        world.count.wanted = 1
        note_change(world, now)
    elif kind == RESERVATION_EDGE:
        begin_and_end_reservations(world, now)
        world.count.wanted = 1
        note_change(world, now)


@inner
def repeat(world: Block, entry: int, now: int) -> None:
    """Start a job as the record says: on these nodes, to end then."""
    past = world.history[entry]
    row, words = world.jobs[past.job], world.scratch[CANDIDATES]
    nodes = world.allowed_nodes[past.nodes]
    for word in range(len(words)):
        words[word] = nodes[word]
    row.finish, row.clean = past.finish, past.clean
    slot = row.part0
    while slot + 1 < row.part0 + row.parts and world.job_parts[slot] != past.part:
        slot += 1
    if not choose_nodes(world, past.job, slot, int64(CANDIDATES), int64(NOW)):
        _take_all(world, nodes, past.cpus)
    start(world, past.job, past.part, now, int64(BY_HISTORY))
    if world.rules.assoc_limit_stop == 1:
        _note_limited(world, now)


@inner
def _note_limited(world: Block, now: int) -> None:
    """Note which waiting jobs a limit stops, as the pass of a record has that made a start."""
    for i in range(world.count.waiting):
        job = world.waiting[i]
        if is_blocked_before_nodes(world, job, world.job_parts[world.jobs[job].part0], now):
            world.jobs[job].limited = 1


@inner
def _take_all(world: Block, nodes: Array, cpus: int) -> None:
    """Choose all of these nodes, with equal parts of the CPUs: what the rules would not choose, but what was so."""
    count = world.count
    count.chosen = 0
    node = next_node(nodes, 0)
    while node >= 0:
        world.chosen[count.chosen] = node
        count.chosen += 1
        node = next_node(nodes, node + 1)
    count.chosen_cpus = 0
    for i in range(count.chosen):
        part = max(cpus // count.chosen, int64(1))
        world.taken_cpus[world.chosen[i]] = part
        count.chosen_cpus += part
