"""Forecasts: simulate a component ahead with a candidate placed on it and no further arrivals.

Rule: a forecast does not change the tables. It stops once its clock passes `cutoff` (the incumbent), because from then
on the score can only be worse. With `count.near` it looks at the start nodes alone, see `component.gather`.
Complexity: at most O(P^2) steps of the rate solver for a component of P parts.
"""

from __future__ import annotations

import math

from ...arrays import Array, Row
from ..jit import inner
from .component import fill_part, gather, show_means
from .layout import EQUAL_SHARE, LET, MEASURE, MOM, NO_INDEX, ONE, OVERDUE_S, ZERO, Scratch, World
from .rates import solve
from .tables import INSTANT, phase_at


@inner
def forecast(
    world: World, scratch: Scratch, starts: Array, n_starts: int, cls_id: int, policy: int, now: float, cutoff: float
) -> tuple[float, bool]:
    """Return the seconds until the candidate ends (LET) or until the last job of the component ends (MOM).

    Args:
        world: tables of the simulation.
        scratch: working space of the kernels.
        starts: nodes of the candidate.
        n_starts: number of these nodes.
        cls_id: class of the candidate; -1 for none.
        policy: LET or MOM.
        now: seconds.
        cutoff: seconds from now after which the forecast stops.

    Returns:
        (seconds, exact); if the forecast was cut off, exact is False and seconds is a lower bound.
    """
    world.count.evaluations += 1
    if world.count.simple == 1 and n_starts == 1:
        return _simple(world, scratch, starts[0], cls_id, policy, now, cutoff)
    near = world.count.near
    n_domains, n_parts, n_strands, tied = gather(world, scratch, starts, n_starts, cls_id, now, near)
    _believe(world, scratch, n_domains, n_strands, cls_id, now)
    return run_ahead(world, scratch, n_domains, n_parts, n_strands, tied, policy, cutoff)


@inner
def _believe(world: World, scratch: Scratch, n_domains: int, n_strands: int, cls_id: int, now: float) -> None:
    """Replace what is really left of gathered jobs by what the planner knows of it."""
    show_means(world, scratch, n_domains, n_strands, now)
    if world.count.beliefs == 0:
        return
    for s in range(n_strands):
        row = scratch.strands[s]
        if row.candidate:
            row.rem *= world.classes[cls_id].told
        else:
            row.rem = believed(world, row.rem, world.jobs[world.strands[row.id].job].cls, row.group, row.type)


@inner
def _job_end(world: World, strands: Array, n_strands: int, s: int) -> float:
    """Return when the job of a strand that was simulated ahead ends; inf: not known."""
    end = 0.0
    for t in range(n_strands):
        if strands[s].candidate != strands[t].candidate:
            continue
        same = strands[s].candidate or world.strands[strands[s].id].job == world.strands[strands[t].id].job
        if same:
            end = max(end, strands[t].rem if strands[t].dead else math.inf)
    return end


@inner
def what_if(world: World, scratch: Scratch, starts: Array, n_starts: int, cls_id: int, now: float) -> None:
    """Find out what would happen if a candidate started now and nothing else later; isolated run times must be known.

    Stores in `scratch.effect`: `end`: seconds until it ends; `slowdown`: these as a factor on its run time alone;
    `factor`: the largest by which the time left of another job grows; `delay`: the seconds by which the ends of all
    others move, in all; `crowding` at its start; and `alone`: 1 if it shares neither cores nor memory with another job.

    Args:
        world: tables of the simulation.
        scratch: working space of the kernels.
        starts: nodes of the candidate.
        n_starts: number of these nodes.
        cls_id: class of the candidate.
        now: seconds.
    """
    without, strands, effect, near = scratch.keys, scratch.strands, scratch.effect, world.count.near
    n_domains, n_parts, n_strands, tied = gather(world, scratch, starts, n_starts, NO_INDEX, now, near)
    _believe(world, scratch, n_domains, n_strands, NO_INDEX, now)
    run_ahead(world, scratch, n_domains, n_parts, n_strands, tied, MOM, math.inf)
    for s in range(n_strands):
        without[world.strands[strands[s].id].job] = _job_end(world, strands, n_strands, s)
    n_domains, n_parts, n_strands, tied = gather(world, scratch, starts, n_starts, cls_id, now, near)
    show_means(world, scratch, n_domains, n_strands, now)
    solve(scratch, world.types, world.inflation, n_domains, n_parts, n_strands, tied)
    effect.alone = 1 if is_alone(scratch, n_strands) else 0
    effect.crowding = crowding(world, scratch, starts, n_starts, n_strands)
    _believe(world, scratch, n_domains, n_strands, cls_id, now)
    run_ahead(world, scratch, n_domains, n_parts, n_strands, tied, MOM, math.inf)
    own_end, factor, delay = math.inf, 1.0, 0.0
    for s in range(n_strands):
        end = _job_end(world, strands, n_strands, s)
        if strands[s].candidate:
            own_end = end
            continue
        job = world.strands[strands[s].id].job
        before = without[job]
        if end < math.inf and before > 0.0:
            factor, delay = max(factor, end / before), delay + max(0.0, end - before)
            without[job] = 0.0  # counted
    alone = 0.0
    for i in range(n_starts):
        alone = max(alone, world.isolated[cls_id, world.nodes[starts[i]].type] * world.classes[cls_id].told)
    effect.end, effect.slowdown = own_end, max(1.0, own_end / alone) if own_end < math.inf else 1.0
    effect.factor, effect.delay = factor, delay


