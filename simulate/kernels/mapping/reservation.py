"""The reservation of the head, the first waiting job that does not fit: when it can start at the latest, and where.

Rule: a node is a candidate if it has what the head needs at the reservation; the head gets the fastest ones, see
`queue_policies.free_nodes.FreeNodes.pick`. A node without a change keeps the time from which on it has that, so after
ends only the nodes that changed since are examined, and the reservation never moves to a later time: what was started
behind the head leaves its nodes to it.
That holds unless a job has outlasted its expected end, as its end is then expected later at each instant.
With a bound on sharing, the head needs nodes without other jobs.
Complexity: for a new head O(expected ends up to the reservation + nodes of the head); after ends O(jobs on the changed
nodes + candidates), and O(jobs on the nodes of the head) if the reservation moves.
"""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Row
from ..block import int64
from ..compile import trailing_zeros
from ..jit import inner
from .choose import fits
from .expected_ends import add_end
from .free_cores import next_free, update_late
from .layout import NO_INDEX, OVERDUE_S, RUNNING, ZERO, World

_ONE, _NONE = np.uint64(1), np.uint64(0)


# --- what is free on a node at a later time ---
@inner
def _now_free(world: World, n: int) -> None:
    """Write what is free now into a node's row of `later`."""
    node, later = world.nodes[n], world.later[n]
    later.cores, later.memory = node.limit - node.alloc, node.memory * (1.0 + 1e-12) - node.used


@inner
def _free_between(world: World, n: int, after: float, until: float) -> None:
    """Add to row `n` of `later` what the jobs of the node hold that are expected to end in (after, until]."""
    later, p, last = world.later[n], world.nodes[n].head, -1
    while p >= 0:
        job = world.strands[world.parts[p].strand].job
        p = world.parts[p].next
        if job == last:
            continue
        last, j = job, world.jobs[job]
        end = j.start + j.asked
        if after < end <= until:
            later.cores += world.classes[j.cls].threads
            later.memory += world.classes[j.cls].memory


@inner
def _first_end(world: World, n: int, after: float) -> float:
    """Return the first expected end of a node's jobs after a time."""
    p, first = world.nodes[n].head, math.inf
    while p >= 0:
        j = world.jobs[world.strands[world.parts[p].strand].job]
        end = j.start + j.asked
        if end > after:
            first = min(first, end)
        p = world.parts[p].next
    return first


@inner
def _enough(world: World, n: int, cls: Row) -> bool:
    """Return whether what is free on a node at the time that is looked at is what the head needs."""
    later = world.later[n]
    if world.clock.share < math.inf and later.cores < world.nodes[n].limit:
        return False
    if cls.places >= 0 and world.allowed[cls.places, n] == 0:
        return False
    return later.cores >= cls.threads and later.memory >= cls.memory


@inner
def _enough_from(world: World, n: int, cls: Row, by: float) -> float:
    """Return the time from which on a node has what the head needs; infinity if after `by`. O(jobs^2)."""
    if world.clock.share == math.inf and fits(world, n, cls):
        return -math.inf
    _now_free(world, n)
    _free_between(world, n, -math.inf, by)
    if not _enough(world, n, cls):
        return math.inf
    time = -math.inf
    _now_free(world, n)
    while not _enough(world, n, cls):
        end = _first_end(world, n, time)
        _free_between(world, n, time, end)
        time = end
    return time


# --- candidates, by the time from which on they have what the head needs ---
@inner
def _put(world: World, at: int, time: float, n: int) -> None:
    world.candidates[at].time, world.candidates[at].node = time, n


