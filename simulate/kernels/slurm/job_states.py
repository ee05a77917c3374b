"""A job's way through the queue: it is submitted, becomes eligible, starts, ends, and its nodes are cleaned up.

Rule: each change of a job goes through one function here, which keeps the nodes, the counters of limits, the heaps and
the list of running jobs in step.
"""

from __future__ import annotations

import math

from ..block import Block, int64
from ..heap import push, rekey, remove_first
from ..jit import inner
from .accrual import stop_to_accrue
from .bits import add, drop
from .job_limits import (
    count_departure,
    count_end,
    count_start,
    count_submission,
    give_licences,
    is_blocked_before_nodes,
    is_denied,
    is_one_too_many,
    take_licences,
)
from .node_use import give_on_node, take_on_node
from .priority import billing_of, book_end, list_job, set_priority
from .record_order import add_records, drop_old_records
from .reserved_nodes import end_in_reservation, has_reservation_begun
from .running_order import add_running, end_until, remove_running, running_jobs
from .sleeping_nodes import boot_chosen
from .tables import (
    AFTER_ANY,
    AFTER_NOT_OK,
    AFTER_OK,
    AFTER_START,
    BY_HISTORY,
    CLEAN,
    COMPLETING,
    FUTURE,
    GONE,
    HELD,
    IS_REQUEUED,
    NOW,
    PENDING,
    REQUEUE_S,
    RUNNING,
    STAYS,
    SUSPENDED,
)

#: The end of a job that stands still, seconds since the epoch.
_NEVER = 1e15


@inner
def draw(world: Block) -> float:
    """Return the next random number, at least 0 and below 1, of the state's own generator (Lehmer, 2^31 - 1)."""
    world.count.random = world.count.random * int64(48271) % int64(2147483647)
    return world.count.random / 2147483647.0


@inner
def note_change(world: Block, now: int) -> None:
    """Note that something changed, so that the next backfill pass is not skipped; wake one that waits for it."""
    count = world.count
    count.changed = now
    if count.armed == 1 and count.in_pass == 0:
        count.armed = 0
        phase = world.clock.next_backfill - math.floor(world.clock.next_backfill)
        wake = math.floor(world.clock.now) + phase
        world.clock.next_backfill = wake if wake >= world.clock.now else wake + 1.0


# --- waiting ---
@inner
def submit(world: Block, job: int, now: int) -> None:
    """Put a job into the queue; its user tries again later if too many are submitted. A record has no such job."""
    row, count = world.jobs[job], world.count
    if row.state == GONE or (row.restarts == 0 and count.history == 0 and _is_turned_away(world, job)):
        return
    count_submission(world, job)
    row.limited = int64(is_blocked_before_nodes(world, job, world.job_parts[row.part0], now))
    row.state = HELD if row.state == HELD else PENDING
    world.waiting[count.waiting], world.waiting_places[job] = job, count.waiting
    count.waiting += 1
    is_eligible(world, job, now)
    if row.restarts == 0:
        set_priority(world, job, now)
    else:
        list_job(world, job)
    add_records(world, job)
    count.wanted = 1
    note_change(world, now)


@inner
def _is_turned_away(world: Block, job: int) -> bool:
    """Return whether limits reject a submission: for ever, or until a job leaves."""
    if is_denied(world, job):
        world.jobs[job].state = GONE
        return True
    if is_one_too_many(world, job):
        world.delayed[world.count.delayed] = job
        world.count.delayed += 1
        return True
    return False


@inner
def _count_leaving(world: Block, job: int, now: int) -> None:
    """Count that a job leaves, and submit the jobs that waited for that, in their order."""
    count_departure(world, job)
    number, world.count.delayed = world.count.delayed, 0
    for place in range(number):
        submit(world, world.delayed[place], now)


@inner
def requeue(world: Block, job: int, now: int, delay: int) -> None:
    """Put a job that has run back into the queue, to start again at the earliest after `delay` seconds."""
    row = world.jobs[job]
    drop_old_records(world)
    row.state, row.submit, row.begin, row.accrue, row.begin_at = PENDING, now, 0, 0, now + delay
    row.restarts += 1
    submit(world, job, now)


@inner
def release(world: Block, job: int, now: int) -> None:
    """Let a held job wait like any other."""
    row = world.jobs[job]
    if row.state == FUTURE:
        return
    row.state, row.begin = PENDING, 0
    is_eligible(world, job, now)
    set_priority(world, job, now)
    world.count.stale = 1
    world.count.wanted = 1
    note_change(world, now)


@inner
def is_eligible(world: Block, job: int, now: int) -> bool:
    """Return whether a waiting job could start, its resources apart; the first time, its age begins.

    The age of a job that waits for a time begins then, that of any other when it is first seen to be eligible.
    """
    row = world.jobs[job]
    if row.state != PENDING or row.unmet > 0 or row.begin_at > now or not has_reservation_begun(world, job, now):
        return False
    if row.begin == 0:
        row.begin = max(row.begin_at, row.submit) if row.begin_at > 0 else now
        if row.accrue == 0 and world.rules.limits_accrual == 0:
            row.accrue = row.begin
    return True