@inner
def is_alone(scratch: Scratch, n_strands: int) -> bool:
    """Return whether the gathered component has no other job than the candidate. O(strands)."""
    for s in range(n_strands):  # noqa: SIM110 - kernels have no generators
        if not scratch.strands[s].candidate:
            return False
    return True


@inner
def crowding(world: World, scratch: Scratch, starts: Array, n_starts: int, n_strands: int) -> float:
    """Return the largest factor by which a job of the solved component progresses more slowly than alone, 1 or more.

    O(parts). What phases take alone must be known, see `isolated`.

    Args:
        world: tables of the simulation.
        scratch: working space, with the solved rates.
        starts: nodes of the candidate.
        n_starts: number of these nodes.
        n_strands: number of strands of the component.
    """
    worst = 1.0
    for s in range(n_strands):
        row, alone = scratch.strands[s], 0.0
        if row.candidate:
            for i in range(n_starts):
                kind = world.nodes[starts[i]].type
                alone = max(alone, world.phases[phase_at(world, row.group, row.phase, kind)].alone)
        else:
            strand = world.strands[row.id]
            for p in range(strand.part0, strand.part0 + strand.parts):
                kind = world.nodes[world.parts[p].node].type
                alone = max(alone, world.phases[phase_at(world, row.group, row.phase, kind)].alone)
        if alone > 0.0:
            seconds = world.phases[phase_at(world, row.group, row.phase, row.type)].work / row.rate
            worst = max(worst, seconds / alone)
    return worst


@inner
def believed(world: World, left: float, cls_id: int, group: int, kind: int) -> float:
    """Return the seconds of work that are left of a running job as far as the planner knows, given those really left.

    A job that has run for longer than expected goes on for OVERDUE_S.
    """
    factor = world.classes[cls_id].told
    if factor == 1.0:
        return left
    work = world.phases[phase_at(world, group, ZERO, kind)].work
    return max(left + (factor - 1.0) * work, OVERDUE_S)


@inner
def run_ahead(
    world: World, scratch: Scratch, n_domains: int, n_parts: int, n_strands: int, tied: bool, policy: int, cutoff: float
) -> tuple[float, bool]:
    """Simulate the gathered component until the end that the policy needs."""
    strands = scratch.strands
    waiting = 0
    for s in range(n_strands):
        waiting += 1 if policy != LET or strands[s].candidate else 0
    clock = 0.0
    while waiting > 0:
        solve(scratch, world.types, world.inflation, n_domains, n_parts, n_strands, tied)
        if policy == MEASURE:
            _measure(world, scratch, n_strands)
        step = math.inf
        for s in range(n_strands):
            if strands[s].dead == 0:
                step = min(step, strands[s].rem / strands[s].rate)
        clock += step
        if clock >= cutoff:
            return clock, False
        changed = False
        for s in range(n_strands):
            row = strands[s]
            if row.dead:
                continue
            if row.rem / row.rate - step > INSTANT:
                row.rem -= row.rate * step
                continue
            changed = True
            if row.phase + 1 < world.groups[row.group].phase_count:
                row.phase += 1
                row.rem = world.phases[phase_at(world, row.group, row.phase, row.type)].work
            else:
                row.dead, row.rem = 1, clock
                waiting -= 1 if policy != LET or row.candidate else 0
        if changed and waiting > 0:
            n_parts = _compact(world, scratch, n_domains)
    return clock, True


