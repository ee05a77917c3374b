"""DESiDE's interval simulation (Chahal et al., ICPE 2019, 4.3-4.4), run event by event.

Rule: a thread is busy for u*T core-seconds, then idle for (1-u)*T seconds, both jittered (eq. 6-9); there are no time
steps. Each thread draws its jitter from its own stream, so results for a seed do not depend on the order of events. A
thread's memory dilation is set when its interval begins, and again when threads start or end.
Complexity: the busy threads of a job on a node share one virtual clock, so an event costs O(jobs on the node + log
threads).
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from ..compile import WorldType, register
from ..jit import inner
from ..mapping.choose import fits
from ..mapping.layout import DONE, EQUAL_SHARE, NONE, RUNNING, WAITING
from ..mapping.queues import heap_update
from ..mapping.tables import INSTANT, link_extra_waits, phase_after, phase_at, watts
from .tables import Intervals

BUSY, IDLE = 0, 1


IntervalsType = register(Intervals, __name__)


# --- heaps of (key, thread), each a slice of the tables ---
@inner
def sift(keys, ids, base, size, i):
    """Move entry `i` down to its position."""
    key, item = keys[base + i], ids[base + i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and keys[base + child + 1] < keys[base + child]:
            child += 1
        if keys[base + child] >= key:
            break
        keys[base + i], ids[base + i] = keys[base + child], ids[base + child]
        i = child
    keys[base + i], ids[base + i] = key, item


@inner
def push(keys, ids, base, size, key, item):
    """Add an entry to a heap of `size`."""
    i = size
    while i > 0 and key < keys[base + (i - 1) // 2]:
        keys[base + i], ids[base + i] = keys[base + (i - 1) // 2], ids[base + (i - 1) // 2]
        i = (i - 1) // 2
    keys[base + i], ids[base + i] = key, item


@inner
def pop(keys, ids, base, size):
    """Remove the first entry and return its key and thread."""
    key, item = keys[base], ids[base]
    keys[base], ids[base] = keys[base + size - 1], ids[base + size - 1]
    sift(keys, ids, base, size - 1, 0)
    return key, item


# --- one thread ---
@inner
def uniform(thread):
    """Draw a number in [0, 1) from a thread's own stream: splitmix64 (Steele, Lea and Flood 2014)."""
    thread.random += np.uint64(0x9E3779B97F4A7C15)
    z = thread.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@inner
def begin_interval(world, own, t, kind, begin, interval):
    """Draw a thread's next interval (eq. 6-9) and make it busy from clock `begin` of its job on."""
    thread = own.threads[t]
    u = world.phases[phase_at(world, thread.group, thread.phase, kind)].utilisation
    spread = own.sigma[thread.group]
    busy = u * interval * (1.0 + spread * (2.0 * uniform(thread) - 1.0))
    idle = (1.0 - u) * interval * (1.0 + spread * (2.0 * uniform(thread) - 1.0))
    if busy * (1.0 + 1e-9) >= thread.rem:
        idle *= thread.rem / busy
        busy = thread.rem
    thread.busy, thread.idle, thread.begin, thread.m = busy, idle, begin, 1.0
    own.seats[thread.job].busy += 1
    own.lanes[lane_of(world, own, thread)].busy += 1


@inner
def lane_of(world, own, thread):
    """Return the row of the lane of a thread: its job's phase."""
    first = world.groups[world.classes[world.jobs[thread.job].cls].group_start].phase_start
    return own.seats[thread.job].lane0 + world.groups[thread.group].phase_start + thread.phase - first


@inner
def end_busy_part(world, own, thread, kind):
    """End a busy part. Return 0 if work is left, 1 if it is in another phase, 2 if the thread has ended."""
    lane = lane_of(world, own, thread)
    own.seats[thread.job].busy -= 1
    own.lanes[lane].busy -= 1
    thread.rem -= thread.busy
    if thread.rem > 0.0:
        return 0
    own.lanes[lane].alive -= 1
    if thread.phase + 1 == world.groups[thread.group].phase_count:
        return 2
    thread.phase += 1
    thread.rem = demand(world, thread, kind)
    own.lanes[lane + 1].alive += 1
    return 1


@inner
def demand(world, thread, kind):
    """Return the core-seconds of a thread's phase."""
    row = world.phases[phase_at(world, thread.group, thread.phase, kind)]
    return row.work * row.utilisation


# --- one node ---
@inner
def _advance(world, own, n, now):
    """Advance a node's clocks and energies to `now`."""
    node = world.nodes[n]
    span = now - node.energy_time
    if span <= 0.0:
        return
    node.energy_time = now
    powered, each = world.count.powered == 1, 0.0
    if powered:
        kind = world.types[node.type]
        node.energy += watts(kind, node.busy) * span
        each = kind.watts_slope + kind.watts_base / node.busy if node.busy > 0.0 else 0.0
    job = node.head
    while job >= 0:
        seat = own.seats[job]
        seat.clock += seat.rate * span
        world.jobs[job].energy += each * seat.busy * seat.rate * span
        job = seat.link


