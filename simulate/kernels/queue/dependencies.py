"""Jobs that wait for others: they are submitted at the instant at which the last of those has ended.

Rule: all submissions of an instant come after all its ends, in the order of rows. Who waits for a job that never ends
well is never submitted: it is left with something unmet.
Where nobody waits (see `rich.some_wait`), only submissions are asked for here.
Cost: of an end, its followers; of who is released, O(log released). Where nobody waits for anybody: nothing.
"""

from __future__ import annotations

from ..jit import inner
from .ends import ended_well
from .tables import NEXT


@inner
def release_followers(world, job):
    """A job has ended: who waited for it alone is submitted now, unless its own submit time is still to come."""
    if not ended_well(world, job):
        return
    for k in range(world.follower0[job], world.follower0[job + 1]):
        follower = world.followers[k]
        world.unmet[follower] -= 1
        if world.unmet[follower] == 0 and follower < world.count[NEXT]:
            _push(world.released, follower)


@inner
def next_submitted(world, total, now, some):
    """The next of `total` jobs that is submitted now; -1: none is left. `some`: see `some_wait`."""
    jobs, count = world.jobs, world.count
    if some and world.released[0] > 0:
        job = _pop(world.released)
        jobs[job].submit = now
        return job
    while count[NEXT] < total and jobs[count[NEXT]].submit == now:
        job = count[NEXT]
        count[NEXT] = job + 1
        if not some or world.unmet[job] == 0:
            return job
    return -1


@inner
def take_turn(world, job):
    """A job is submitted: among equals it comes behind all that were before."""
    row = world.jobs[job]
    equals = row.rank
    row.rank = equals + world.given[equals]
    world.given[equals] += 1
    world.ranked[row.rank] = job


@inner
def _push(heap, row):
    i = heap[0] + 1
    heap[0] = i
    while i > 1 and row < heap[i >> 1]:
        heap[i] = heap[i >> 1]
        i >>= 1
    heap[i] = row


@inner
def _pop(heap):
    """Take out the smallest row."""
    first, size = heap[1], heap[0] - 1
    last, i = heap[size + 1], 1
    heap[0] = size
    while 2 * i <= size:
        child = 2 * i
        if child < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = last
    return first
