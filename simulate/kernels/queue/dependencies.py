"""Dependencies between jobs: a job is submitted at the instant at which its last dependency ends.

Rule: all submissions of an instant come after all its ends, in the order of rows. A job that depends on a failed job is
never submitted and keeps an unmet dependency.
Complexity: an end costs O(followers), a released job O(log released). Without dependencies (`has_dependencies`)
nothing.
"""

from __future__ import annotations

from ..block import Block
from ..heap import push, remove_first
from ..jit import inner
from .running import ended_well, has_dependencies


@inner
def release_followers(world: Block, job: int) -> None:
    """Release the followers of an ended job whose last dependency it was and whose submit time has come."""
    if not has_dependencies(world) or not ended_well(world, job):
        return
    for k in range(world.follower0[job], world.follower0[job + 1]):
        follower = world.followers[k]
        world.unmet[follower] -= 1
        if world.unmet[follower] == 0 and follower < world.count.next:
            push(world.released, world.released, None, world.count.released, follower, follower)
            world.count.released += 1


@inner
def next_submitted(world: Block, total: int, now: float) -> int:
    """Return the next of all `total` jobs that is submitted now; -1 if none is left."""
    jobs, count, some = world.jobs, world.count, has_dependencies(world)
    if some and count.released > 0:
        job = world.released[0]
        count.released -= 1
        remove_first(world.released, world.released, None, count.released)
        jobs[job].submit = now
        return job
    while count.next < total and jobs[count.next].submit == now:
        job = count.next
        count.next = job + 1
        if not some or world.unmet[job] == 0:
            return job
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