@inner
def _share_cores(world, own, n):
    """Share the cores between all busy threads, or between jobs first and then between each job's threads."""
    node = world.nodes[n]
    kind = world.types[node.type]
    total, jobs = 0, 0
    job = node.head
    while job >= 0:
        total += own.seats[job].busy
        jobs += own.seats[job].busy > 0
        job = own.seats[job].link
    level = kind.cores / jobs if kind.per_job and total > kind.cores else math.inf
    while level < math.inf:
        used, rest = 0.0, 0
        job = node.head
        while job >= 0:
            used += own.seats[job].busy if own.seats[job].busy <= level else 0
            rest += own.seats[job].busy > level
            job = own.seats[job].link
        higher = (kind.cores - used) / rest if rest > 0 else level
        if higher <= level * (1.0 + 1e-15):
            break
        level = higher
    node.busy = 0.0
    job = node.head
    while job >= 0:
        seat = own.seats[job]
        seat.rate = min(1.0, level / seat.busy if kind.per_job else kind.cores / total)
        node.busy += seat.busy * seat.rate
        job = seat.link


@inner
def _memory_level(world, own, n):
    """Return the present bandwidth limit of a contending thread: BW/n (eq. 11) or the max-min level."""
    node = world.nodes[n]
    kind = world.types[node.type]
    if kind.contention == NONE:
        return math.inf
    level = 0.0
    while True:
        used, rest = 0.0, 0.0
        job = node.head
        while job >= 0:
            seat = own.seats[job]
            first = world.groups[world.classes[world.jobs[job].cls].group_start].phase_start
            for i in range(seat.lanes):
                lane = own.lanes[seat.lane0 + i]
                weight = float(lane.alive) if kind.all_threads else lane.busy * seat.rate
                b = world.phases[(first + i) * len(world.types) + node.type].bandwidth
                if kind.contention != EQUAL_SHARE and b <= level:
                    used += weight * b
                else:
                    rest += weight
            job = seat.link
        if rest <= 0.0:
            return math.inf
        higher = (kind.bandwidth - used) / rest
        if kind.contention == EQUAL_SHARE or higher <= level * (1.0 + 1e-15):
            return higher if kind.contention == EQUAL_SHARE else level
        level = higher


@inner
def _dilation(world, thread, node, level):
    """Return the dilation m = 1 + sigma_bw * (0.75 + 0.25 * delta_rl) (eq. 10, 12, 14)."""
    b = world.phases[phase_at(world, thread.group, thread.phase, node.type)].bandwidth
    return 1.0 + max(0.0, b / level - 1.0) * world.types[node.type].remote


