"""Dependencies between jobs: a job is submitted when its last dependency has ended, and the delay after it is over.

Rule: all submissions of an instant come after all its ends, in the order of rows. A job that depends on a failed job is
never submitted and keeps an unmet dependency, unless it does not matter how the other one ends.
Complexity: an end costs O(followers), a released job O(log released). Without dependencies (`has_dependencies`)
nothing.
"""

from __future__ import annotations

import math

from ..block import Block
from ..heap import push, remove_first
from ..jit import inner
from .running import has_dependencies


@inner
def release_followers(world: Block, job: int, well: bool) -> None:
    """Release the followers of an ended job whose last dependency it was and whose submit time has come.

    Args:
        world: the state; its clock shows the end.
        job: the job.
        well: whether it succeeded, as far as the replay decides it.
    """
    if not has_dependencies(world):
        return
    for k in range(world.follower0[job], world.follower0[job + 1]):
        if not well and world.at_any_end[k] == 0:
            continue
        follower = world.followers[k]
        world.unmet[follower] -= 1
        world.eligible[follower] = max(world.eligible[follower], world.clock.now + world.delays[k])
        if world.unmet[follower] == 0 and follower < world.count.next:
            _release(world, follower)


@inner
def _release(world: Block, job: int) -> None:
    """Let a job be submitted when it is eligible."""
    keys, items, places = world.released_at, world.released, world.released_place
    push(keys, items, places, world.count.released, world.eligible[job], job)
    world.count.released += 1


@inner
def next_release(world: Block) -> float:
    """Return when the next job is released; infinity if no delay is running."""
    if has_dependencies(world) and world.count.released > 0:
        return world.released_at[0]
    return math.inf


@inner
def are_all_submitted(world: Block) -> bool:
    """Return whether all jobs have been submitted, except those that wait for the end of another."""
    return world.count.next >= world.count.total and next_release(world) == math.inf


@inner
def next_submitted(world: Block, total: int, now: float) -> int:
    """Return the next of all `total` jobs that is submitted now; -1 if none is left."""
    jobs, count, with_dependencies = world.jobs, world.count, has_dependencies(world)
    if with_dependencies and next_release(world) <= now:
        job = world.released[0]
        count.released -= 1
        remove_first(world.released_at, world.released, world.released_place, count.released)
        jobs[job].submit = now
        return job
    while count.next < total and jobs[count.next].submit == now:
        job = count.next
        count.next = job + 1
        if not with_dependencies:
            return job
        if world.unmet[job] == 0:
            if world.eligible[job] <= now:
                return job
            _release(world, job)
    return -1


@inner
def assign_rank(world: Block, job: int) -> None:
    """Assign the rank of a submitted job, if any job has dependencies: behind all of equal key submitted before it."""
    if not has_dependencies(world):
        return
    row = world.jobs[job]
    equals = row.rank
    row.rank = equals + world.given[equals]
    world.given[equals] += 1
    world.ranked[row.rank] = job
