"""Heaps: nodes by their next event (indexed, ties to the lowest node), ready jobs of each queue by key, and queues."""

from __future__ import annotations

from ...arrays import Array
from ..jit import inner
from .layout import World


@inner
def _earlier(nodes: Array, a: int, b: int) -> bool:
    return nodes[a].next < nodes[b].next or (nodes[a].next == nodes[b].next and a < b)


@inner
def heap_update(world: World, node: int) -> None:
    """Restore the heap after the next event of `node` changed. O(log nodes)."""
    nodes, heap = world.nodes, world.heap
    i = nodes[node].heap_pos
    while i > 0 and _earlier(nodes, node, heap[(i - 1) // 2]):
        heap[i] = heap[(i - 1) // 2]
        nodes[heap[i]].heap_pos = i
        i = (i - 1) // 2
    size = world.count.heap
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _earlier(nodes, heap[child + 1], heap[child]):
            child += 1
        if not _earlier(nodes, heap[child], node):
            break
        heap[i] = heap[child]
        nodes[heap[i]].heap_pos = i
        i = child
    heap[i] = node
    nodes[node].heap_pos = i


@inner
def queue_push(world: World, job: int) -> None:
    """Add a ready job to its queue."""
    queue = world.queues[world.jobs[job].queue]
    jobs, items, base = world.jobs, world.queued, queue.start
    i = queue.length
    queue.length += 1
    while i > 0 and jobs[job].key < jobs[items[base + (i - 1) // 2]].key:
        items[base + i] = items[base + (i - 1) // 2]
        i = (i - 1) // 2
    items[base + i] = job


@inner
def queue_pop(world: World, q: int) -> None:
    """Remove the first job of queue `q`."""
    queue = world.queues[q]
    jobs, items, base = world.jobs, world.queued, queue.start
    queue.length -= 1
    job, size, i = items[base + queue.length], queue.length, 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and jobs[items[base + child + 1]].key < jobs[items[base + child]].key:
            child += 1
        if jobs[items[base + child]].key >= jobs[job].key:
            break
        items[base + i] = items[base + child]
        i = child
    items[base + i] = job


@inner
def _before(world: World, a: int, b: int) -> bool:
    """Return whether the first job of queue `a` comes before that of queue `b`; ties go to the lowest queue."""
    ours = world.jobs[world.queued[world.queues[a].start]].key
    theirs = world.jobs[world.queued[world.queues[b].start]].key
    return ours < theirs or (ours == theirs and a < b)


@inner
def sink(world: World, heads: Array, size: int) -> None:
    """Move the queue at the top of a heap of queues, ordered by their first jobs, to its place. O(log queues)."""
    if size == 0:
        return
    q, i = heads[0], 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _before(world, heads[child + 1], heads[child]):
            child += 1
        if not _before(world, heads[child], q):
            break
        heads[i] = heads[child]
        i = child
    heads[i] = q


@inner
def first_jobs(world: World, heads: Array) -> int:
    """Make a heap of the queues that are not empty, ordered by their first jobs. Return its size. O(queues log)."""
    size = 0
    for q in range(len(world.queues)):
        if world.queues[q].length == 0:
            continue
        i = size
        size += 1
        while i > 0 and _before(world, q, heads[(i - 1) // 2]):
            heads[i] = heads[(i - 1) // 2]
            i = (i - 1) // 2
        heads[i] = q
    return size
