"""Changing the tables: place a job, end a strand, gather a component, write its new rates back.

Rule: a strand's `rem` is true at `last` and shrinks at `rate`; nothing is recomputed for nodes on which nothing
happened. A change touches nodes; `rerate` renews the components of the touched nodes, O(their parts).
"""

from __future__ import annotations

import math

from .jit import inner
from .layout import DONE, HEAP, NOBODY, ONE, POWERED, RUNNING, RUNNING_JOBS, SPLIT, STAMP, ZERO
from .rates import solve

INSTANT = 1e-9


# --- heap of nodes by next event: indexed, one entry a node, ties to the lowest node ---
@inner
def _earlier(nodes, a, b):
    return nodes[a].next < nodes[b].next or (nodes[a].next == nodes[b].next and a < b)


@inner
def heap_update(world, node):
    """Restore the heap after `node`'s next event changed: O(log nodes)."""
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


# --- queues of ready jobs: a binary heap each, by the job's key ---
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


# --- accounting ---
@inner
def watts(node, kind, busy):
    """Power of a node with `busy` cores in use (models: IRMaSim section IV; Batsim's states)."""
    return kind.watts_base + kind.watts_slope * busy if busy > 0.0 else kind.watts_idle


@inner
def charge(world, n, now):
    """Bring a node's energy, its jobs' energies (their cores, and a share of the base by cores) and its 1-minute
    load average to `now`. Must precede every change of the node."""
    node = world.nodes[n]
    if node.load_time != now:
        fade = math.exp(-(now - node.load_time) / 60.0)
        node.load = node.load * fade + node.live * (1.0 - fade)
        node.load_time = now
    span = now - node.energy_time
    if span <= 0.0 or world.count[POWERED] == 0:
        return
    kind = world.types[node.type]
    node.energy += watts(node, kind, node.busy) * span
    node.energy_time = now
    if node.busy > 0.0:
        each = kind.watts_slope + kind.watts_base / node.busy
        p = node.head
        while p >= 0:
            part = world.parts[p]
            world.jobs[world.strands[part.strand].job].energy += each * part.threads * part.core * span
            p = part.next


@inner
def touch(world, scratch, n, now):
    """Charge a node and put it on the list of those to re-rate at this instant."""
    charge(world, n, now)
    node = world.nodes[n]
    node.version += 1
    if node.touched == 0:
        node.touched = 1
        scratch.touched[0] += 1
        scratch.touched[scratch.touched[0]] = n


# --- placing and ending ---
@inner
def deal(world, scratch, n, count, socket, reserved):
    """How many of `count` threads dealt one by one to the socket of `n` with fewest land on `socket`.

    `reserved` threads of the same job were dealt before. Ties go to the lowest socket.
    """
    sockets = world.types[world.nodes[n].type].sockets
    split = min(world.count[SPLIT], sockets)
    if split <= 1:
        return count if socket == 0 else 0.0
    if socket >= split:
        return 0.0
    total, got = int(reserved + count), 0.0
    fill = scratch.segments[:, 0]
    for s in range(split):
        fill[s] = 0.0
    p = world.nodes[n].head
    while p >= 0:
        fill[world.parts[p].socket] += world.parts[p].threads
        p = world.parts[p].next
    for i in range(total):
        least = 0
        for s in range(1, split):
            if fill[s] < fill[least]:
                least = s
        fill[least] += 1.0
        if least == socket and i >= reserved:
            got += 1.0
    return got


@inner
def phase_at(world, group, phase, kind):
    """Row of the phase table for a group's phase on a node type."""
    return (world.groups[group].phase_start + phase) * len(world.types) + kind


@inner
def place(world, scratch, job, now):
    """Start a job on the nodes in its `placed` slots. O(groups * nodes of the job)."""
    j = world.jobs[job]
    cls = world.classes[j.cls]
    split = world.count[SPLIT]
    first_type = world.nodes[world.placed[j.place0]].type
    for i in range(cls.nodes):
        n = world.placed[j.place0 + i]
        touch(world, scratch, n, now)
        world.nodes[n].arrivals += 1
        world.nodes[n].alloc += cls.threads
        world.nodes[n].used += cls.memory
        world.nodes[n].live += cls.threads
    j.state, j.start, j.left = RUNNING, now, 0
    world.count[RUNNING_JOBS] += 1
    dealt = 0.0
    for g in range(cls.group_count):
        group = world.groups[cls.group_start + g]
        for socket in range(split):
            row = g * split + socket
            # Threads on different sockets of one node end by themselves; those of a job on several nodes, together.
            own = cls.nodes == 1 or socket == 0
            s, part0, held = j.strand0 + (row if own else g * split), j.part0 + row * cls.nodes, 0.0
            strand = world.strands[s]
            if own:
                strand.job, strand.group, strand.type = job, cls.group_start + g, first_type
                strand.part0, strand.parts, strand.last, strand.rate = part0, 0, now, 0.0
            for i in range(cls.nodes):
                n = world.placed[j.place0 + i]
                threads = deal(world, scratch, n, group.count, socket, dealt)
                world.parts[part0 + i].threads = threads
                world.parts[part0 + i].node = n
                world.parts[part0 + i].strand = s
                world.parts[part0 + i].socket = socket
                held += threads
            strand.parts += cls.nodes
            if own and (held > 0.0 or cls.nodes > 1):
                j.left += 1
                _set_progress(world, strand, j.progress)
        dealt += group.count
    _link(world, job)


