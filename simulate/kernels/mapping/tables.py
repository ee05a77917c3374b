"""Changes of the tables: place a job, end a strand, account energy and load.

Rule: a strand's `rem` is valid at `last` and shrinks at `rate`; unchanged nodes are not recomputed. A change touches
nodes; `component.rerate` then updates their rates.
"""

from __future__ import annotations

import math

from ...arrays import Row
from ..jit import inner
from .layout import DONE, READY, RUNNING, ZERO, Scratch, World
from .program_phases import begin_program, end_program

INSTANT = 1e-9


# --- accounting ---
@inner
def watts(kind: Row, busy: float) -> float:
    """Return the power of a node with `busy` cores in use (models: IRMaSim, section IV; Batsim's states)."""
    return kind.watts_base + kind.watts_slope * busy if busy > 0.0 else kind.watts_idle


@inner
def account(world: World, n: int, now: float) -> None:
    """Account a node's energy, its jobs' energies and its 1-minute load average until `now`.

    A job's energy is that of its cores and a share of the base power by cores. Must precede every change of the node.
    """
    node = world.nodes[n]
    if node.load_time != now:
        fade = math.exp(-(now - node.load_time) / 60.0)
        node.load = node.load * fade + node.live * (1.0 - fade)
        node.load_time = now
    span = now - node.energy_time
    if span <= 0.0 or world.count.powered == 0:
        return
    kind = world.types[node.type]
    node.energy += watts(kind, node.busy) * span
    node.energy_time = now
    if node.busy > 0.0:
        watts_per_core = kind.watts_slope + kind.watts_base / node.busy
        p = node.head
        while p >= 0:
            part = world.parts[p]
            world.jobs[world.strands[part.strand].job].energy += watts_per_core * part.threads * part.core * span
            p = part.next


@inner
def touch(world: World, scratch: Scratch, n: int, now: float) -> None:
    """Account a node and add it to the nodes whose rates are updated at this instant."""
    account(world, n, now)
    world.versions[n] += 1
    node = world.nodes[n]
    if node.touched == 0:
        node.touched = 1
        scratch.touched[scratch.listed.touched] = n
        scratch.listed.touched += 1


# --- placing and ending ---
@inner
def link_extra_waits(world: World) -> None:
    """Count each job's extra wait (`wait_for`) as one more blocker, and link it to the job that it waits for."""
    for job in range(len(world.jobs)):
        j = world.jobs[job]
        if j.wait_for >= 0 and world.jobs[j.wait_for].state != DONE:
            j.blockers += 1
            j.next_waiter = world.jobs[j.wait_for].waiter
            world.jobs[j.wait_for].waiter = job


@inner
def threads_on_socket(world: World, scratch: Scratch, n: int, count: float, socket: int, reserved: float) -> float:
    """Return how many of `count` threads go to `socket` if each goes to the socket with the fewest threads.

    Args:
        world: tables of the simulation.
        scratch: working space of the kernels.
        n: the node.
        count: number of threads.
        socket: the socket; ties go to the lowest one.
        reserved: threads of the same job that were assigned before.
    """
    sockets = world.types[world.nodes[n].type].sockets
    split = min(world.count.split, sockets)
    if split <= 1:
        return count if socket == 0 else 0.0
    if socket >= split:
        return 0.0
    total, got = int(reserved + count), 0.0
    fill = scratch.sockets
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
def phase_at(world: World, group: int, phase: int, kind: int) -> int:
    """Return the row of the phase table for a group's phase on a node type."""
    return (world.groups[group].phase_start + phase) * len(world.types) + kind


@inner
def place(world: World, scratch: Scratch, job: int, now: float) -> None:
    """Start a job on the nodes in its `placed` slots. O(groups * nodes of the job)."""
    j = world.jobs[job]
    cls = world.classes[j.cls]
    split = world.count.split
    first_type = world.nodes[world.placed[j.place0]].type
    begin_job(world, job, now)
    if world.count.tasks == 1:
        for i in range(cls.nodes):
            place_task(world, scratch, job, i, now)
        return
    for i in range(cls.nodes):
        _take(world, scratch, world.placed[j.place0 + i], cls, now)
    dealt = 0.0
    for g in range(cls.group_count):
        group = world.groups[cls.group_start + g]
        for socket in range(split):
            row = g * split + socket
            # Threads on different sockets of one node end separately; those of a job on several nodes end together.
            has_strand = cls.nodes == 1 or socket == 0
            s, part0, held = j.strand0 + (row if has_strand else g * split), j.part0 + row * cls.nodes, 0.0
            strand = world.strands[s]
            if has_strand:
                strand.job, strand.group, strand.type = job, cls.group_start + g, first_type
                strand.part0, strand.parts, strand.last, strand.rate = part0, 0, now, 0.0
                strand.until = now + j.walltime
            for i in range(cls.nodes):
                n = world.placed[j.place0 + i]
                threads = threads_on_socket(world, scratch, n, group.count, socket, dealt)
                world.parts[part0 + i].threads = threads
                world.parts[part0 + i].node = n
                world.parts[part0 + i].strand = s
                world.parts[part0 + i].socket = socket
                held += threads
            strand.parts += cls.nodes
            if has_strand and (held > 0.0 or cls.nodes > 1):
                j.left += 1
                phase, work = phase_after(world, strand.group, first_type, j.progress)
                strand.phase, strand.rem = phase, work * j.scale
        dealt += group.count
    _link(world, job)
    begin_program(world, job, now)


