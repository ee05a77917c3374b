"""The event loop of the fluid simulation: run a whole workflow, or the jobs of a trace.

Rule: at each instant all ends are processed, then all submissions, then every ready job may start, in order, then the
rates of the touched components are updated once. Complexity: O(log nodes) per event, plus the solver on touched
components and the policy.
"""

from __future__ import annotations

import math

from ..block import int64
from ..jit import inner
from .backfilling import insert, run_pass
from .choose import choose, fits, note_end, spare_threads
from .component import rerate
from .layout import (
    CUT,
    DONE,
    FINISHED,
    FORCED,
    HIGH_GFLOPS,
    MOM,
    NO_INDEX,
    ONE,
    PAUSED,
    RANDOM_CORE,
    READY,
    RUNNING,
    STUCK,
    WAITING,
    ZERO,
    Scratch,
    World,
)
from .program_phases import must_pause, next_phase, waits
from .queues import first_jobs, next_queue, queue_pop, queue_push, reschedule
from .tables import INSTANT, account, end_strand, kill, link_extra_waits, phase_at, place, touch, withdraw
from .task_rules import start_tasks

ALL = int64(2**62)


@inner
def begin(world: World, scratch: Scratch) -> None:
    """Initialise fresh tables: queue the jobs without blockers, place those that already run."""
    scratch.listed.touched = 0
    scratch.row_class[:] = -1
    now = world.clock.now
    link_extra_waits(world)
    for job in range(len(world.jobs)):
        j = world.jobs[job]
        if j.state == RUNNING:
            place(world, scratch, job, now)
        elif j.state == WAITING and j.blockers == 0:
            _ready(world, job)


@inner
def _ready(world: World, job: int) -> None:
    world.jobs[job].state = READY
    if len(world.tree) > 0:
        insert(world, job)
    else:
        queue_push(world, job)


@inner
def _release(world: World, job: int, sequence: float, by_key: int, now: float, well: bool) -> int:
    """Queue the jobs whose last blocker has ended, `well` or not. Return their number."""
    j = world.jobs[job]
    ready, linked = 0, len(world.edges) > 0
    for i in range(j.succ_start, j.succ_start + j.succ_count):
        if not well and not (linked and world.edges[i].any_end == 1):
            continue
        if linked and world.edges[i].delay > 0.0:
            _postpone(world, world.successors[i], now + world.edges[i].delay)
        other = world.jobs[world.successors[i]]
        other.blockers -= 1
        if other.blockers == 0 and other.state == WAITING:
            _queue_in_order(world, world.successors[i], sequence, by_key)
            ready += 1
    waiter = j.waiter if well else NO_INDEX
    while waiter >= 0:
        other = world.jobs[waiter]
        other.blockers -= 1
        if other.blockers == 0 and other.state == WAITING:
            _queue_in_order(world, waiter, sequence, by_key)
            ready += 1
        waiter = other.next_waiter
    return ready


@inner
def _postpone(world: World, job: int, until: float) -> None:
    """Submit a job at `until` if that is later; once more, if it has been submitted. O(submissions until then)."""
    row, arrivals, at = world.jobs[job], world.arrivals, world.count.arrived
    if until <= row.submit:
        return
    while at < len(arrivals) and arrivals[at] != job:
        at += 1
    if at == len(arrivals):
        at = world.count.arrived = world.count.arrived - 1
        world.count.postponed = world.count.postponed + 1
        row.blockers += 1
    row.submit = until
    while at + 1 < len(arrivals) and world.jobs[arrivals[at + 1]].submit <= until:
        arrivals[at] = arrivals[at + 1]
        at += 1
    arrivals[at] = job


@inner
def _queue_in_order(world: World, job: int, sequence: float, by_key: int) -> None:
    """Queue a job in the order of mapping: by the time it became ready, then by file position; or by its key."""
    if by_key == 0 and world.count.keyed == 0:
        world.jobs[job].key = world.jobs[job].base + (sequence * float(len(world.jobs)) + job)
    _ready(world, job)


