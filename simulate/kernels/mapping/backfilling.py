"""EASY backfilling and strict order on nodes that jobs share.

Rule: as `queue_policies.easy_policy` has it. A job starts on the lowest nodes that have what it needs. The first
waiting job that does not fit (the head) has a reservation of nodes; what is started behind it ends before the
reservation, or leaves its nodes what the head needs. Until a job ends, the reservation stands and what was refused
stays refused, so only new jobs are examined.
With a bound on sharing, a job starts only where neither it nor any job on its nodes then progresses more slowly than
1 / bound of its rate alone; as that holds at every start, it holds at all times. The reservation of the head is then
one of nodes without other jobs, so that it is never later than with nodes of its own.
Complexity: O(waiting) comparisons a pass; O(log nodes) for each node tried; after an end, while jobs wait, O(nodes +
running jobs). With a bound, a solver call for each node tried.
"""

from __future__ import annotations

import math

from ...arrays import Array, Row
from ..jit import inner
from .choose import fits
from .component import gather, show_means
from .forecast import crowding
from .layout import (
    EASY,
    NO_INDEX,
    ONE,
    RUNNING,
    Scratch,
    World,
)
from .rates import solve
from .tables import place

#: Seconds that a job is expected to go on for when it has run for longer than was expected.
OVERDUE_S = 1.0
HAIR = 1.0 + 1e-9


# --- free cores of the nodes: a tree of maxima, whose leaves are in its upper half ---
@inner
def set_free(world: World, n: int) -> None:
    """Note the free cores of a node after they have changed. O(log nodes)."""
    tree, node = world.tree, world.nodes[n]
    i = len(tree) // 2 + n
    free = int(node.limit - node.alloc)
    world.count.free_cores += free - tree[i]
    tree[i] = free
    while i > 1:
        i //= 2
        tree[i] = max(tree[2 * i], tree[2 * i + 1])


@inner
def next_free(tree: Array, first: int, wanted: int) -> int:
    """Return the lowest node from `first` on that has so many free cores; -1 if none has. O(log nodes)."""
    leaves = len(tree) // 2
    i = leaves + first
    if first >= leaves:
        return NO_INDEX
    while True:
        if tree[i] >= wanted:
            while i < leaves:
                i *= 2
                if tree[i] < wanted:
                    i += 1
            return i - leaves
        while i & 1:
            i >>= 1
        if i == 0:
            return NO_INDEX
        i += 1


# --- waiting jobs, in order; running jobs, by their expected ends ---
@inner
def insert(world: World, job: int) -> None:
    """Add a job to the queue, which is sorted by key. O(waiting) moves."""
    line, queue, jobs = world.queued, world.queues[0], world.jobs
    i = queue.length
    queue.length += 1
    while i > 0 and jobs[line[i - 1]].key > jobs[job].key:
        line[i] = line[i - 1]
        i -= 1
    line[i] = job
    jobs[job].alt = NO_INDEX


@inner
def _start(world: World, scratch: Scratch, job: int, now: float) -> None:
    """Start a job on the nodes that were found for it."""
    j, ends = world.jobs[job], world.ends
    for i in range(world.classes[j.cls].nodes):
        world.placed[j.place0 + i] = scratch.chosen[i]
    place(world, scratch, job, now)
    for i in range(world.classes[j.cls].nodes):
        set_free(world, scratch.chosen[i])
    ends[world.count.ends].until, ends[world.count.ends].job = now + j.asked, job
    world.count.ends += 1


@inner
def _before(world: World, a: Row, b: Row) -> bool:
    """Return whether a running job is expected to end before another one; of equals, the one that started first."""
    return a.until < b.until or (a.until == b.until and world.jobs[a.job].start < world.jobs[b.job].start)


@inner
def _sift(world: World, rows: Array, i: int, size: int) -> None:
    """Move a row of a heap, whose last job is at the top, to its place."""
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        if child + 1 < size and _before(world, rows[child], rows[child + 1]):
            child += 1
        if not _before(world, rows[i], rows[child]):
            return
        until, job = rows[i].until, rows[i].job
        rows[i].until, rows[i].job = rows[child].until, rows[child].job
        rows[child].until, rows[child].job = until, job
        i = child