@inner
def begin_job(world: World, job: int, now: float) -> None:
    """Let a job run; the caller places its parts."""
    j = world.jobs[job]
    j.state, j.start, j.left = RUNNING, now, 0
    world.count.running_jobs += 1


@inner
def place_task(world: World, scratch: Scratch, job: int, i: int, now: float) -> None:
    """Start one of a job's independent tasks, of one thread group, on the core that was chosen for it."""
    j = world.jobs[job]
    n, cls, s, p = world.placed[j.place0 + i], world.classes[j.cls], j.strand0 + i, j.part0 + i
    _take(world, scratch, n, cls, now)
    world.taken[world.task_core[j.place0 + i]] = 1
    strand, part, kind = world.strands[s], world.parts[p], world.nodes[n].type
    strand.job, strand.group, strand.type, strand.phase = job, cls.group_start, kind, 0
    strand.part0, strand.parts, strand.last, strand.rate = p, 1, now, 0.0
    strand.rem, strand.until = world.phases[phase_at(world, cls.group_start, ZERO, kind)].work, now + j.walltime
    part.threads, part.node, part.strand, part.socket = cls.threads, n, s, 0
    j.left += 1
    _append(world, p)


@inner
def _take(world: World, scratch: Scratch, n: int, cls: Row, now: float) -> None:
    """Let a job of a class have its threads and memory on a node."""
    touch(world, scratch, n, now)
    world.bounds[n] = -math.inf
    world.nodes[n].live += cls.threads
    _occupy(world, n, cls.threads, cls.memory)


@inner
def _occupy(world: World, n: int, threads: float, memory: float) -> None:
    """Count threads of a node, and memory of all nodes with the same capacity, as used; negative: as free again."""
    node = world.nodes[n]
    node.alloc += threads
    if world.count.tasks == 0:
        node.used += memory
        return
    for k in range(node.first, node.last):
        world.nodes[k].used += memory


@inner
def phase_after(world: World, group: int, kind: int, progress: float) -> tuple[int, float]:
    """Return the phase of a thread group after this share of its isolated run time, and the work left in the phase."""
    count, work = world.groups[group].phase_count, 0.0
    for phase in range(count):
        work += world.phases[phase_at(world, group, phase, kind)].work
    work_done, phase = progress * work, ZERO
    while True:
        phase_work = world.phases[phase_at(world, group, phase, kind)].work
        if work_done < phase_work or phase + 1 == count:
            return phase, max(phase_work - work_done, 0.0)
        work_done -= phase_work
        phase += 1


@inner
def _link(world: World, job: int) -> None:
    """Append the job's parts to the lists of its nodes, so that a job's parts are adjacent."""
    j = world.jobs[job]
    cls = world.classes[j.cls]
    rows = cls.group_count * world.count.split
    for row in range(rows):
        for i in range(cls.nodes):
            p = j.part0 + row * cls.nodes + i
            part = world.parts[p]
            if part.threads <= 0.0:
                continue
            _append(world, p)
            if cls.nodes > 1:
                world.nodes[part.node].ties += 1


@inner
def _append(world: World, p: int) -> None:
    """Append a part to the list of its node."""
    part = world.parts[p]
    node = world.nodes[part.node]
    part.prev, part.next = node.tail, -1
    if node.tail >= 0:
        world.parts[node.tail].next = p
    else:
        node.head = p
    node.tail = p


@inner
def end_strand(world: World, scratch: Scratch, s: int, now: float) -> bool:
    """End a strand without remaining work. Return True if its job ended with it."""
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
        if strand.parts > 1:
            node.ties -= 1
        if j.killed == 1 or cls.told != 1.0:
            world.bounds[part.node] = -math.inf
    strand.finish, strand.last = math.inf, now
    j.left -= 1
    if j.left > 0:
        return False
    end_program(world, strand.job, now)
    j.state, j.finish = DONE, now
    world.ended[world.count.finished] = strand.job
    world.count.finished += 1
    world.count.running_jobs -= 1
    for i in range(cls.nodes):
        _occupy(world, world.placed[j.place0 + i], -cls.threads, -cls.memory)
        if world.count.tasks == 1:
            world.taken[world.task_core[j.place0 + i]] = 0
    return True


@inner
def kill(world: World, scratch: Scratch, job: int, now: float) -> None:
    """End a job that has reached its walltime; what waits for it goes on waiting. O(its parts)."""
    j = world.jobs[job]
    cls, split = world.classes[j.cls], world.count.split
    j.killed = 1
    for row in range(cls.nodes if world.count.tasks == 1 else cls.group_count * split):
        s = j.strand0 + row
        strand, threads = world.strands[s], 0.0
        if cls.nodes > 1 and row % split > 0:
            continue  # its threads are in the strand of the first socket
        for p in range(strand.part0, strand.part0 + strand.parts):
            threads += world.parts[p].threads
        if threads > 0.0 and strand.finish < math.inf:
            end_strand(world, scratch, s, now)


@inner
def withdraw(world: World, scratch: Scratch, job: int, now: float) -> None:
    """Take a running job off its nodes; it waits again, with all of its work. O(its parts)."""
    j = world.jobs[job]
    kill(world, scratch, job, now)
    world.count.finished -= 1
    j.state, j.killed, j.start, j.finish = READY, 0, math.nan, math.nan