@inner
def offer_ready(world: World, scratch: Scratch, policy: int, now: float) -> bool:
    """Start queued jobs in key order; a queue whose head fits nowhere is skipped. O(queues + starts x log queues).

    Return whether it has paused after `count.most` forecasts; another call at the same time goes on.
    """
    if policy >= RANDOM_CORE:
        start_tasks(world, scratch, policy, now)
        return False
    listed, until = scratch.listed, world.count.evaluations + world.count.most
    listed.started = 0
    queue_count = first_jobs(world, scratch)
    room = _most_room(world) if queue_count > 0 and policy != FORCED else math.inf
    spare = spare_threads(world) if queue_count > 0 and policy != FORCED else math.inf
    while queue_count > 0:
        if listed.started > 0 and world.count.most > 0 and world.count.evaluations > until:
            return True
        queue = scratch.heads[0]
        job = world.queued[world.queues[queue].start]
        j = world.jobs[job]
        if policy == FORCED:
            possible = True
            for i in range(world.classes[j.cls].nodes):
                possible = possible and fits(world, world.placed[j.place0 + i], world.classes[j.cls])
        else:
            cls = world.classes[j.cls]
            possible = cls.threads <= room and cls.threads * cls.nodes <= spare
            possible = possible and choose(world, scratch, job, policy, now)
        if possible:
            spare -= world.classes[j.cls].threads * world.classes[j.cls].nodes
            queue_pop(world, queue)
            place(world, scratch, job, now)
            scratch.started[listed.started] = job
            listed.started += 1
            if policy == MOM and world.count.simple == 1 and world.classes[j.cls].nodes == 1:
                note_end(world, world.placed[j.place0], now + j.score, True)
            if policy != FORCED and queue_count > 8:
                room = _most_room(world)
        queue_count = next_queue(world, scratch, queue_count, not possible or world.queues[queue].length == 0)
    return False


@inner
def _most_room(world: World) -> float:
    """Return the most threads that any node can still take; jobs that need more cannot start."""
    room = 0.0
    for n in range(len(world.nodes)):
        room = max(room, world.nodes[n].limit - world.nodes[n].alloc)
    return room + 1e-9


@inner
def _end_on_node(
    world: World, scratch: Scratch, n: int, now: float, horizon: float, sequence: float, by_key: int
) -> None:
    """Process all strands of a node that end, change phase or reach their walltime by `horizon`."""
    p = world.nodes[n].head
    while p >= 0:
        after = world.parts[p].next
        s = world.parts[p].strand
        strand = world.strands[s]
        if strand.finish <= horizon:
            touch(world, scratch, n, now)
            late = strand.last + strand.rem / strand.rate > horizon
            if late or (strand.until <= horizon and waits(world, s)):
                kill(world, scratch, strand.job, now)
                _release(world, strand.job, sequence, by_key, now, False)
                after = world.nodes[n].head  # others of its parts may have been next
            elif strand.phase + 1 < world.groups[strand.group].phase_count:
                strand.phase += 1
                work = world.phases[phase_at(world, strand.group, strand.phase, strand.type)].work
                strand.rem = work * world.jobs[strand.job].scale
                strand.rate, strand.last, strand.finish = 0.0, now, math.inf
            elif next_phase(world, s, now):
                pass
            elif end_strand(world, scratch, s, now):
                _release(world, strand.job, sequence, by_key, now, True)
        p = after


@inner
def _submit(world: World, now: float, sequence: float, by_key: int) -> None:
    """Submit the jobs whose time has come. Those that wait for others become ready later."""
    while world.count.arrived < len(world.arrivals):
        job = world.arrivals[world.count.arrived]
        j = world.jobs[job]
        if j.submit > now:
            return
        world.count.arrived += 1
        j.blockers -= 1
        if j.blockers == 0:
            _queue_in_order(world, job, sequence, by_key)


@inner
def next_instant(world: World) -> float:
    """Return when something happens next: an end, a change of phase or a submission; inf if nothing does. O(1)."""
    soonest = world.heap_time[0]
    if world.count.arrived < len(world.arrivals):
        soonest = min(soonest, world.jobs[world.arrivals[world.count.arrived]].submit)
    return soonest


@inner
def _instant(world: World, scratch: Scratch, now: float, sequence: float, by_key: int) -> None:
    """Process all ends at `now`, then all submissions; the caller updates the rates of the touched nodes."""
    horizon = now + INSTANT + 1e-15 * now
    while world.heap_time[0] <= horizon:
        n = world.heap[0]
        _end_on_node(world, scratch, n, now, horizon, sequence, by_key)
        reschedule(world, n, math.inf)
    _submit(world, now, sequence, by_key)


@inner
def step(world: World, scratch: Scratch, now: float) -> None:
    """Process all ends at `now`, then all submissions, and start nothing; nothing happens before."""
    world.clock.now = now
    world.count.instants += 1
    _instant(world, scratch, now, float(world.count.instants), ZERO)
    rerate(world, scratch, now)


@inner
def decide(world: World, scratch: Scratch, policy: int, now: float) -> None:
    """Find out which jobs a pass would start now; they leave the queue and have nodes in their `placed` slots."""
    offer_ready(world, scratch, policy, now)
    for i in range(scratch.listed.started - 1, -1, -1):
        withdraw(world, scratch, scratch.started[i], now)
    if policy == HIGH_GFLOPS:
        rerate(world, scratch, now)  # its pass has counted the jobs that start
    for i in range(scratch.listed.touched):
        world.nodes[scratch.touched[i]].touched = 0
    scratch.listed.touched = 0