@inner
def _qualify(world: World, n: int, time: float) -> None:
    """Note from when on a node has what the head needs; infinity: it is no candidate."""
    rank = world.later[n].rank
    world.later[n].enough, bit = time, _ONE << np.uint64(rank % 64)
    if time < math.inf:
        world.candidate_bits[rank // 64] |= bit
    else:
        world.candidate_bits[rank // 64] &= ~bit


@inner
def _requalify(world: World, cls: Row) -> bool:
    """Bring the candidates among the changed nodes up to date. Return whether there were others before."""
    rows, count, spare, new, any_changed = world.candidates, world.count, len(world.nodes), 0, False
    for i in range(count.changed):
        n = world.changed[i]
        time = _enough_from(world, n, cls, world.clock.reserved)
        if time == world.later[n].enough:
            continue
        any_changed = True
        _qualify(world, n, time)
        if time < math.inf:
            at = spare + new
            while at > spare and rows[at - 1].time > time:
                _put(world, at, rows[at - 1].time, rows[at - 1].node)
                at -= 1
            _put(world, at, time, n)
            new += 1
    if not any_changed:
        return False
    old = 0
    for i in range(count.candidates):
        time, n = rows[i].time, rows[i].node
        if world.later[n].enough == time:  # else the row is out of date
            _put(world, old, time, n)
            old += 1
    count.candidates = old + new
    for at in range(old + new - 1, -1, -1):  # the last one first
        if new == 0:
            break
        if old > 0 and rows[old - 1].time > rows[spare + new - 1].time:
            old -= 1
            _put(world, at, rows[old].time, rows[old].node)
        else:
            new -= 1
            _put(world, at, rows[spare + new].time, rows[spare + new].node)
    return True


@inner
def _drop_after(world: World, time: float) -> None:
    """Drop the candidates that have what the head needs only after a time."""
    rows, count = world.candidates, world.count
    while count.candidates > 0 and rows[count.candidates - 1].time > time:
        count.candidates -= 1
        _qualify(world, rows[count.candidates].node, math.inf)


@inner
def note_change(world: World, n: int) -> None:
    """Note that jobs of a node started or ended."""
    if world.later[n].changed == 0:
        world.later[n].changed = 1
        world.changed[world.count.changed] = n
        world.count.changed += 1


@inner
def take_behind(world: World, job: int, late: bool) -> None:
    """Take the nodes of a job that was started behind the reservation from others that end after it.

    Args:
        world: tables of the simulation.
        job: row of the job.
        late: it may itself end after the reservation.
    """
    j = world.jobs[job]
    cls = world.classes[j.cls]
    for i in range(cls.nodes):
        n = world.placed[j.place0 + i]
        later = world.later[n]
        if late and later.held == 1:
            later.cores -= cls.threads
            later.memory -= cls.memory
        update_late(world, n)


@inner
def _list_ends(world: World) -> None:
    """List the expected ends of the jobs that have started since the last time and still run."""
    for i in range(world.count.unlisted):
        job = world.unlisted[i]
        j = world.jobs[job]
        if j.state == RUNNING:
            j.listed = 1
            add_end(world, j.start + j.asked, job)
    world.count.unlisted = 0


@inner
def is_overdue(world: World, now: float) -> bool:
    """Return whether a running job has outlasted its expected end. O(1) before the first of these ends."""
    if now < world.clock.first_end:
        return False
    _list_ends(world)
    world.clock.first_end = math.inf
    if world.count.blocks == 0:
        return False
    first = world.ends[world.blocks[0].first]
    world.clock.first_end = first.until
    return first.until <= now and world.jobs[first.job].start < now


# --- the reservation ---
@inner
def reserve(world: World, job: int, now: float) -> bool:
    """Reserve nodes for a new head. Return whether the reservation changes with time alone."""
    cls, count, overdue = world.classes[world.jobs[job].cls], world.count, is_overdue(world, now)
    _list_ends(world)
    for i in range(count.changed):
        world.later[world.changed[i]].changed = 0
        update_late(world, world.changed[i])
    count.changed = 0
    for i in range(count.candidates):
        _qualify(world, world.candidates[i].node, math.inf)
    count.candidates = 0
    _sweep(world, cls, now)
    _hold(world, cls, True, True)
    return overdue


@inner
def _list(world: World, n: int, time: float) -> None:
    """Add a candidate after all others."""
    _put(world, world.count.candidates, time, n)
    _qualify(world, n, time)
    world.count.candidates += 1


@inner
def _sweep(world: World, cls: Row, now: float) -> None:
    """Find the reservation and its candidates: free what jobs hold, by their expected ends, until it is enough."""
    blocks, ends, count = world.blocks, world.ends, world.count
    count.sweeps += 1
    rank = next_free(world.tree, ZERO, cls.threads)
    while rank >= 0:
        n = world.ranked[rank]
        world.later[n].seen = count.sweeps
        _now_free(world, n)
        if _enough(world, n, cls):
            _list(world, n, -math.inf)
        rank = next_free(world.tree, rank + 1, cls.threads)
    b, i = 0, 0
    while b < count.blocks and ends[blocks[b].first + i].until <= now:
        if world.jobs[ends[blocks[b].first + i].job].start >= now:
            break
        i += 1
        if i == blocks[b].size:
            b, i = b + 1, 0
    back_b, back_i = b, i - 1
    reserved = math.inf
    while True:
        if back_i < 0 and back_b > 0:
            back_b -= 1
            back_i = blocks[back_b].size - 1
        late, until = math.inf, math.inf
        if back_i >= 0:
            late = now + max(now - ends[blocks[back_b].first + back_i].until, OVERDUE_S)
        if b < count.blocks:
            until = ends[blocks[b].first + i].until
        time = min(late, until)
        if (back_i < 0 and b == count.blocks) or (count.candidates >= cls.nodes and time > reserved):
            break
        if late <= until and back_i >= 0:
            _release(world, ends[blocks[back_b].first + back_i].job, cls, time)
            back_i -= 1
        else:
            _release(world, ends[blocks[b].first + i].job, cls, time)
            i += 1
            if i == blocks[b].size:
                b, i = b + 1, 0
        if count.candidates >= cls.nodes and reserved == math.inf:
            reserved = time
    world.clock.reserved = reserved


@inner
def _release(world: World, job: int, cls: Row, time: float) -> None:
    """Free what a job holds at its expected end, and list the nodes that then have enough."""
    j = world.jobs[job]
    mine = world.classes[j.cls]
    for i in range(mine.nodes):
        n = world.placed[j.place0 + i]
        later = world.later[n]
        if later.seen != world.count.sweeps:
            later.seen = world.count.sweeps
            _now_free(world, n)
        later.cores += mine.threads
        later.memory += mine.memory
        if later.enough == math.inf and _enough(world, n, cls):
            _list(world, n, time)


@inner
def update(world: World, job: int, now: float) -> bool:
    """Bring the reservation of the head up to date. Return False if it can start now, or needs a new reservation."""
    cls, count, rows = world.classes[world.jobs[job].cls], world.count, world.candidates
    if is_overdue(world, now):
        return False
    reserved = world.clock.reserved
    dirty = _requalify(world, cls)
    if count.candidates < cls.nodes or rows[cls.nodes - 1].time == -math.inf:
        return False
    world.clock.reserved = rows[cls.nodes - 1].time
    _drop_after(world, world.clock.reserved)
    moved = world.clock.reserved != reserved
    if dirty or moved:
        _hold(world, cls, moved, False)
    for i in range(count.changed):
        n = world.changed[i]
        world.later[n].changed = 0
        if world.later[n].held == 0:
            update_late(world, n)
        elif not (dirty or moved):
            _keep(world, n, cls, False)
    count.changed = 0
    return True


@inner
def _hold(world: World, cls: Row, every: bool, swept: bool) -> None:
    """Hold the fastest candidates for the head, and let go of the others.

    Args:
        world: tables of the simulation.
        cls: class of the head.
        every: examine the nodes that were held before and have not changed, too.
        swept: the rows of `later` hold what is free at the reservation.
    """
    later, held, count, spare = world.later, world.held, world.count, len(world.nodes)
    count.holds += 1
    size, alike, word, slowest = 0, 0, 0, NO_INDEX
    bits = world.candidate_bits[0]
    while size < count.candidates and alike < cls.nodes:
        while bits == _NONE:
            word += 1
            bits = world.candidate_bits[word]
        rank = word * 64 + int64(trailing_zeros(bits))
        if size >= cls.nodes and world.grades[rank] > slowest:
            break
        bits &= bits - _ONE
        held[spare + size] = world.ranked[rank]
        alike = alike + 1 if world.grades[rank] == slowest else 1
        slowest = world.grades[rank]
        size += 1
    held_count = min(cls.nodes, size)
    first = spare + size - held_count
    for i in range(held_count):
        later[held[first + i]].hold = count.holds
    for i in range(count.held):
        if later[held[i]].hold != count.holds:
            later[held[i]].held = 0
            update_late(world, held[i])
    count.held = held_count
    for i in range(held_count):
        n = held[i] = held[first + i]
        if every or later[n].held == 0 or later[n].changed == 1:
            _keep(world, n, cls, swept)


@inner
def _keep(world: World, n: int, cls: Row, swept: bool) -> None:
    """Hold a node for the head: note what it leaves to jobs that end after the reservation."""
    later = world.later[n]
    if not swept:
        _now_free(world, n)
        _free_between(world, n, -math.inf, world.clock.reserved)
    later.held = 1
    later.cores -= cls.threads if world.clock.share == math.inf else later.cores
    later.memory -= cls.memory
    update_late(world, n)
