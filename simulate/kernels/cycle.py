"""A thread in the interval world: its tables, its heaps, its cycle of busy and idle parts.

Rule: every thread draws its jitter from a stream of its own, so what a seed means does not depend on the
order of events. Source: DESiDE (Chahal et al., ICPE 2019, eq. 6-9).
"""

from __future__ import annotations

import numpy as np

from .jit import inner
from .native import BlockType, register
from .seats import Intervals
from .tables import phase_at

BUSY, IDLE = 0, 1


class IntervalsType(BlockType):
    """Numba's type of Intervals."""


register(Intervals, IntervalsType)


# --- heaps: a slice of (key, thread) each ---
@inner
def sift(keys, ids, base, size, i):
    """Move entry `i` down to its place."""
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
    """Remove the first; returns its key and thread."""
    key, item = keys[base], ids[base]
    keys[base], ids[base] = keys[base + size - 1], ids[base + size - 1]
    sift(keys, ids, base, size - 1, 0)
    return key, item


# --- one thread ---
@inner
def uniform(thread):
    """splitmix64 (Steele, Lea & Flood 2014): the next number in [0, 1) of a thread's own stream."""
    thread.random += np.uint64(0x9E3779B97F4A7C15)
    z = thread.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@inner
def wants_core(world, own, t, kind, begin, interval):
    """Draw a thread's next interval (eq. 6-9) and let it queue for a core from clock `begin` of its job."""
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
    """Row of the lane of a thread: its job's, for its phase."""
    first = world.groups[world.classes[world.jobs[thread.job].cls].group_start].phase_start
    return own.seats[thread.job].lane0 + world.groups[thread.group].phase_start + thread.phase - first


@inner
def leaves_core(world, own, thread, kind):
    """A busy part is over. Returns 0: more to do; 1: more, in another phase; 2: the thread has ended."""
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
    """Core-seconds of a thread's phase."""
    row = world.phases[phase_at(world, thread.group, thread.phase, kind)]
    return row.work * row.utilisation