@inner
def see_eligible(world: Block, now: int) -> None:
    """Let the age begin of all waiting jobs that have become eligible. O(waiting)."""
    for i in range(world.count.waiting):
        if world.jobs[world.waiting[i]].begin == 0:
            is_eligible(world, world.waiting[i], now)


@inner
def leave_queue(world: Block, job: int) -> None:
    """Remove a job from the queue, if it is there."""
    stop_to_accrue(world, job)
    count, waiting, places = world.count, world.waiting, world.waiting_places
    place = int64(places[job])
    if place < count.waiting and waiting[place] == job:
        count.waiting -= 1
        waiting[place] = waiting[count.waiting]
        places[waiting[place]] = place


@inner
def cancel(world: Block, job: int, now: int) -> None:
    """Take a job out that has not started."""
    row = world.jobs[job]
    if row.state == PENDING or row.state == HELD:
        leave_queue(world, job)
        row.state = GONE
        _count_leaving(world, job, now)
        _free_dependents(world, job, now, False)
        note_change(world, now)
    elif row.state == FUTURE:
        row.state = GONE


# --- running ---
@inner
def expected_end(world: Block, job: int, now: int) -> int:
    """Return when a running job ends at the latest; one that is overdue is expected a little later."""
    row, rules = world.jobs[job], world.rules
    if row.until > now:
        return row.until
    over = world.partitions[row.part].over_time
    if over < 0:  # it is never killed
        return now + row.limit * 60
    late = row.until + rules.kill_wait + over * 60
    return max(late, now + 1)


@inner
def _real_end(world: Block, job: int) -> float:
    """Return when a job that starts now ends: its run, or the first check of time limits after its limit."""
    row = world.jobs[job]
    over = world.partitions[row.part].over_time
    finish = row.start + row.run
    if over >= 0 and row.limit >= 0:
        limit = row.start + (row.limit + over) * 60
        check = limit + (world.count.limit_phase - limit) % 30
        finish = min(finish, check * 1.0)
    limit = end_in_reservation(world, job, row.start)
    if limit >= 0:  # killed by the first check after it
        finish = min(finish, (limit + 1 + (world.count.limit_phase - limit - 1) % 30) * 1.0)
    return finish


@inner
def start(world: Block, job: int, part: int, now: int, by: int) -> None:
    """Start a job on the nodes that were chosen for it."""
    row, count = world.jobs[job], world.count
    if row.granted >= 0:
        row.limit = row.granted
    begin = boot_chosen(world, now) + _placement(world, job, now)
    row.state, row.start, row.part, row.started_by = RUNNING, begin, part, by
    row.until = begin + row.limit * 60
    row.piece0, row.pieces = count.pieces, count.chosen
    row.cpus, row.counted_cpus = count.chosen_cpus, count.chosen_cpus
    for i in range(count.chosen):
        node = world.chosen[i]
        place, piece = world.nodes[node], world.pieces[count.pieces]
        cpus = world.taken_cpus[node]
        cores = (cpus + place.threads - 1) // place.threads
        memory = row.memory
        if row.memory == 0 and row.memory_per_cpu == 0:
            memory = place.memory
        elif row.memory_per_cpu == 1:
            memory = row.memory * cores * place.threads
        piece.node, piece.cores, piece.cpus, piece.memory = node, cores, cpus, memory
        count.pieces += 1
        take_on_node(world, node, part, cores, memory, row.gpus)
    leave_queue(world, job)
    row.billing = billing_of(world, job)
    count_start(world, job)
    take_licences(world, job)
    if row.array >= 0:
        world.jobs[row.array].running_tasks += 1
    entry = world.starts[count.starts]
    entry.job, entry.part, entry.start, entry.end, entry.by = job, part, begin, -1, by
    entry.piece0, entry.pieces, entry.priority = row.piece0, row.pieces, _priority_in(world, job, part)
    entry.cpus = row.cpus
    row.log, row.fate, row.yields = count.starts, STAYS, 0
    count.starts += 1
    if by != BY_HISTORY:
        row.finish = _real_end(world, job)
    add_running(world, job)
    push(world.ends_at, world.ends_job, world.ends_place, count.ends, row.finish, job)
    count.ends += 1
    for i in range(row.after0, row.after0 + row.afters):
        if world.after[i].kind == AFTER_START and row.restarts == 0:
            dependent = world.jobs[world.after[i].job]
            dependent.unmet -= 1
            dependent.begin_at = max(dependent.begin_at, now + world.after[i].delay)
    note_change(world, now)


@inner
def _placement(world: Block, job: int, now: int) -> int:
    """Return for how many seconds the nodes of a held job wait for it, until something else than Slurm has placed it.

    `rules.placement` is a bound; a job that was seen and started at once has waited for its placement already.
    """
    row, longest = world.jobs[job], int64(world.rules.placement)
    if row.held_until <= now or row.restarts > 0:
        return int64(0)
    return min(max(now - row.submit - longest, int64(0)), longest)


@inner
def _priority_in(world: Block, job: int, part: int) -> float:
    row = world.jobs[job]
    for slot in range(row.part0, row.part0 + row.parts):
        if world.job_parts[slot] == part:
            return world.part_priority[slot]
    return 0.0