@inner
def _measure(world: World, scratch: Scratch, n_strands: int) -> None:
    """Note how long the present phases take at these rates, the longest time of each."""
    for s in range(n_strands):
        row = scratch.strands[s]
        if row.dead == 0:
            phase = world.phases[phase_at(world, row.group, row.phase, row.type)]
            phase.alone = max(phase.alone, phase.work / row.rate)


@inner
def _compact(world: World, scratch: Scratch, n_domains: int) -> int:
    """Remove the parts of ended strands and update the phases of the others; the order is preserved."""
    count = 0
    for d in range(n_domains):
        for n in range(scratch.domains[d].first, scratch.domains[d].last):
            node = scratch.nodes[n]
            first, last = node.first, node.last
            node.first = count
            for p in range(first, last):
                if scratch.strands[scratch.parts[p].strand].dead == 0:
                    if p != count:
                        scratch.parts[count] = scratch.parts[p]
                    cell = scratch.parts[count]
                    fill_part(world, cell, scratch.strands[cell.strand], node.type)
                    count += 1
            node.last = count
    return count


@inner
def _simple(
    world: World, scratch: Scratch, n: int, cls_id: int, policy: int, now: float, cutoff: float
) -> tuple[float, bool]:
    """Forecast one node with per-thread sharing, a single phase, and model `none` or `equal-share` over all threads.

    Uses five columns instead of the scratch tables. O(P^2) multiply-adds.
    """
    k, u, b, rem, marks = scratch.k, scratch.u, scratch.b, scratch.rem, scratch.own
    node = world.nodes[n]
    kind = world.types[node.type]
    size, threads, sleepy = 0, 0.0, False
    p = node.head
    while p >= 0:
        strand = world.strands[world.parts[p].strand]
        phase = world.phases[phase_at(world, strand.group, ZERO, node.type)]
        k[size], u[size], b[size], marks[size] = world.parts[p].threads, phase.utilisation, phase.bandwidth, 0.0
        rem[size] = max(0.0, strand.rem - strand.rate * (now - strand.last))
        if world.count.beliefs == 1:
            rem[size] = believed(world, rem[size], world.jobs[strand.job].cls, strand.group, strand.type)
        threads += k[size]
        sleepy = sleepy or u[size] < 1.0
        size += 1
        p = world.parts[p].next
    candidate = 0
    if cls_id >= 0:
        cls = world.classes[cls_id]
        for g in range(cls.group_start, cls.group_start + cls.group_count):
            phase = world.phases[phase_at(world, g, ZERO, node.type)]
            k[size], u[size], b[size], marks[size] = world.groups[g].count, phase.utilisation, phase.bandwidth, 1.0
            rem[size] = phase.work * cls.told
            threads += k[size]
            sleepy = sleepy or u[size] < 1.0
            size += 1
            candidate += 1
    share = kind.contention == EQUAL_SHARE
    if share and kind.bandwidth <= 0.0:
        share = False
    clock = 0.0
    if share and not sleepy and kind.remote == 1.0:
        clock, size, threads, candidate = _saturated(scratch, size, threads, candidate, policy, kind, cutoff)
        if clock >= cutoff:
            return clock, False
    while size > 0 and (policy != LET or candidate > 0):
        per_byte = threads / kind.bandwidth if share else 0.0
        if sleepy:
            step = _sleepy_step(scratch, size, per_byte, kind.remote, kind.cores)
        else:
            s, step = max(1.0, threads / kind.cores), math.inf
            for i in range(size):
                u[i] = s * (1.0 + max(0.0, b[i] * per_byte - 1.0) * kind.remote)
                step = min(step, rem[i] * u[i])
        clock += step
        if clock >= cutoff:
            return clock, False
        i = 0
        limit = step + INSTANT
        walls = scratch.wall if sleepy else u
        while i < size:
            if rem[i] * walls[i] > limit:
                rem[i] -= step / walls[i]
                i += 1
                continue
            threads -= k[i]
            candidate -= int(marks[i])
            size -= 1
            k[i], u[i], b[i], rem[i], marks[i] = k[size], u[size], b[size], rem[size], marks[size]
            walls[i] = walls[size]
    return clock, True