@inner
def _arrange(world: World) -> None:
    """Sort the ends of the running jobs: drop those that have ended, and merge those that are new.

    O(running + new x log new), where new jobs are those that have started since the last time.
    """
    ends, count, jobs = world.ends, world.count, world.jobs
    kept, new, spare = 0, 0, ends[len(jobs) :]
    for i in range(count.ends):
        if jobs[ends[i].job].state != RUNNING:
            continue
        if i < count.arranged:
            ends[kept].until, ends[kept].job = ends[i].until, ends[i].job
            kept += 1
        else:
            spare[new].until, spare[new].job = ends[i].until, ends[i].job
            new += 1
    for i in range(new // 2 - 1, -1, -1):
        _sift(world, spare, i, new)
    count.ends = count.arranged = kept + new
    for at in range(kept + new - 1, -1, -1):  # the last one first, from the heap or from what was sorted before
        if new > 0 and (kept == 0 or not _before(world, spare[0], ends[kept - 1])):
            ends[at].until, ends[at].job = spare[0].until, spare[0].job
            new -= 1
            spare[0].until, spare[0].job = spare[new].until, spare[new].job
            _sift(world, spare, 0, new)
        elif kept > 0:
            kept -= 1
            ends[at].until, ends[at].job = ends[kept].until, ends[kept].job


@inner
def _note_ends(world: World) -> bool:
    """Take the jobs that have ended since the last pass out of the running ones. Return whether there are any."""
    some = False
    while world.count.ended < world.count.finished:
        j, some = world.jobs[world.ended[world.count.ended]], True
        world.count.ended += 1
        for i in range(world.classes[j.cls].nodes):
            set_free(world, world.placed[j.place0 + i])
    return some


# --- where a job can start ---
@inner
def _within(world: World, scratch: Scratch, starts: Array, n_starts: int, cls_id: int, now: float) -> bool:
    """Return whether no job is slowed down by more than the bound on sharing if the candidate starts there."""
    if world.clock.share == math.inf:
        return True
    n_domains, n_parts, n_strands, tied = gather(world, scratch, starts, n_starts, cls_id, now)
    show_means(world, scratch, n_domains, n_strands, now)
    solve(scratch, world.types, world.inflation, n_domains, n_parts, n_strands, tied)
    return crowding(world, scratch, starts, n_starts, n_strands) <= world.clock.share * HAIR


@inner
def _where(world: World, scratch: Scratch, job: int, late: bool, now: float) -> bool:
    """Find the lowest nodes on which a job can start now, and store them in `scratch.chosen`. Return whether it can.

    Args:
        world: tables of the simulation.
        scratch: working space of the kernels.
        job: row of the job.
        late: it must also leave what is reserved, see `world.later`.
        now: seconds.
    """
    j = world.jobs[job]
    cls = world.classes[j.cls]
    if cls.threads * cls.nodes > world.count.free_cores or cls.threads > world.tree[1]:
        return False
    later, only = world.later, scratch.chosen[len(world.nodes) :]
    found, n = 0, NO_INDEX
    while True:
        n = next_free(world.tree, n + 1, cls.threads)
        if n < 0:
            return False
        if late and (later[n].cores < cls.threads or later[n].memory < cls.memory):
            continue
        if not fits(world, n, cls):
            continue
        only[0] = n
        if not _within(world, scratch, only, ONE, j.cls, now):
            continue
        scratch.chosen[found] = n
        found += 1
        if found == cls.nodes:
            break
    return found == 1 or _within(world, scratch, scratch.chosen, found, j.cls, now)


@inner
def _enough(world: World, n: int, cls: Row) -> bool:
    """Return whether a node has what the head needs at the time that is looked at."""
    later = world.later[n]
    if world.clock.share < math.inf and later.cores < world.nodes[n].limit:
        return False
    if cls.places >= 0 and world.allowed[cls.places, n] == 0:
        return False
    return later.cores >= cls.threads and later.memory >= cls.memory


@inner
def _release_later(world: World, job: int, cls: Row) -> int:
    """Add to `world.later` what a job holds. Return how many more nodes then have enough for the class `cls`."""
    j, more = world.jobs[job], 0
    mine = world.classes[j.cls]
    for i in range(mine.nodes):
        n = world.placed[j.place0 + i]
        before, later = _enough(world, n, cls), world.later[n]
        later.cores += mine.threads
        later.memory += mine.memory
        if _enough(world, n, cls) and not before:
            more += 1
    return more


@inner
def _reserve(world: World, job: int, now: float) -> bool:
    """Reserve nodes for the head: when it can start at the latest, and what is then left of all nodes."""
    _arrange(world)
    cls = world.classes[world.jobs[job].cls]
    ends, many, have = world.ends, world.count.ends, 0
    for n in range(len(world.nodes)):
        node, later = world.nodes[n], world.later[n]
        later.cores, later.memory = node.limit - node.alloc, node.memory * (1.0 + 1e-12) - node.used
        if _enough(world, n, cls):
            have += 1
    overdue = 0
    while overdue < many and ends[overdue].until <= now and world.jobs[ends[overdue].job].start < now:
        overdue += 1
    i, k, reserved = overdue - 1, overdue, math.inf
    while i >= 0 or k < many:
        extended = now + max(now - ends[i].until, OVERDUE_S) if i >= 0 else math.inf
        until = ends[k].until if k < many else math.inf
        time = min(extended, until)
        if have >= cls.nodes and time > reserved:
            break
        if extended <= until:
            have += _release_later(world, ends[i].job, cls)
            i -= 1
        else:
            have += _release_later(world, ends[k].job, cls)
            k += 1
        if have >= cls.nodes and reserved == math.inf:
            reserved = time
    world.clock.reserved = reserved
    left = cls.nodes
    for n in range(len(world.nodes)):
        if left > 0 and _enough(world, n, cls):
            left -= 1
            later = world.later[n]
            later.cores -= cls.threads if world.clock.share == math.inf else later.cores
            later.memory -= cls.memory
    return overdue > 0


@inner
def run_pass(world: World, scratch: Scratch, policy: int, now: float) -> None:
    """Start the first jobs while they fit, reserve for the first that does not, and backfill behind it."""
    line, queue, count, jobs = world.queued, world.queues[0], world.count, world.jobs
    some_ended = _note_ends(world)
    if queue.length == 0:
        return
    fresh = some_ended or count.reserved_for != line[0] + 1
    if fresh:
        count.passes += 1
        begun = 0
        while begun < queue.length and _where(world, scratch, line[begun], False, now):
            _start(world, scratch, line[begun], now)
            begun += 1
        queue.length -= begun
        for i in range(queue.length):
            line[i] = line[i + begun]
        count.reserved_for = 0
        if queue.length == 0:
            return
        drifts = policy == EASY and _reserve(world, line[0], now)
        count.reserved_for = 0 if drifts else line[0] + 1
    if policy != EASY:
        return
    kept = 1
    for i in range(1, queue.length):
        job = line[i]
        if jobs[job].alt != count.passes:
            jobs[job].alt = count.passes
            late = now + jobs[job].asked > world.clock.reserved
            if _where(world, scratch, job, late, now):
                _start(world, scratch, job, now)
                if late:
                    _take_later(world, job)
                continue
        line[kept] = job
        kept += 1
    queue.length = kept


@inner
def _take_later(world: World, job: int) -> None:
    """Take what a job needs beyond the reservation."""
    j = world.jobs[job]
    cls = world.classes[j.cls]
    for i in range(cls.nodes):
        later = world.later[world.placed[j.place0 + i]]
        later.cores -= cls.threads
        later.memory -= cls.memory
