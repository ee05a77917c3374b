"""Components: nodes connected by a shared memory or by multi-node jobs, copied to scratch tables and solved.

Rule: gathering does not change the tables; `rerate` updates only the rates of the components of touched nodes.
Complexity: O(parts of the component).
"""

from __future__ import annotations

import math

from ...arrays import Array, Row
from ..jit import inner
from .layout import NO_INDEX, ONE, ZERO, Scratch, World
from .program_phases import changed_job, changed_speeds, show_mean, speed_next_to
from .queues import reschedule
from .rates import solve, uncrowded_level
from .tables import account, phase_at, threads_on_socket, touch


@inner
def gather(
    world: World, scratch: Scratch, starts: Array, n_starts: int, cls_id: int, now: float, near: int
) -> tuple[int, int, int, bool]:
    """Copy the component of the start nodes into scratch, with an optional candidate placed on them.

    O(parts of the component).

    Args:
        world: tables of the simulation.
        scratch: working space of the kernels.
        starts: the start nodes.
        n_starts: number of start nodes.
        cls_id: class of the candidate; -1 for none.
        now: seconds.
        near: 1 leaves out what only jobs of several nodes connect: each of their parts counts as a job by itself.

    Returns:
        Numbers of domains, parts and strands, and whether strands have parts on several nodes.
    """
    world.count.stamp += 2
    stamp, reached = world.count.stamp, world.count.stamp - 1
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
            tied = tied or near == 0 or domain.count > 1
            if near == 1:
                continue
            p = node.head
            while p >= 0:
                strand = world.strands[world.parts[p].strand]
                p = world.parts[p].next
                if strand.mark == reached:
                    continue
                strand.mark = reached
                for q in range(strand.part0, strand.part0 + strand.parts):
                    d = world.nodes[world.parts[q].node].domain
                    if world.parts[q].threads > 0.0 and world.domains[d].mark != stamp:
                        world.domains[d].mark = stamp
                        reach[n_domains] = d
                        n_domains += 1
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
                            world, scratch, n, n_nodes, starts[0], cls_id, n_parts, n_strands
                        )
            scratch.nodes[n_nodes].last = n_parts
            n_nodes += 1
        local.last = n_nodes
    return n_domains, n_parts, n_strands, tied


@inner
def _gather_node(
    world: World, scratch: Scratch, index: int, n: int, n_parts: int, n_strands: int, stamp: int, now: float
) -> tuple[int, int]:
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
        cell.name = world.classes[world.jobs[strand.job].cls].name
        fill_part(world, cell, scratch.strands[strand.local], node.type)
        n_parts += 1
        p = part.next
    return n_parts, n_strands


@inner
def _gather_candidate(
    world: World, scratch: Scratch, n: int, index: int, first: int, cls_id: int, n_parts: int, n_strands: int
) -> tuple[int, int]:
    """Add the candidate's parts on node `n`; its strands are created on its first node and reused on the others."""
    cls = world.classes[cls_id]
    split = world.count.split
    dealt = 0.0
    for g in range(cls.group_count):
        group = world.groups[cls.group_start + g]
        for socket in range(split):
            threads = threads_on_socket(world, scratch, n, group.count, socket, dealt)
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
            cell.job, cell.node, cell.spin, cell.name = -1, index, cls.spin, cls.name
            fill_part(world, cell, scratch.strands[at], world.nodes[n].type)
            n_parts += 1
        dealt += group.count
    return n_parts, n_strands


@inner
def fill_part(world: World, cell: Row, strand: Row, kind: int) -> None:
    """Set utilisation, bandwidth and scale of a part from its strand's phase on this node type."""
    phase = world.phases[phase_at(world, strand.group, strand.phase, kind)]
    cell.u, cell.b, cell.m = phase.utilisation, phase.bandwidth, 1.0
    cell.wake, cell.cap, cell.scale, cell.inflation = 1.0, math.inf, 1.0, 1.0
    if kind != strand.type:
        cell.scale = world.phases[phase_at(world, strand.group, strand.phase, strand.type)].work / phase.work