@inner
def _update_node(world, own, n_fresh, n, now, everyone):
    """Update a node after changes: core shares, dilations of threads whose interval begins or of all, next event."""
    _share_cores(world, own, n)
    node = world.nodes[n]
    level = _memory_level(world, own, n)
    for i in range(n_fresh):
        thread = own.threads[own.fresh[i]]
        seat = own.seats[thread.job]
        thread.m = _dilation(world, thread, node, level)
        end = thread.begin + thread.busy * thread.m
        push(own.keys[BUSY], own.ids[BUSY], seat.thread0, seat.queued, end, own.fresh[i])
        seat.queued += 1
    node.next = math.inf
    job = node.head
    while job >= 0:
        seat = own.seats[job]
        base = seat.thread0
        if everyone and world.types[node.type].contention != NONE:
            for i in range(base, base + seat.queued):
                thread = own.threads[own.ids[BUSY, i]]
                m = _dilation(world, thread, node, level)
                own.keys[BUSY, i] = seat.clock + (own.keys[BUSY, i] - seat.clock) * (m / thread.m)
                thread.m = m
            for i in range(seat.queued // 2 - 1, -1, -1):
                sift(own.keys[BUSY], own.ids[BUSY], base, seat.queued, i)
        if seat.queued > 0:
            node.next = min(node.next, now + max(0.0, own.keys[BUSY, base] - seat.clock) / seat.rate)
        if seat.asleep > 0:
            node.next = min(node.next, max(now, own.keys[IDLE, base]))
        job = seat.link
    heap_update(world, n)


@inner
def _events(world, own, n, now, interval):
    """Process all events due on a node. Return how many jobs ended."""
    _advance(world, own, n, now)
    kind, slack = world.nodes[n].type, 1e-12 + 1e-14 * now
    n_fresh, ended, everyone = 0, 0, False
    job, before = world.nodes[n].head, -1
    while job >= 0:
        seat = own.seats[job]
        base, after = seat.thread0, seat.link
        while seat.queued > 0 and own.keys[BUSY, base] <= seat.clock + slack:
            key, t = pop(own.keys[BUSY], own.ids[BUSY], base, seat.queued)
            seat.queued -= 1
            outcome = end_busy_part(world, own, own.threads[t], kind)
            everyone = everyone or outcome > 0
            if outcome == 2:
                world.jobs[job].left -= 1
            elif own.threads[t].idle > 0.0:
                push(own.keys[IDLE], own.ids[IDLE], base, seat.asleep, now + own.threads[t].idle, t)
                seat.asleep += 1
            else:
                begin_interval(world, own, t, kind, key, interval)
                own.fresh[n_fresh] = t
                n_fresh += 1
        while seat.asleep > 0 and own.keys[IDLE, base] <= now + slack:
            _, t = pop(own.keys[IDLE], own.ids[IDLE], base, seat.asleep)
            seat.asleep -= 1
            begin_interval(world, own, t, kind, seat.clock, interval)
            own.fresh[n_fresh] = t
            n_fresh += 1
        if world.jobs[job].left == 0:
            _end_job(world, own, job, n, before, now)
            ended += 1
        else:
            before = job
        job = after
    _update_node(world, own, n_fresh, n, now, everyone)
    return ended


# --- jobs ---
@inner
def _end_job(world, own, job, n, before, now):
    """Remove an ended job from its node and release the jobs that depend on it."""
    j, node = world.jobs[job], world.nodes[n]
    if before >= 0:
        own.seats[before].link = own.seats[job].link
    else:
        node.head = own.seats[job].link
    node.alloc -= world.classes[j.cls].threads
    node.used -= world.classes[j.cls].memory
    j.state, j.finish = DONE, now
    world.count.running_jobs -= 1
    for i in range(j.succ_start, j.succ_start + j.succ_count):
        world.jobs[world.successors[i]].blockers -= 1
    waiter = j.waiter
    while waiter >= 0:
        world.jobs[waiter].blockers -= 1
        waiter = world.jobs[waiter].next_waiter


@inner
def _start(world, own, job, now, interval):
    """Start a job on its node, with every thread at the beginning of a busy part."""
    j, seat, n = world.jobs[job], own.seats[job], world.placed[world.jobs[job].place0]
    cls, node = world.classes[j.cls], world.nodes[n]
    _advance(world, own, n, now)
    node.alloc += cls.threads
    node.used += cls.memory
    seat.clock, seat.link, node.head = 0.0, node.head, job
    j.state, j.start, j.left = RUNNING, now, seat.threads
    world.count.running_jobs += 1
    t = seat.thread0
    for g in range(cls.group_start, cls.group_start + cls.group_count):
        for _ in range(int(world.groups[g].count)):
            thread = own.threads[t]
            thread.job, thread.group = job, g
            thread.phase, left = phase_after(world, g, node.type, j.progress)
            thread.rem = left * world.phases[phase_at(world, g, thread.phase, node.type)].utilisation
            own.lanes[lane_of(world, own, thread)].alive += 1
            begin_interval(world, own, t, node.type, 0.0, interval)
            own.fresh[t - seat.thread0] = t
            t += 1
    _update_node(world, own, seat.threads, n, now, True)


@inner
def _offer(world, own, first, now, interval):
    """Start ready jobs that fit, in order; on each node the first job that does not fit blocks the others.

    Returns:
        The first position in `order` whose job has not started.
    """
    for n in range(len(world.nodes)):
        world.nodes[n].touched = 0
    for i in range(first, len(own.order)):
        job = own.order[i]
        j = world.jobs[job]
        if j.state != WAITING:
            first += i == first
        elif j.blockers == 0:
            node = world.nodes[world.placed[j.place0]]
            if node.touched == 0 and fits(world, world.placed[j.place0], world.classes[j.cls]):
                _start(world, own, job, now, interval)
            else:
                node.touched = 1
    return first


@inner
def call(world, own, interval):
    """Run fresh tables in which every job has a node; the tables then hold times and energies.

    Returns:
        How many jobs never started.
    """
    now, first = world.clock.now, 0
    link_extra_waits(world)
    for job in range(len(world.jobs)):
        if world.jobs[job].state == RUNNING:
            _start(world, own, job, now, interval)
    ended = 1
    while True:
        if ended > 0:
            first = _offer(world, own, first, now, interval)
        if world.count.running_jobs == 0:
            break
        now = world.nodes[world.heap[0]].next
        horizon, ended = now + INSTANT + 1e-15 * now, 0
        while True:
            ended += _events(world, own, world.heap[0], now, interval)
            soonest = world.nodes[world.heap[0]].next
            if ended == 0 or soonest > horizon:
                break
            now = max(now, soonest)
    world.clock.now = now
    for n in range(len(world.nodes)):
        _advance(world, own, n, now)
    stuck = 0
    for job in range(len(world.jobs)):
        stuck += world.jobs[job].state != DONE
    return stuck


SIGNATURES = {"deside.interval": (WorldType(), IntervalsType(), types.float64)}