@inner
def _saturated(
    scratch: Scratch, size: int, threads: float, candidate: int, policy: int, kind: Row, cutoff: float
) -> tuple[float, int, float, int]:
    """Simulate while every thread demands more than its equal share of bandwidth.

    All threads then move bytes at the same speed and end in the order of their remaining bytes, so one sort replaces a
    pass at every end. O(P log P) to O(P^2) cheap moves.

    Returns:
        (clock, size, threads, candidate) for the general loop to continue from.
    """
    k, b, rem, marks, volumes = scratch.k, scratch.b, scratch.rem, scratch.own, scratch.left
    clock, least = 0.0, math.inf
    for i in range(size):
        least = min(least, b[i])
    if least * threads < kind.bandwidth:
        return clock, size, threads, candidate
    for i in range(size):
        volumes[i] = rem[i] * b[i]
    for i in range(1, size):  # descending, so that the next to end is last
        x, xk, xb, xo = volumes[i], k[i], b[i], marks[i]
        at = i
        while at > 0 and volumes[at - 1] < x:
            volumes[at], k[at], b[at], marks[at] = volumes[at - 1], k[at - 1], b[at - 1], marks[at - 1]
            at -= 1
        volumes[at], k[at], b[at], marks[at] = x, xk, xb, xo
    moved, instant = 0.0, 0.0
    while size > 0 and (policy != LET or candidate > 0) and least * threads >= kind.bandwidth:
        slow = max(1.0, threads / kind.cores) * threads / kind.bandwidth
        clock += (volumes[size - 1] - moved) * slow
        if clock >= cutoff:
            return clock, size, threads, candidate
        moved, instant = volumes[size - 1], INSTANT / slow
        while size > 0 and volumes[size - 1] <= moved + instant:
            size -= 1
            threads -= k[size]
            candidate -= int(marks[size])
    for i in range(size):
        rem[i] = (volumes[i] - moved) / b[i]
    return clock, size, threads, candidate


@inner
def _sleepy_step(scratch: Scratch, size: int, per_byte: float, remote: float, cores: float) -> float:
    """Store wall factors (1 / rate) if some threads sleep. Return the time to the next end."""
    k, u, b, rem, wall, busy = scratch.k, scratch.u, scratch.b, scratch.rem, scratch.wall, scratch.busy
    for i in range(size):
        busy[i] = u[i] * (1.0 + max(0.0, b[i] * per_byte - 1.0) * remote)
    s = 1.0
    for _ in range(60):
        held, slope = 0.0, 0.0
        for i in range(size):
            share = busy[i] / (busy[i] * s + 1.0 - u[i])
            held += k[i] * share
            slope += k[i] * share * share
        if held <= cores * (1.0 + 1e-13):
            break
        higher = s + held * (held - cores) / (cores * slope)
        if higher <= s * (1.0 + 1e-15):
            break
        s = higher
    step = math.inf
    for i in range(size):
        wall[i] = busy[i] * s + 1.0 - u[i]
        step = min(step, rem[i] * wall[i])
    return step


@inner
def isolated(world: World, scratch: Scratch, phases: int) -> None:
    """Compute the isolated run time of every class on every node type: alone on an empty node, under its models.

    Fills world.isolated [classes, types] from the first node of each type; every type has a node. These are true run
    times, whatever is believed. With `phases` also how long each phase takes alone.
    """
    start, beliefs = scratch.chosen, world.count.beliefs
    world.count.beliefs = 0
    for t in range(len(world.types)):
        n = 0
        while world.nodes[n].type != t:
            n += 1
        start[0] = n
        for c in range(len(world.classes)):
            world.isolated[c, t] = forecast(world, scratch, start, ONE, c, LET, 0.0, math.inf)[0]
            if phases:
                n_domains, n_parts, n_strands, tied = gather(world, scratch, start, ONE, c, 0.0, ZERO)
                run_ahead(world, scratch, n_domains, n_parts, n_strands, tied, MEASURE, math.inf)
    world.count.beliefs = beliefs