@inner
def show_means(world: World, scratch: Scratch, n_domains: int, n_strands: int, now: float) -> None:
    """Show the gathered jobs as forecasts know them."""
    any_shown = False
    for s in range(n_strands):
        any_shown = show_mean(world, scratch.strands[s], now) or any_shown
    if not any_shown:
        return
    for d in range(n_domains):
        for n in range(scratch.domains[d].first, scratch.domains[d].last):
            node = scratch.nodes[n]
            for p in range(node.first, node.last):
                cell = scratch.parts[p]
                fill_part(world, cell, scratch.strands[cell.strand], node.type)


@inner
def rerate(world: World, scratch: Scratch, now: float) -> None:
    """Update rates, finish times and heap positions of the components of all touched nodes, and of changed links."""
    for i in range(changed_speeds(world)):
        j = world.jobs[changed_job(world, i)]
        for k in range(j.place0, j.place0 + world.classes[j.cls].nodes):
            touch(world, scratch, world.placed[k], now)
    for i in range(scratch.listed.touched):
        n = scratch.touched[i]
        if world.nodes[n].touched == 0 or _rate_uncrowded(world, scratch, n, now):
            continue
        n_domains, n_parts, n_strands, tied = gather(
            world, scratch, scratch.touched[i : i + 1], ONE, NO_INDEX, now, ZERO
        )
        solve(scratch, world.types, world.inflation, n_domains, n_parts, n_strands, tied)
        for s in range(n_strands):
            row = scratch.strands[s]
            strand = world.strands[row.id]
            strand.rem, strand.rate, strand.last = row.rem, speed_next_to(world, row.id, row.rate, now), now
            strand.finish = min(now + row.rem / strand.rate, strand.until)
        for d in range(n_domains):
            for k in range(scratch.domains[d].first, scratch.domains[d].last):
                _write_node(world, scratch, scratch.nodes[k], now)
    scratch.listed.touched = 0


@inner
def _rate_uncrowded(world: World, scratch: Scratch, n: int, now: float) -> bool:
    """Update rates, finish times and heap position of a node by itself on which each thread has a core.

    Return False, with nothing changed, if it is another node, or its rates depend on each other. The result is that of
    `solve` to the last bit. O(parts).
    """
    node, k, b = world.nodes[n], scratch.k, scratch.b
    kind = world.types[node.type]
    if node.ties > 0 or world.domains[node.domain].count > 1 or kind.inflating or world.count.split > 1:
        return False
    size, threads, asleep, p = 0, 0.0, False, node.head
    while p >= 0:
        strand = world.strands[world.parts[p].strand]
        phase = world.phases[phase_at(world, strand.group, strand.phase, node.type)]
        k[size], b[size] = world.parts[p].threads, phase.bandwidth
        threads += k[size]
        asleep = asleep or phase.utilisation < 1.0
        size, p = size + 1, world.parts[p].next
    if threads > kind.cores:
        return False
    level = uncrowded_level(kind, k, b, size, threads, asleep)
    if level < 0.0:
        return False
    account(world, n, now)
    busy, soonest, i, p = 0.0, math.inf, 0, node.head
    while p >= 0:
        part = world.parts[p]
        strand = world.strands[part.strand]
        u = world.phases[phase_at(world, strand.group, strand.phase, node.type)].utilisation
        core = u * (1.0 + max(0.0, b[i] / level - 1.0) * kind.remote)
        rate = 1.0 / (core + 1.0 - u)
        part.core = core * rate
        busy += k[i] * part.core
        strand.rem = max(0.0, strand.rem - strand.rate * (now - strand.last))
        strand.rate, strand.last = speed_next_to(world, part.strand, rate, now), now
        strand.finish = min(now + strand.rem / strand.rate, strand.until)
        soonest = min(soonest, strand.finish)
        i, p = i + 1, part.next
    node.busy, node.touched = busy, 0
    reschedule(world, n, soonest)
    return True


@inner
def _write_node(world: World, scratch: Scratch, local: Row, now: float) -> None:
    account(world, local.id, now)
    node = world.nodes[local.id]
    busy, soonest = 0.0, math.inf
    for p in range(local.first, local.last):
        cell = scratch.parts[p]
        world.parts[cell.id].core = cell.core
        busy += cell.k * cell.core
        soonest = min(soonest, world.strands[scratch.strands[cell.strand].id].finish)
    node.busy, node.touched = busy, 0
    reschedule(world, local.id, soonest)
