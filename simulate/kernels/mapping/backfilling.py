"""EASY backfilling and strict order on nodes that jobs share.

Rule: as `queue_policies.easy_policy` has it. A job starts on the fastest nodes that have what it needs, see
`queue_policies.free_nodes.FreeNodes.pick`. The first waiting job that does not fit (the head) has a reservation of
nodes; what is started behind it ends before the reservation, or leaves its nodes what the head needs. Until a job ends,
or outlasts its expected end, the reservation stands and what was refused stays refused, so only new jobs are examined.
With a bound on sharing, a job starts only where neither it nor any job on its nodes then progresses more slowly than
1 / bound of its rate alone; as that holds at every start, it holds at all times. Where it would be alone, it may always
start, however much its own threads slow each other down. The reservation of the head is then one of nodes without other
jobs, so that it is never later than with nodes of its own.
Complexity: a pass finds each job that has enough cores on one node in O(log waiting), see `queue.waiting`, and tries it
in O(log nodes) for each node; with a bound, a solver call for each node tried. The reservation: see `reservation`.
"""

from __future__ import annotations

import math

from ...arrays import Array
from ..jit import inlined, inner
from ..queue.easy_pass import behind_by_rank, heads_by_rank
from ..queue.tables import NO_JOB
from ..queue.waiting import insert as add_waiting
from ..queue.waiting import never_refused, remove, search
from .choose import fits
from .component import gather, show_means
from .expected_ends import remove_end
from .forecast import crowding, is_alone
from .free_cores import next_free, update_free
from .layout import EASY, NO_INDEX, ONE, Scratch, World
from .rates import solve
from .reservation import is_overdue, note_change, reserve, take_behind, update
from .tables import place

HAIR = 1.0 + 1e-9


# --- waiting jobs by rank ---
@inner
def insert(world: World, job: int) -> None:
    """Add a job to the queue: as the head, or to the tree of those behind it. O(levels of the tree)."""
    j, count = world.jobs[job], world.count
    j.alt = NO_INDEX
    rank = int(j.key)
    if count.waiting == 0:
        count.head = count.newest = rank
    else:
        count.newest = min(count.newest, rank)
        behind = max(count.head, rank)
        count.head = min(count.head, rank)
        row = world.jobs[world.queued[behind]]
        add_waiting(world, behind, int(world.classes[row.cls].threads), row.asked)
    count.waiting += 1


@inner
def _start(world: World, scratch: Scratch, rank: int, now: float) -> None:
    """Start a job on the nodes that were found for it."""
    job, count = world.queued[rank], world.count
    j = world.jobs[job]
    cls = world.classes[j.cls]
    count.waiting -= 1
    for i in range(cls.nodes):
        world.placed[j.place0 + i] = scratch.chosen[i]
    place(world, scratch, job, now)
    world.clock.first_end = min(world.clock.first_end, now + j.asked)
    for i in range(cls.nodes):
        n = scratch.chosen[i]
        update_free(world, n)
        note_change(world, n)
    j.listed = 0
    world.unlisted[count.unlisted] = job
    count.unlisted += 1


@inner
def _note_ends(world: World) -> bool:
    """Take the jobs that have ended since the last pass out of the running ones. Return whether there are any."""
    any_ended = False
    while world.count.ended < world.count.finished:
        job, any_ended = world.ended[world.count.ended], True
        j = world.jobs[job]
        world.count.ended += 1
        if j.listed == 1:
            remove_end(world, j.start + j.asked, job)
        for i in range(world.classes[j.cls].nodes):
            update_free(world, world.placed[j.place0 + i])
            note_change(world, world.placed[j.place0 + i])
    return any_ended


# --- where a job can start ---
@inner
def _sort_last(nodes: Array, count: int, last_count: int) -> None:
    """Move the last `last_count` of `count` nodes to the front, ascending. O(last_count) if they are so already."""
    for i in range(last_count):
        n, at = nodes[count - last_count + i], i
        while at > 0 and nodes[at - 1] > n:
            nodes[at] = nodes[at - 1]
            at -= 1
        nodes[at] = n


@inner
def _within(world: World, scratch: Scratch, starts: Array, n_starts: int, cls_id: int, now: float) -> bool:
    """Return whether no job is slowed down by more than the bound on sharing if the candidate starts there."""
    if world.clock.share == math.inf:
        return True
    n_domains, n_parts, n_strands, tied = gather(world, scratch, starts, n_starts, cls_id, now, world.count.near)
    if is_alone(scratch, n_strands):
        return True
    show_means(world, scratch, n_domains, n_strands, now)
    solve(scratch, world.types, world.inflation, n_domains, n_parts, n_strands, tied)
    return crowding(world, scratch, starts, n_starts, n_strands) <= world.clock.share * HAIR


