"""Running a whole workflow: the event loop.

Rule: at each instant all ends are processed, then every ready job is offered in order, then the touched
components are re-rated once. Cost: O(log nodes) an event plus the solver on touched components plus the policy.
"""

from __future__ import annotations

import math

from .component import rerate
from .jit import inner
from .layout import (
    DONE,
    EVALUATIONS,
    FORCED,
    HEAP,
    MOM,
    NOBODY,
    ONE,
    POWERED,
    READY,
    RUNNING,
    RUNNING_JOBS,
    SIMPLE,
    WAITING,
    ZERO,
)
from .mapping import choose, fits, note_end
from .queues import heap_update, queue_pop, queue_push
from .tables import INSTANT, charge, end_strand, note_waits, phase_at, place, touch

FINISHED, STUCK, CUT = 0, 1, 2


@inner
def begin(world, scratch):
    """Initial pass over a fresh world: queue the jobs that wait for nothing, start those that are under way."""
    scratch.touched[0] = 0
    scratch.row_class[:] = -1
    now = world.clock[0]
    note_waits(world)
    for job in range(len(world.jobs)):
        j = world.jobs[job]
        if j.state == RUNNING:
            place(world, scratch, job, now)
        elif j.state == WAITING and j.blockers == 0:
            _ready(world, job)


@inner
def _ready(world, job):
    world.jobs[job].state = READY
    queue_push(world, job)


@inner
def _release(world, job, sequence, by_key):
    """A job ended: note who waits for nothing else. Returns how many became ready (held at the end of `queued`)."""
    j = world.jobs[job]
    ready = 0
    for i in range(j.succ_start, j.succ_start + j.succ_count):
        other = world.jobs[world.successors[i]]
        other.blockers -= 1
        if other.blockers == 0 and other.state == WAITING:
            _queue_in_order(world, world.successors[i], sequence, by_key)
            ready += 1
    waiter = j.waiter
    while waiter >= 0:
        other = world.jobs[waiter]
        other.blockers -= 1
        if other.blockers == 0 and other.state == WAITING:
            _queue_in_order(world, waiter, sequence, by_key)
            ready += 1
        waiter = other.next_waiter
    return ready


@inner
def _queue_in_order(world, job, sequence, by_key):
    """Order of mapping: the time a job became ready, then its place in the file; or the caller's own keys."""
    if by_key == 0:
        world.jobs[job].key = sequence * float(len(world.jobs)) + job
    _ready(world, job)


@inner
def offer_ready(world, scratch, policy, now):
    """Offer every queued job its chance to start, in key order; a queue whose head fits nowhere is passed over."""
    queues = world.queues
    for q in range(len(queues)):
        queues[q].blocked = 0
    room = _most_room(world) if policy != FORCED else math.inf
    while True:
        best, key = NOBODY, math.inf
        for q in range(len(queues)):
            if queues[q].length > 0 and queues[q].blocked == 0:
                head = world.jobs[world.queued[queues[q].start]].key
                if head < key:
                    best, key = q, head
        if best < 0:
            return
        job = world.queued[queues[best].start]
        j = world.jobs[job]
        if policy == FORCED:
            possible = True
            for i in range(world.classes[j.cls].nodes):
                possible = possible and fits(world, world.placed[j.place0 + i], world.classes[j.cls])
        else:
            possible = world.classes[j.cls].threads <= room and choose(world, scratch, job, policy, now)
        if possible:
            queue_pop(world, best)
            place(world, scratch, job, now)
            if policy == MOM and world.count[SIMPLE] == 1:
                note_end(world, world.placed[j.place0], now + j.score, True)
            if policy != FORCED and len(queues) > 8:
                room = _most_room(world)
        else:
            queues[best].blocked = 1


@inner
def _most_room(world):
    """Most threads that any node can still take: jobs that want more need no closer look."""
    room = 0.0
    for n in range(len(world.nodes)):
        room = max(room, world.nodes[n].limit - world.nodes[n].alloc)
    return room + 1e-9