@inner
def _set_progress(world, strand, progress):
    group = world.groups[strand.group]
    work = 0.0
    for ph in range(group.phase_count):
        work += world.phases[phase_at(world, strand.group, ph, strand.type)].work
    done, strand.phase = progress * work, 0
    while True:
        here = world.phases[phase_at(world, strand.group, strand.phase, strand.type)].work
        if done < here or strand.phase + 1 == group.phase_count:
            strand.rem = max(here - done, 0.0)
            return
        done -= here
        strand.phase += 1


@inner
def _link(world, job):
    """Append the job's parts to the lists of its nodes, so that a job's parts stay together."""
    j = world.jobs[job]
    cls = world.classes[j.cls]
    rows = cls.group_count * world.count[SPLIT]
    for row in range(rows):
        for i in range(cls.nodes):
            p = j.part0 + row * cls.nodes + i
            part = world.parts[p]
            if part.threads <= 0.0:
                continue
            node = world.nodes[part.node]
            part.prev, part.next = node.tail, -1
            if node.tail >= 0:
                world.parts[node.tail].next = p
            else:
                node.head = p
            node.tail = p
            if cls.nodes > 1:
                node.ties += 1


@inner
def end_strand(world, scratch, s, now):
    """A strand has no work left: its threads ask for nothing any more. True if its job ended with it."""
    strand = world.strands[s]
    j = world.jobs[strand.job]
    cls = world.classes[j.cls]
    for i in range(strand.parts):
        part = world.parts[strand.part0 + i]
        if part.threads <= 0.0:
            continue
        touch(world, scratch, part.node, now)
        node = world.nodes[part.node]
        if part.prev >= 0:
            world.parts[part.prev].next = part.next
        else:
            node.head = part.next
        if part.next >= 0:
            world.parts[part.next].prev = part.prev
        else:
            node.tail = part.prev
        node.live -= part.threads
        if cls.nodes > 1:
            node.ties -= 1
    strand.finish = math.inf
    j.left -= 1
    if j.left > 0:
        return False
    j.state, j.finish = DONE, now
    world.count[RUNNING_JOBS] -= 1
    for i in range(cls.nodes):
        node = world.nodes[world.placed[j.place0 + i]]
        node.alloc -= cls.threads
        node.used -= cls.memory
    return True


# --- components ---
@inner
def gather(world, scratch, starts, n_starts, cls_id, now):
    """Copy the component of the start nodes into scratch, with a candidate of class `cls_id` (-1: none) placed on
    them. Returns (domains, parts, strands, tied). O(parts of the component)."""
    world.count[STAMP] += 1
    stamp = world.count[STAMP]
    reach, n_domains = scratch.numbers, 0
    for i in range(n_starts):
        d = world.nodes[starts[i]].domain
        if world.domains[d].mark != stamp:
            world.domains[d].mark = stamp
            reach[n_domains] = d
            n_domains += 1
    tied = cls_id >= 0 and n_starts > 1
    at = 0
    while at < n_domains:
        domain = world.domains[reach[at]]
        at += 1
        for i in range(domain.start, domain.start + domain.count):
            node = world.nodes[world.domain_nodes[i]]
            if node.ties == 0:
                continue
            tied = True
            p = node.head
            while p >= 0:
                strand = world.strands[world.parts[p].strand]
                for q in range(strand.part0, strand.part0 + strand.parts):
                    d = world.nodes[world.parts[q].node].domain
                    if world.parts[q].threads > 0.0 and world.domains[d].mark != stamp:
                        world.domains[d].mark = stamp
                        reach[n_domains] = d
                        n_domains += 1
                p = world.parts[p].next
    n_nodes, n_parts, n_strands = ZERO, ZERO, ZERO
    for di in range(n_domains):
        domain = world.domains[reach[di]]
        local = scratch.domains[di]
        local.first, local.type = n_nodes, world.nodes[world.domain_nodes[domain.start]].type
        local.bandwidth, local.remote = world.types[local.type].bandwidth, world.types[local.type].remote
        for i in range(domain.start, domain.start + domain.count):
            n = world.domain_nodes[i]
            n_parts, n_strands = _gather_node(world, scratch, n_nodes, n, n_parts, n_strands, stamp, now)
            if cls_id >= 0:
                for k in range(n_starts):
                    if starts[k] == n:
                        n_parts, n_strands = _gather_candidate(
                            world, scratch, n, n_nodes, starts[0], cls_id, n_parts, n_strands, stamp
                        )
            scratch.nodes[n_nodes].last = n_parts
            n_nodes += 1
        local.last = n_nodes
    return n_domains, n_parts, n_strands, tied