@inner
def _where(world: World, scratch: Scratch, job: int, late: bool, now: float) -> bool:
    """Find the nodes on which a job can start now, and store them in `scratch.chosen`. Return whether it can.

    Args:
        world: tables of the simulation.
        scratch: working space of the kernels.
        job: row of the job.
        late: it must also leave what is reserved.
        now: seconds.
    """
    j = world.jobs[job]
    cls = world.classes[j.cls]
    if cls.threads * cls.nodes > world.count.free_cores or cls.threads > world.tree[1]:
        return False
    tree, only = world.late_tree if late else world.tree, scratch.chosen[len(world.nodes) :]
    chosen_count, alike, slowest, rank = 0, 0, NO_INDEX, NO_INDEX
    while True:
        rank = next_free(tree, rank + 1, cls.threads)
        if chosen_count >= cls.nodes and (rank < 0 or world.grades[rank] > slowest):
            break
        if rank < 0:
            return False
        n = world.ranked[rank]
        if late and world.later[n].held == 1 and world.later[n].memory < cls.memory:
            continue
        if not fits(world, n, cls):
            continue
        only[0] = n
        if not _within(world, scratch, only, ONE, j.cls, now):
            continue
        scratch.chosen[chosen_count] = n
        chosen_count += 1
        alike = alike + 1 if world.grades[rank] == slowest else 1
        if alike == cls.nodes:
            break
        slowest = world.grades[rank]
    _sort_last(scratch.chosen, chosen_count, cls.nodes)
    return cls.nodes == 1 or _within(world, scratch, scratch.chosen, cls.nodes, j.cls, now)


# --- the steps of a pass ---
@inlined
def _starts_here(world: World, scratch: Scratch, rank: int, now: float) -> bool:
    return _where(world, scratch, world.queued[rank], False, now)


@inlined
def _leave_tree(world: World, rank: int) -> None:
    """Take the new head out of the tree of the jobs behind it."""
    remove(world, rank)


@inlined
def _candidate(world: World, scratch: Scratch, rank: int, now: float) -> int:
    return search(world, rank, world.tree[1], world.late_tree[1], now, world.clock.reserved, never_refused)


@inlined
def _fill(world: World, scratch: Scratch, rank: int, now: float) -> None:
    """Start a job behind the reservation if it fits somewhere, and was not refused before."""
    j, passes = world.jobs[world.queued[rank]], world.count.passes
    if j.alt == passes:
        return
    j.alt = passes
    late = now + j.asked > world.clock.reserved
    if _where(world, scratch, world.queued[rank], late, now):
        remove(world, rank)
        _start(world, scratch, rank, now)
        take_behind(world, world.queued[rank], late)


_heads = heads_by_rank(_starts_here, _start, _leave_tree)
_behind = behind_by_rank(_candidate, _fill)


@inner
def run_pass(world: World, scratch: Scratch, policy: int, now: float) -> None:
    """Start the first jobs while they fit, reserve for the first that does not, and backfill behind it."""
    count = world.count
    some_ended = _note_ends(world)
    if count.waiting == 0:
        return
    first, count.newest = count.newest, NO_JOB
    if some_ended or count.reserved_for != count.head + 1 or (policy == EASY and is_overdue(world, now)):
        count.passes += 1
        _start_heads(world, scratch, policy, now)
        first = count.head
    if policy == EASY and count.waiting > 1:
        _behind(world, scratch, first, now)


@inner
def _start_heads(world: World, scratch: Scratch, policy: int, now: float) -> None:
    """Start the first jobs while they fit, and reserve for the first that does not."""
    count, bounded = world.count, world.clock.share < math.inf
    blocked = policy == EASY and count.reserved_for == count.head + 1
    if blocked and not bounded and update(world, world.queued[count.head], now):
        return
    reserved_for, head, count.reserved_for = count.reserved_for, count.head, 0
    _heads(world, scratch, now)
    if count.waiting == 0:
        return
    blocked = blocked and count.head == head
    if blocked and bounded and update(world, world.queued[count.head], now):
        count.reserved_for = reserved_for
    elif policy != EASY or not reserve(world, world.queued[count.head], now):
        count.reserved_for = count.head + 1
