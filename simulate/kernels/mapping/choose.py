"""Mapping policies: choose the node or nodes on which a ready job starts now.

Rule: nodes are scanned in file order, and the incumbent is replaced only by a score < incumbent * (1 - 1e-9), under SLF
and LOADAVG also by a faster node with the same score. Skipped nodes could not have replaced it. Nodes are skipped by
their own end only under models in which an additional job can never make another end earlier (SIMPLE); forecasts are
always cut off by their own clock.
Sources: SLF, LET, MOM: DESiDE (Chahal et al., ICPE 2019, 4.2); loadavg: the UNIX load average, their baseline.
"""

from __future__ import annotations

import math

from ...arrays import Array, Row
from ..jit import inner
from .forecast import forecast
from .layout import LET, LOADAVG, MOM, NO_INDEX, ONE, SLF, Scratch, World
from .tables import account

LESS = 1.0 - 1e-9
AHEAD = 1.5  # forecasts continue to this multiple of the incumbent, so that later decisions can share the bound


@inner
def fits(world: World, n: int, cls: Row) -> bool:
    """Return whether a job of this class may start on node `n` now: threads, throttle, memory, allowed nodes."""
    node = world.nodes[n]
    threads = node.alloc + cls.threads
    if threads > node.limit + 1e-9 or node.used + cls.memory > node.memory * (1.0 + 1e-12):
        return False
    if cls.places >= 0 and world.allowed[cls.places, n] == 0:
        return False
    return node.alloc <= 0.0 or threads <= node.cap + 1e-9


@inner
def spare_threads(world: World) -> float:
    """Return how many more threads the power cap allows; inf without one. O(nodes) under a cap."""
    if world.count.capped == 0:
        return math.inf
    spare = float(world.count.capped - 1) + 1e-9
    for n in range(len(world.nodes)):
        spare -= world.nodes[n].alloc
    return spare


@inner
def note_end(world: World, n: int, end: float, exact: bool) -> None:
    """Store when a node will be empty without further arrivals; valid until the next arrival (SIMPLE models)."""
    world.bounds[n], world.nodes[n].end_exact = end, 1 if exact else 0


@inner
def _row(scratch: Scratch, cls_id: int, policy: int, now: float) -> int:
    """Return the row of the score cache for this class and policy at this instant; an old row is reused."""
    row, owner = cls_id % len(scratch.row_class), 2 * cls_id + (1 if policy == MOM else 0)
    if scratch.row_class[row] != owner or scratch.row_time[row] != now:
        scratch.row_class[row], scratch.row_time[row] = owner, now
        for n in range(scratch.score_version.shape[1]):
            scratch.score_version[row, n] = -1
    return row


@inner
def _simulated(
    world: World, scratch: Scratch, row: int, n: int, cls_id: int, policy: int, now: float, cutoff: float
) -> float:
    """Return the score of node `n` under LET or MOM, cached if nothing changed; above `cutoff` a lower bound."""
    node, versions, only = world.nodes[n], scratch.score_version, scratch.chosen[len(world.nodes) :]
    if versions[row, n] == world.versions[n] and (scratch.score_exact[row, n] == 1 or scratch.score[row, n] >= cutoff):
        return scratch.score[row, n]
    only[0], far = n, cutoff * AHEAD
    if policy == MOM and cutoff < math.inf and world.count.bounded > 1:
        end = world.bounds[n]
        if end == -math.inf or (node.end_exact == 0 and end - now < cutoff):
            seconds, exact = forecast(world, scratch, only, ONE, NO_INDEX, MOM, now, far)
            note_end(world, n, now + seconds, exact)
            end = now + seconds
        if end - now >= cutoff:
            return end - now
    value, exact = forecast(world, scratch, only, ONE, cls_id, policy, now, far)
    if (node.ties == 0 or world.count.near == 1) and world.domains[node.domain].count == 1:
        scratch.score[row, n], scratch.score_exact[row, n] = value, 1 if exact else 0
        versions[row, n] = world.versions[n]
    return value


@inner
def _score(
    world: World, scratch: Scratch, row: int, n: int, cls_id: int, policy: int, now: float, cutoff: float
) -> float:
    if policy == SLF:
        return world.nodes[n].live / world.types[world.nodes[n].type].cores
    if policy == LOADAVG:
        account(world, n, now)
        return world.nodes[n].load / world.types[world.nodes[n].type].cores
    return _simulated(world, scratch, row, n, cls_id, policy, now, cutoff)


@inner
def _is_faster(world: World, n: int, other: int, policy: int) -> bool:
    """Return whether node `n` is faster than another; only under policies whose scores know nothing of speeds."""
    nodes, types = world.nodes, world.types
    return (policy == SLF or policy == LOADAVG) and types[nodes[n].type].speed > types[nodes[other].type].speed


