"""Heaps: nodes by their next event, the ready jobs of each queue by key, and the queues by their first jobs."""

from __future__ import annotations

from .. import heap
from ..jit import inner
from .layout import Scratch, World


@inner
def reschedule(world: World, node: int, time: float) -> None:
    """Set the time of a node's next event. O(log nodes)."""
    places = world.nodes["heap_pos"]
    if world.heap_time[places[node]] != time:
        heap.rekey(world.heap_time, world.heap, places, len(world.heap), time, node)


@inner
def queue_push(world: World, job: int) -> None:
    """Add a ready job to its queue."""
    queue, key = world.queues[world.jobs[job].queue], world.jobs[job].key
    heap.push(world.queued_key[queue.start :], world.queued[queue.start :], None, queue.length, key, job)
    queue.length += 1


@inner
def queue_pop(world: World, q: int) -> None:
    """Remove the first job of queue `q`."""
    queue = world.queues[q]
    queue.length -= 1
    heap.remove_first(world.queued_key[queue.start :], world.queued[queue.start :], None, queue.length)


@inner
def first_jobs(world: World, scratch: Scratch) -> int:
    """Make a heap of the queues that are not empty, ordered by their first jobs. Return its size. O(queues log)."""
    size = 0
    for q in range(len(world.queues)):
        if world.queues[q].length > 0:
            heap.push(
                scratch.head_key, scratch.heads, scratch.head_place, size, world.queued_key[world.queues[q].start], q
            )
            size += 1
    return size


@inner
def next_queue(world: World, scratch: Scratch, size: int, done: bool) -> int:
    """Bring the heap of queues up to date after its first one has changed, or is `done`; return its size."""
    if done:
        heap.remove_first(scratch.head_key, scratch.heads, scratch.head_place, size - 1)
        return size - 1
    q = scratch.heads[0]
    heap.replace_first(
        scratch.head_key, scratch.heads, scratch.head_place, size, world.queued_key[world.queues[q].start], q
    )
    return size