@inner
def start(world: World, scratch: Scratch, now: float) -> None:
    """Start the jobs of the last `decide`."""
    for i in range(scratch.listed.started):
        place(world, scratch, scratch.started[i], now)
    rerate(world, scratch, now)


@inner
def advance(world: World, scratch: Scratch, until: float) -> None:
    """Advance the running jobs until `until` without starting others."""
    while next_instant(world) <= until:
        now = next_instant(world)
        world.count.instants += 1
        _instant(world, scratch, now, 1.0, ONE)
        rerate(world, scratch, now)
    world.clock.now = until
    for n in range(len(world.nodes)):
        account(world, n, until)


@inner
def simulate(world: World, scratch: Scratch, policy: int, by_key: int, cutoff: float, instants: int) -> int:
    """Run until all jobs have ended; the clock then holds the end.

    Args:
        world: tables of the simulation.
        scratch: working space of the kernels.
        policy: code of the policy.
        by_key: 1 if the keys of the jobs are their order, 0 if it is the time at which they become ready.
        cutoff: stop when the makespan passes this.
        instants: pause after so many instants, after `count.most` forecasts at one, or when the power log must be
            emptied; a call with the same tables goes on.

    Returns:
        FINISHED, STUCK (a waiting job can never start), CUT (the makespan passed `cutoff`) or PAUSED.
    """
    if world.count.instants == 0:
        begin(world, scratch)
    now = world.clock.now
    while True:
        if len(world.tree) > 0:
            run_pass(world, scratch, policy, now)
        elif offer_ready(world, scratch, policy, now):
            world.count.instants = max(ONE, world.count.instants)  # it has begun
            return PAUSED
        rerate(world, scratch, now)
        soonest = next_instant(world)
        if soonest == math.inf:
            break
        if soonest > cutoff:
            return CUT
        if instants == 0 or must_pause(world):
            return PAUSED
        instants -= 1
        now = world.clock.now = soonest
        world.count.instants += 1
        _instant(world, scratch, now, float(world.count.instants), by_key)
    for n in range(len(world.nodes)):
        account(world, n, now)
    for job in range(len(world.jobs)):
        if world.jobs[job].state != DONE:
            return STUCK
    return FINISHED


@inner
def total_energy(world: World) -> float:
    """Return the joules of all nodes so far; nan if the power of a node is not known."""
    if world.count.powered == 0:
        return math.nan
    total = 0.0
    for n in range(len(world.nodes)):
        total += world.nodes[n].energy
    return total


@inner
def _misplaced(world: World, scratch: Scratch) -> int:
    """Return the first job with a duplicate or unknown node, or an unknown job to wait for; -1 if none. O(slots)."""
    last = scratch.values  # job that has each node, of those so far
    last[:] = -1.0
    for job in range(len(world.jobs)):
        j = world.jobs[job]
        if scratch.wait_for[job] >= len(world.jobs):
            return job
        if j.state == DONE:
            continue
        for i in range(j.place0, j.place0 + world.classes[j.cls].nodes):
            n = scratch.places[i]
            if not 0 <= n < len(world.nodes) or last[n] == job:
                return job
            last[n] = job
    return -1


@inner
def evaluate(world: World, scratch: Scratch, cutoff: float, instants: int) -> tuple[float, float, int]:
    """Run fresh tables with the mapping, order, extra waits and throttles in scratch (for searches).

    Returns:
        (makespan, joules, wrong); the first two are inf if cut off or stuck. `wrong`: a job whose places or wait are
        invalid, or -1. The answer's status is that of `simulate`; after PAUSED the run goes on as one under FORCED.
    """
    scratch.answer.status = CUT
    misplaced = _misplaced(world, scratch)
    if misplaced >= 0:
        return math.inf, math.inf, misplaced
    world.count.evaluations += 1
    queues = world.queues
    for job in range(len(world.jobs)):
        j = world.jobs[job]
        j.key, j.wait_for, j.queue = scratch.keys[job], scratch.wait_for[job], max(ZERO, scratch.places[j.place0])
    for i in range(len(world.placed)):
        world.placed[i] = scratch.places[i]
    for n in range(len(world.nodes)):
        world.nodes[n].cap = scratch.caps[n]
    for q in range(len(queues)):
        queues[q].length, queues[q].start = 0, 0
    for job in range(len(world.jobs)):
        queues[world.jobs[job].queue].start += 1
    at = 0
    for q in range(len(queues)):
        size = queues[q].start
        queues[q].start = at
        at += size
    scratch.answer.status = simulate(world, scratch, FORCED, ONE, cutoff, instants)
    if scratch.answer.status != FINISHED:
        return math.inf, math.inf, NO_INDEX
    return world.clock.now, total_energy(world), NO_INDEX