@inner
def _gather_node(world, scratch, index, n, n_parts, n_strands, stamp, now):
    node = world.nodes[n]
    kind = world.types[node.type]
    local = scratch.nodes[index]
    local.id, local.type, local.first = n, node.type, n_parts
    local.cores, local.per_job, local.queueing = kind.cores, kind.per_job, kind.queueing
    p = node.head
    while p >= 0:
        part = world.parts[p]
        strand = world.strands[part.strand]
        if strand.mark != stamp:
            strand.mark, strand.local = stamp, n_strands
            row = scratch.strands[n_strands]
            row.id, row.group, row.phase, row.type = part.strand, strand.group, strand.phase, strand.type
            row.rem = max(0.0, strand.rem - strand.rate * (now - strand.last))
            row.candidate, row.dead = 0, 0
            n_strands += 1
        cell = scratch.parts[n_parts]
        cell.id, cell.strand, cell.k, cell.socket = p, strand.local, part.threads, part.socket
        cell.job, cell.node, cell.spin = strand.job, index, world.classes[world.jobs[strand.job].cls].spin
        fill_part(world, cell, scratch.strands[strand.local], node.type)
        n_parts += 1
        p = part.next
    return n_parts, n_strands


@inner
def _gather_candidate(world, scratch, n, index, first, cls_id, n_parts, n_strands, stamp):
    """The candidate's parts on node `n`; its strands are made on its first node met and reused on the others."""
    cls = world.classes[cls_id]
    split = world.count[SPLIT]
    dealt = 0.0
    for g in range(cls.group_count):
        group = world.groups[cls.group_start + g]
        for socket in range(split):
            threads = deal(world, scratch, n, group.count, socket, dealt)
            if threads <= 0.0:
                continue
            code = -1 - (g * split + (socket if cls.nodes == 1 else 0))
            at = -1
            for i in range(n_strands):
                if scratch.strands[i].candidate == 1 and scratch.strands[i].id == code:
                    at = i
            if at < 0:
                at = n_strands
                row = scratch.strands[at]
                row.id, row.group, row.phase, row.type = code, cls.group_start + g, 0, world.nodes[first].type
                row.rem = world.phases[phase_at(world, row.group, ZERO, row.type)].work
                row.candidate, row.dead = 1, 0
                n_strands += 1
            cell = scratch.parts[n_parts]
            cell.id, cell.strand, cell.k, cell.socket = -1, at, threads, socket
            cell.job, cell.node, cell.spin = -1, index, cls.spin
            fill_part(world, cell, scratch.strands[at], world.nodes[n].type)
            n_parts += 1
        dealt += group.count
    return n_parts, n_strands


@inner
def fill_part(world, cell, strand, kind):
    """Utilisation, bandwidth and scale of a part, from its strand's phase on this node type."""
    here = world.phases[phase_at(world, strand.group, strand.phase, kind)]
    cell.u, cell.b, cell.m, cell.wake, cell.cap, cell.scale = here.utilisation, here.bandwidth, 1.0, 1.0, math.inf, 1.0
    if kind != strand.type:
        cell.scale = world.phases[phase_at(world, strand.group, strand.phase, strand.type)].work / here.work


@inner
def rerate(world, scratch, now):
    """New rates for the components of all touched nodes, new finish times, new heap places."""
    for i in range(1, scratch.touched[0] + 1):
        n = scratch.touched[i]
        if world.nodes[n].touched == 0:
            continue
        n_domains, n_parts, n_strands, tied = gather(world, scratch, scratch.touched[i : i + 1], ONE, NOBODY, now)
        solve(scratch, world.types, n_domains, n_parts, n_strands, tied)
        for s in range(n_strands):
            row = scratch.strands[s]
            strand = world.strands[row.id]
            strand.rem, strand.rate, strand.last, strand.finish = row.rem, row.rate, now, now + row.rem / row.rate
        for d in range(n_domains):
            for k in range(scratch.domains[d].first, scratch.domains[d].last):
                _write_node(world, scratch, scratch.nodes[k], now)
    scratch.touched[0] = 0


@inner
def _write_node(world, scratch, local, now):
    charge(world, local.id, now)
    node = world.nodes[local.id]
    busy, soonest = 0.0, math.inf
    for p in range(local.first, local.last):
        cell = scratch.parts[p]
        world.parts[cell.id].core = cell.core
        busy += cell.k * cell.core
        soonest = min(soonest, world.strands[scratch.strands[cell.strand].id].finish)
    node.busy, node.touched = busy, 0
    if node.next != soonest:
        node.next = soonest
        heap_update(world, local.id)