@inner
def _first_guess(world: World, scratch: Scratch, row: int, cls_id: int, now: float) -> float:
    """Return a good incumbent before the scan: the score of the node with the earliest known end."""
    best, least, bounds = NO_INDEX, math.inf, world.bounds
    for n in range(len(bounds)):
        if -math.inf < bounds[n] < least and fits(world, n, world.classes[cls_id]):
            best, least = n, bounds[n]
    if best < 0:
        return math.inf
    return _simulated(world, scratch, row, best, cls_id, MOM, now, math.inf) * (1.0 + 4e-9)


@inner
def choose(world: World, scratch: Scratch, job: int, policy: int, now: float) -> bool:
    """Choose the nodes of a job and store them in its `placed` slots. Return False if it fits nowhere now.

    One node: O(nodes) scores. Several nodes: take the nodes with the smallest scores (exact if nodes and their jobs are
    alike), then exchange the worst for the next best while the joint forecast improves, but not with `count.near`. This
    search was within 4 % of the best set in 1,600 random cases.

    Args:
        world: tables of the simulation.
        scratch: working space of the kernels.
        job: row of the job.
        policy: SLF, LOADAVG, LET or MOM.
        now: seconds.
    """
    j = world.jobs[job]
    cls = world.classes[j.cls]
    j.alt, j.alt_cost = -1, math.inf
    explain = world.count.explain == 1
    row = _row(scratch, j.cls, policy, now) if policy == LET or policy == MOM else 0
    if cls.nodes > 1:
        return _choose_several(world, scratch, job, policy, now, row)
    best, incumbent, seed = -1, math.inf, math.inf
    bounded = policy == MOM and world.count.simple == 1 and not explain
    if bounded:
        # Bounds cost one forecast per node: the first decision does without, later ones share them.
        world.count.bounded += 1
        seed = _first_guess(world, scratch, row, j.cls, now)
    cutoff = seed
    bounds, versions = world.bounds, world.versions
    scores, score_versions = scratch.score[row], scratch.score_version[row]
    for n in range(len(bounds)):
        if bounded and (bounds[n] - now >= cutoff or (score_versions[n] == versions[n] and scores[n] >= cutoff)):
            continue
        if not fits(world, n, cls):
            continue
        value = _score(world, scratch, row, n, j.cls, policy, now, cutoff)
        faster = best >= 0 and value == incumbent and _is_faster(world, n, best, policy)
        if best < 0 or value < incumbent * LESS or faster:
            if best >= 0 and incumbent < j.alt_cost:
                j.alt, j.alt_cost = best, incumbent
            if value <= cutoff or best < 0 or faster:
                best, incumbent = n, value
                cutoff = math.inf if explain else min(incumbent * LESS, seed)
        elif value < j.alt_cost:
            j.alt, j.alt_cost = n, value
    if best < 0:
        return False
    j.alt_cost -= incumbent
    j.score = incumbent
    world.placed[j.place0] = best
    return True


@inner
def _least(world: World, values: Array, policy: int) -> int:
    """Return the node with the smallest value, the first to be preferred on ties; -1 if all are infinite. O(nodes)."""
    best = -1
    for n in range(len(values)):
        if values[n] == math.inf:
            continue
        faster = best >= 0 and values[n] == values[best] and _is_faster(world, n, best, policy)
        if best < 0 or values[n] < values[best] * LESS or faster:
            best = n
    return best


@inner
def _choose_several(world: World, scratch: Scratch, job: int, policy: int, now: float, row: int) -> bool:
    j = world.jobs[job]
    cls = world.classes[j.cls]
    values, chosen, want = scratch.values, scratch.chosen, cls.nodes
    fitting = 0
    for n in range(len(world.nodes)):
        values[n] = math.inf
        if fits(world, n, cls):
            values[n] = _score(world, scratch, row, n, j.cls, policy, now, math.inf)
            fitting += 1
    if fitting < want:
        return False
    worst = 0.0
    for i in range(want):
        chosen[i] = _least(world, values, policy)
        worst = values[chosen[i]]
        values[chosen[i]] = math.inf
    simulated = (policy == LET or policy == MOM) and world.count.near == 0
    best = forecast(world, scratch, chosen, want, j.cls, policy, now, math.inf)[0] if simulated else 0.0
    for _ in range(8):
        other = _least(world, values, policy)
        if other < 0:
            break
        if j.alt < 0:
            j.alt, j.alt_cost = other, values[other] - worst
        if not simulated:
            break
        old, chosen[want - 1] = chosen[want - 1], other
        value = forecast(world, scratch, chosen, want, j.cls, policy, now, best * LESS)[0]
        if value >= best * LESS:
            chosen[want - 1] = old
            break
        best, values[other] = value, math.inf
    for i in range(want):
        at = i
        while at > 0 and world.placed[j.place0 + at - 1] > chosen[i]:
            world.placed[j.place0 + at] = world.placed[j.place0 + at - 1]
            at -= 1
        world.placed[j.place0 + at] = chosen[i]
    return True