@inner
def _end_on_node(world, scratch, n, now, horizon, sequence, by_key):
    """Process all strands of a node that end, or change phase, by `horizon`."""
    p = world.nodes[n].head
    while p >= 0:
        after = world.parts[p].next
        s = world.parts[p].strand
        strand = world.strands[s]
        if strand.finish <= horizon:
            touch(world, scratch, n, now)
            if strand.phase + 1 < world.groups[strand.group].phase_count:
                strand.phase += 1
                work = world.phases[phase_at(world, strand.group, strand.phase, strand.type)].work
                strand.rem = work * world.jobs[strand.job].scale
                strand.rate, strand.last, strand.finish = 0.0, now, math.inf
            elif end_strand(world, scratch, s, now):
                _release(world, strand.job, sequence, by_key)
        p = after


@inner
def _instant(world, scratch, now, sequence, by_key):
    """Process everything that ends at `now`; the touched nodes are left to be re-rated."""
    horizon = now + INSTANT + 1e-15 * now
    while world.count[HEAP] > 0 and world.nodes[world.heap[0]].next <= horizon:
        n = world.heap[0]
        _end_on_node(world, scratch, n, now, horizon, sequence, by_key)
        world.nodes[n].next = math.inf
        heap_update(world, n)


@inner
def advance(world, scratch, until):
    """Let what runs go on until `until`; nothing new is started."""
    while world.nodes[world.heap[0]].next <= until:
        now = world.nodes[world.heap[0]].next
        _instant(world, scratch, now, 1.0, ONE)
        rerate(world, scratch, now)
    world.clock[0] = until
    for n in range(len(world.nodes)):
        charge(world, n, until)


@inner
def simulate(world, scratch, policy, by_key, cutoff):
    """Run until all jobs have ended. Returns FINISHED, STUCK (a waiting job can never start) or CUT (makespan
    passed `cutoff`). The clock is left at the end."""
    begin(world, scratch)
    sequence, now = 1.0, world.clock[0]
    while True:
        offer_ready(world, scratch, policy, now)
        rerate(world, scratch, now)
        if world.count[RUNNING_JOBS] == 0:
            break
        now = world.nodes[world.heap[0]].next
        if now > cutoff:
            return CUT
        _instant(world, scratch, now, sequence, by_key)
        sequence += 1.0
    world.clock[0] = now
    for n in range(len(world.nodes)):
        charge(world, n, now)
    for job in range(len(world.jobs)):
        if world.jobs[job].state != DONE:
            return STUCK
    return FINISHED


@inner
def total_energy(world):
    """Joules of all nodes so far; nan where a node's power is unknown."""
    if world.count[POWERED] == 0:
        return math.nan
    total = 0.0
    for n in range(len(world.nodes)):
        total += world.nodes[n].energy
    return total


@inner
def _misplaced(world, scratch):
    """First job that is put on a node twice, or on one that is not there, or waits for no job that is; -1: none."""
    for job in range(len(world.jobs)):
        j = world.jobs[job]
        if scratch.wait_for[job] >= len(world.jobs):
            return job
        for i in range(j.place0, j.place0 + world.classes[j.cls].nodes):
            if j.state != DONE and not 0 <= scratch.places[i] < len(world.nodes):
                return job
            for k in range(j.place0, i):
                if j.state != DONE and scratch.places[k] == scratch.places[i]:
                    return job
    return -1


@inner
def evaluate(world, scratch, cutoff):
    """Run a fresh world with the mapping, order, extra waits and throttles that scratch holds. Returns (makespan,
    joules), both inf when cut off or stuck; (nan, job) when that job's places or wait make no sense. Used by
    searches: one call, no Python inside."""
    misplaced = _misplaced(world, scratch)
    if misplaced >= 0:
        return math.nan, float(misplaced)
    world.count[EVALUATIONS] += 1
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
    if simulate(world, scratch, FORCED, ONE, cutoff) != FINISHED:
        return math.inf, math.inf
    return world.clock[0], total_energy(world)