@inner
def end(world: Block, job: int, now: int) -> None:
    """End a running job: its resources are free, and its nodes are completing until they are cleaned up."""
    row, count = world.jobs[job], world.count
    if row.state == SUSPENDED:
        count.suspended -= 1
    row.state = COMPLETING
    world.starts[row.log].end = now
    remove_running(world, job)
    book_end(world, job, now)
    count_end(world, job)
    give_licences(world, job)
    if row.fate == STAYS:
        _count_leaving(world, job, now)
    for i in range(row.piece0, row.piece0 + row.pieces):
        piece = world.pieces[i]
        give_on_node(world, piece.node, row.part, piece.cores, piece.memory, row.gpus)
        world.nodes[piece.node].completing += 1
        drop(world.node_sets[CLEAN], piece.node)
    while count.suspended > 0 and _resume_one(world, now):
        pass
    if row.array >= 0:
        world.jobs[row.array].running_tasks -= 1
    least, most = world.rules.epilog_least, world.rules.epilog_most
    clean = world.clock.now + least + (most - least) * draw(world)
    push(world.epilogs_at, world.epilogs_job, None, count.epilogs, max(clean, row.clean), job)
    count.epilogs += 1
    note_change(world, now)


@inner
def suspend(world: Block, job: int, now: int) -> None:
    """Let a running job stand still: it keeps its nodes and memory, and others may have its cores."""
    row = world.jobs[job]
    book_end(world, job, now)
    world.pauses[job].rest, world.pauses[job].since = row.finish - world.clock.now, now
    row.state = SUSPENDED
    world.count.suspended += 1
    finish_at(world, job, _NEVER)
    note_change(world, now)


@inner
def _resume_one(world: Block, now: int) -> bool:
    """Let the suspended job with the earliest end run on whose cores are free again; return whether there is one.

    Its time limit ends as much later as it stood still.
    """
    running = running_jobs(world)
    for place in range(world.count.running):
        job = running[place]
        row = world.jobs[job]
        if row.state == SUSPENDED and _has_its_cores(world, job):
            row.state = RUNNING
            world.count.suspended -= 1
            finish_at(world, job, world.clock.now + world.pauses[job].rest)
            end_until(world, job, row.until + now - world.pauses[job].since)
            note_change(world, now)
            return True
    return False


@inner
def _has_its_cores(world: Block, job: int) -> bool:
    """Return whether no other job has the cores of a suspended one: then none of its nodes has more jobs than cores."""
    row, fewest = world.jobs[job], int64(0)
    for k in range(row.piece0, row.piece0 + row.pieces):
        fewest = min(fewest, world.views[NOW, world.pieces[k].node].cores)
    return bool(fewest >= 0)


@inner
def first_end(world: Block) -> int:
    """Take the next job to end off the heap."""
    job = world.ends_job[0]
    world.count.ends -= 1
    remove_first(world.ends_at, world.ends_job, world.ends_place, world.count.ends)
    return int64(job)


@inner
def finish_at(world: Block, job: int, time: float) -> None:
    """Let a running job end at another time."""
    world.jobs[job].finish = time
    rekey(world.ends_at, world.ends_job, world.ends_place, world.count.ends, time, job)


@inner
def first_epilog(world: Block) -> int:
    """Take the next job whose nodes are clean off the heap."""
    job = world.epilogs_job[0]
    world.count.epilogs -= 1
    remove_first(world.epilogs_at, world.epilogs_job, None, world.count.epilogs)
    return int64(job)


@inner
def clean_up(world: Block, job: int, now: int) -> None:
    """The nodes of an ended job are clean: they take new jobs, and its dependents learn of its end."""
    row = world.jobs[job]
    for i in range(row.piece0, row.piece0 + row.pieces):
        node = world.pieces[i].node
        world.nodes[node].completing -= 1
        if world.nodes[node].completing == 0:
            add(world.node_sets[CLEAN], node)
    if row.fate == IS_REQUEUED:
        count_departure(world, job)
        requeue(world, job, now, int64(REQUEUE_S))
        return
    row.state = GONE
    if row.fate != STAYS:
        row.successful = 0
        _count_leaving(world, job, now)
    _free_dependents(world, job, now, row.successful == 1)
    note_change(world, now)


@inner
def _free_dependents(world: Block, job: int, now: int, successful: bool) -> None:
    row = world.jobs[job]
    for i in range(row.after0, row.after0 + row.afters):
        kind = world.after[i].kind
        met = kind == AFTER_ANY or (kind == AFTER_OK and successful) or (kind == AFTER_NOT_OK and not successful)
        if met or (kind == AFTER_START and row.start == 0):
            dependent, delay = world.jobs[world.after[i].job], world.after[i].delay
            dependent.unmet -= 1
            if kind != AFTER_START and delay > 0:
                dependent.begin_at = max(dependent.begin_at, now + delay)
            is_eligible(world, world.after[i].job, now)
        elif kind != AFTER_START:
            world.jobs[world.after[i].job].never = 1
