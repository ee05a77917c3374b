"""Heaps: nodes by their next event (indexed, ties to the lowest node), and the ready jobs of each queue by key."""

from __future__ import annotations

from ..jit import inner
from .layout import HEAP


@inner
def _earlier(nodes, a, b):
    return nodes[a].next < nodes[b].next or (nodes[a].next == nodes[b].next and a < b)


@inner
def heap_update(world, node):
    """Restore the heap after the next event of `node` changed. O(log nodes)."""
    nodes, heap = world.nodes, world.heap
    i = nodes[node].heap_pos
    while i > 0 and _earlier(nodes, node, heap[(i - 1) // 2]):
        heap[i] = heap[(i - 1) // 2]
        nodes[heap[i]].heap_pos = i
        i = (i - 1) // 2
    size = world.count[HEAP]
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
def queue_push(world, job):
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
def queue_pop(world, q):
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
