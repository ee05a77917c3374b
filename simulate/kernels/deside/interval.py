"""The interval world of DESiDE (Chahal et al., ICPE 2019, 4.3-4.4), run event by event.

Rule: a thread is busy for u*T core-seconds, then idle for (1-u)*T seconds, both jittered; nothing is stepped.
The busy threads of a job on a node advance with one virtual clock, so an event costs O(jobs on the node + log
threads); a thread's memory dilation is set when its interval begins, and again when threads come or go.
A function of its own: who never asks for intervals never loads it.
"""

from __future__ import annotations

import math

from numba.core import types

from .cycle import (
    BUSY,
    IDLE,
    IntervalsType,
    lane_of,
    leaves_core,
    pop,
    push,
    sift,
    wants_core,
)
from .jit import inner
from .layout import DONE, EQUAL_SHARE, NONE, POWERED, RUNNING, RUNNING_JOBS, WAITING
from .mapping import fits
from .native import WorldType
from .queues import heap_update
from .tables import INSTANT, note_waits, phase_at, resume, watts


# --- one node ---
@inner
def _advance(world, own, n, now):
    """Bring a node's clocks and energies to `now`."""
    node = world.nodes[n]
    span = now - node.energy_time
    if span <= 0.0:
        return
    node.energy_time = now
    powered, each = world.count[POWERED] == 1, 0.0
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
    """Processor sharing: between all busy threads, or between jobs first and then between a job's threads."""
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
    """Bandwidth that a contending thread may have at this moment: BW/n (eq. 11) or max-min's water level."""
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
    """m = 1 + sigma_bw * (0.75 + 0.25 * delta_rl) (eq. 10, 12, 14)."""
    b = world.phases[phase_at(world, thread.group, thread.phase, node.type)].bandwidth
    return 1.0 + max(0.0, b / level - 1.0) * world.types[node.type].remote


@inner
def _settle(world, own, n_fresh, n, now, everyone):
    """After changes on a node: new core shares, dilations (of the threads whose interval begins, or of
    `everyone`), next event."""
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
    """Everything that is due on a node. Returns how many jobs ended."""
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
            outcome = leaves_core(world, own, own.threads[t], kind)
            everyone = everyone or outcome > 0
            if outcome == 2:
                world.jobs[job].left -= 1
            elif own.threads[t].idle > 0.0:
                push(own.keys[IDLE], own.ids[IDLE], base, seat.asleep, now + own.threads[t].idle, t)
                seat.asleep += 1
            else:
                wants_core(world, own, t, kind, key, interval)
                own.fresh[n_fresh] = t
                n_fresh += 1
        while seat.asleep > 0 and own.keys[IDLE, base] <= now + slack:
            _, t = pop(own.keys[IDLE], own.ids[IDLE], base, seat.asleep)
            seat.asleep -= 1
            wants_core(world, own, t, kind, seat.clock, interval)
            own.fresh[n_fresh] = t
            n_fresh += 1
        if world.jobs[job].left == 0:
            _leave(world, own, job, n, before, now)
            ended += 1
        else:
            before = job
        job = after
    _settle(world, own, n_fresh, n, now, everyone)
    return ended


# --- jobs ---
@inner
def _leave(world, own, job, n, before, now):
    """A job has ended: take it off its node and release those that waited for it."""
    j, node = world.jobs[job], world.nodes[n]
    if before >= 0:
        own.seats[before].link = own.seats[job].link
    else:
        node.head = own.seats[job].link
    node.alloc -= world.classes[j.cls].threads
    node.used -= world.classes[j.cls].memory
    j.state, j.finish = DONE, now
    world.count[RUNNING_JOBS] -= 1
    for i in range(j.succ_start, j.succ_start + j.succ_count):
        world.jobs[world.successors[i]].blockers -= 1
    waiter = j.waiter
    while waiter >= 0:
        world.jobs[waiter].blockers -= 1
        waiter = world.jobs[waiter].next_waiter


@inner
def _start(world, own, job, now, interval):
    """Start a job on its node, every thread at the beginning of a busy part."""
    j, seat, n = world.jobs[job], own.seats[job], world.placed[world.jobs[job].place0]
    cls, node = world.classes[j.cls], world.nodes[n]
    _advance(world, own, n, now)
    node.alloc += cls.threads
    node.used += cls.memory
    seat.clock, seat.link, node.head = 0.0, node.head, job
    j.state, j.start, j.left = RUNNING, now, seat.threads
    world.count[RUNNING_JOBS] += 1
    t = seat.thread0
    for g in range(cls.group_start, cls.group_start + cls.group_count):
        for _ in range(int(world.groups[g].count)):
            thread = own.threads[t]
            thread.job, thread.group = job, g
            thread.phase, left = resume(world, g, node.type, j.progress)
            thread.rem = left * world.phases[phase_at(world, g, thread.phase, node.type)].utilisation
            own.lanes[lane_of(world, own, thread)].alive += 1
            wants_core(world, own, t, node.type, 0.0, interval)
            own.fresh[t - seat.thread0] = t
            t += 1
    _settle(world, own, seat.threads, n, now, True)


@inner
def _offer(world, own, first, now, interval):
    """Start what is ready and fits, in order; on a node the first that does not fit holds back the others.
    Returns the first place in `order` whose job has not started."""
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
    """Run a fresh world in which every job has its node; the tables then hold times and energies.
    Returns how many jobs never started."""
    now, first = world.clock[0], 0
    note_waits(world)
    for job in range(len(world.jobs)):
        if world.jobs[job].state == RUNNING:
            _start(world, own, job, now, interval)
    ended = 1
    while True:
        if ended > 0:
            first = _offer(world, own, first, now, interval)
        if world.count[RUNNING_JOBS] == 0:
            break
        now = world.nodes[world.heap[0]].next
        horizon, ended = now + INSTANT + 1e-15 * now, 0
        while True:
            ended += _events(world, own, world.heap[0], now, interval)
            soonest = world.nodes[world.heap[0]].next
            if ended == 0 or soonest > horizon:
                break
            now = max(now, soonest)
    world.clock[0] = now
    for n in range(len(world.nodes)):
        _advance(world, own, n, now)
    stuck = 0
    for job in range(len(world.jobs)):
        stuck += world.jobs[job].state != DONE
    return stuck


SIGNATURE = (WorldType(), IntervalsType(), types.float64)
