"""Rates of progress of all strands of a component under contention.

Rule: pure arithmetic on the scratch tables. A thread with CPU share u, dilation m and stretch s progresses at
1 / (u*m*s + 1 - u), the exact fluid limit of the models; measured co-run inflation multiplies m.
Sources: CPU sharing and memory models of DESiDE (Chahal et al., ICPE 2019, 4.3), the piecewise-linear model of IRMaSim
(Herrera et al., CCGrid 2021).
Complexity: O(parts) per domain and evaluation; the coupled models take about ten evaluations.
"""

from __future__ import annotations

import math

from ...arrays import Array, Row
from ..jit import inner
from ..shares import fair_level, piecewise_share
from .layout import EQUAL_SHARE, MAX_MIN, NO_INDEX, NONE, ONE, PIECEWISE, ZERO, Scratch

TIGHT = 1e-12
SPARE = 1.0 - 1e-9  # a demand within this share of the bandwidth is met, whatever is rounded
HAIR = 1.0 + 1e-9  # parts of a job within this factor count as equally fast


@inner
def stretch(parts: Array, first: int, last: int, target: float, free: int) -> float:
    """Return the smallest s >= 1 at which parts [first, last) hold at most `target` cores.

    Safeguarded Newton on 1/H(s). The rate of each part is limited by its job's other nodes (`cap`), except for part
    `free`.
    """
    threads = 0.0
    for p in range(first, last):
        threads += parts[p].k
    low, high, s = 1.0, max(1.0, threads / target) * (1.0 + 1e-9), 1.0
    for _ in range(80):
        held, slope = 0.0, 0.0
        for p in range(first, last):
            part = parts[p]
            busy = part.u * part.m
            wall = busy * max(s, part.wake) + 1.0 - part.u
            if p != free and part.spin == 0 and part.cap * wall < 1.0:
                held += part.k * busy * part.cap
            else:
                share = part.k * busy / wall
                held += share
                if s >= part.wake:
                    slope += share * busy / wall
        if held <= target * (1.0 + TIGHT):
            if s == 1.0 or held >= target * (1.0 - TIGHT):
                return s
            high = s
        else:
            low = s
        if high - low <= 1e-15 * high:
            return high
        step = s + held * (held - target) / (target * slope) if slope > 0.0 else -1.0
        s = step if low < step < high else 0.5 * (low + high)
    return s


@inner
def wake_stretch(parts: Array, first: int, last: int, cores: float, strength: float) -> None:
    """Set the wait of sleeping threads on waking: 1 + strength * min(1, 2(1-u)) * x^sqrt(2(C+1)) / C.

    x is the share of the node's cores that all other threads demand; no thread queues while each has a core. The
    exponent is Sakasegawa's for a queue with C servers (1977); the strength is calibrated.
    """
    threads, demand = 0.0, 0.0
    for p in range(first, last):
        part = parts[p]
        part.wake = 1.0
        busy = part.u * part.m
        threads += part.k
        demand += part.k * busy / (busy + 1.0 - part.u)
    if strength <= 0.0 or threads <= cores:
        return
    power = math.sqrt(2.0 * (cores + 1.0))
    for p in range(first, last):
        part = parts[p]
        if part.u < 1.0:
            busy = part.u * part.m
            x = min(1.0, max(0.0, demand - busy / (busy + 1.0 - part.u)) / cores)
            part.wake = 1.0 + strength * min(1.0, 2.0 * (1.0 - part.u)) * x**power / cores


@inner
def share_cores(scratch: Scratch, node: Row) -> None:
    """Set `offer` (rate) and `core` (share of a core held) of a node's parts from their dilations."""
    parts, segments, demands = scratch.parts, scratch.segments, scratch.wanted
    first, last, cores = node.first, node.last, node.cores
    if node.per_job == 0:
        s = stretch(parts, first, last, cores, NO_INDEX)
        for p in range(first, last):
            _offer(parts[p], s)
        return
    wake_stretch(parts, first, last, cores, node.queueing)
    jobs, total, p = 0, 0.0, first
    while p < last:
        job, begin, held = parts[p].job, p, 0.0
        while p < last and parts[p].job == job:
            part = parts[p]
            busy = part.u * part.m
            rate = 1.0 / (busy * part.wake + 1.0 - part.u)
            held += part.k * busy * (rate if part.spin else min(rate, part.cap))
            p += 1
        segments[jobs].first, segments[jobs].last, demands[jobs] = begin, p, held
        total += held
        jobs += 1
    level = math.inf
    if total > cores * (1.0 + TIGHT):
        level = fair_level(demands, None, jobs, cores)
    for j in range(jobs):
        begin, end = segments[j].first, segments[j].last
        s, tied = stretch(parts, begin, end, level, begin) if level < math.inf else 1.0, False
        for p in range(begin, end):
            tied = tied or (level < math.inf and parts[p].cap < math.inf)
        for p in range(begin, end):
            if tied and p > begin:
                s = stretch(parts, begin, end, level, p)  # this part gets what the job's other parts do not use
            _offer(parts[p], s)


@inner
def _offer(part: Row, s: float) -> None:
    busy = part.u * part.m
    part.offer = 1.0 / (busy * max(s, part.wake) + 1.0 - part.u)
    part.core = busy * (part.offer if part.spin else min(part.offer, part.cap))


@inner
def _weight(part: Row, everyone: int) -> float:
    """Return the threads of a part that contend for memory: all that have not ended, or those on a core."""
    return part.k if everyone == 1 else part.k * part.u * part.m * min(part.offer, part.cap)


@inner
def memory_level(scratch: Scratch, first: int, last: int, bandwidth: float, equal: bool, everyone: int) -> float:
    """Return the bandwidth limit of a contending thread: BW/n for equal-share, or the max-min level (inf: enough)."""
    parts, weights, demands, size, weight = scratch.parts, scratch.k, scratch.b, last - first, 0.0
    for i in range(size):
        part = parts[first + i]
        weights[i], demands[i] = _weight(part, everyone), part.b
        weight += weights[i]
    return bandwidth / weight if equal else fair_level(demands, weights, size, bandwidth)


@inner
def uncrowded_level(kind: Row, k: Array, b: Array, size: int, threads: float, asleep: bool) -> float:
    """Return the bandwidth limit of a thread on a node where each has a core; -1 if only `solve` finds it.

    Threads that never sleep weigh the same whatever their rates, so the limit follows from what they demand.

    Args:
        kind: type of the node.
        k: threads of each part.
        b: bytes/s that one of them demands.
        size: number of parts.
        threads: sum of `k`.
        asleep: some threads sleep at times.
    """
    total, top = 0.0, 0.0
    for i in range(size):
        total += k[i] * b[i]
        top = max(top, b[i])
    equal, fair = kind.contention == EQUAL_SHARE, kind.contention == MAX_MIN
    if kind.contention == NONE or ((equal or fair) and (top * threads if equal else total) <= kind.bandwidth * SPARE):
        return math.inf
    if asleep or not fair:
        return -1.0
    return fair_level(b, k, size, kind.bandwidth)


@inner
def inflate(domain: Row, nodes: Array, parts: Array, factors: Array) -> None:
    """Set the factor on a part's core time due to other jobs that share its memory: 1 + sum(factor - 1).

    A factor is measured next to one such job, whatever its threads; the excesses of several jobs add up (exact for one,
    an assumption for more). No factor is below 1: jobs are only slowed down, so bounds on isolated times hold.
    O(parts^2).
    """
    first, last = nodes[domain.first].first, nodes[domain.last - 1].last
    row = domain.type * factors.shape[1]
    for p in range(first, last):
        parts[p].lead = 1
        for q in range(first, p):
            if parts[q].job == parts[p].job:
                parts[p].lead = 0
    for p in range(first, last):
        excess = 0.0
        for q in range(first, last):
            if parts[q].lead == 1 and parts[q].job != parts[p].job:
                excess += factors[row + parts[p].name, parts[q].name] - 1.0
        parts[p].inflation = 1.0 + excess


@inner
def _dilate(scratch: Scratch, domain: Row, level: float) -> None:
    """Set dilations m = (1 + max(0, b/level - 1) * remote) * inflation, then share the cores of each node."""
    for n in range(domain.first, domain.last):
        node = scratch.nodes[n]
        for p in range(node.first, node.last):
            part = scratch.parts[p]
            part.wake = 1.0
            part.m = (1.0 + max(0.0, part.b / level - 1.0) * domain.remote) * part.inflation
        share_cores(scratch, node)


@inner
def _excess(parts: Array, first: int, last: int, level: float, bandwidth: float, equal: bool) -> float:
    """Return the relative surplus of demand over bandwidth at `level`; it grows with the level."""
    demand = 0.0
    for p in range(first, last):
        demand += _weight(parts[p], ZERO) * (level if equal else min(parts[p].b, level))
    return demand / bandwidth - 1.0


@inner
def _coupled(scratch: Scratch, domain: Row, equal: bool) -> None:
    """Solve level, dilations, stretches and rates together if only threads on a core contend (to 1e-12)."""
    nodes, parts = scratch.nodes, scratch.parts
    first, last = nodes[domain.first].first, nodes[domain.last - 1].last
    bandwidth = domain.bandwidth
    threads, top = 0.0, 0.0
    for p in range(first, last):
        threads += parts[p].k
        top = max(top, parts[p].b)
    _dilate(scratch, domain, math.inf)
    if top <= 0.0:
        return
    level = memory_level(scratch, first, last, bandwidth, equal, ZERO)
    if level >= top:
        return
    low, high = min(bandwidth / threads, top), top
    f_low, f_high = -1.0, _excess(parts, first, last, top, bandwidth, equal)
    side = 0
    for _ in range(200):
        _dilate(scratch, domain, level)
        f = _excess(parts, first, last, level, bandwidth, equal)
        if abs(f) <= TIGHT:
            return
        if f > 0.0:
            high, f_high = level, f
            if side == 1:
                f_low *= 0.5
            side = 1
        else:
            low, f_low = level, f
            if side == -1:
                f_high *= 0.5
            side = -1
        if high - low <= 1e-14 * high:
            return
        level = (low * f_high - high * f_low) / (f_high - f_low)
        if not low < level < high:
            level = 0.5 * (low + high)


@inner
def _piecewise(scratch: Scratch, kind: Row, node: Row) -> None:
    """Apply the piecewise-linear model per socket."""
    parts = scratch.parts
    for socket in range(kind.sockets):
        total, tasks = 0.0, 0.0
        for p in range(node.first, node.last):
            if parts[p].socket == socket:
                total += parts[p].k * parts[p].u * parts[p].b * 1e-6
                tasks += parts[p].k
        others = min(max(tasks - 1.0, 0.0), kind.n_max)
        for p in range(node.first, node.last):
            part = parts[p]
            if part.socket != socket:
                continue
            part.wake, part.m = 1.0, part.inflation / piecewise_share(kind, part.u * part.b, total, others)
    share_cores(scratch, node)


@inner
def solve_domain(scratch: Scratch, domain: Row, types: Array) -> None:
    """Compute the rates on one memory domain under its model."""
    nodes = scratch.nodes
    first, last = nodes[domain.first].first, nodes[domain.last - 1].last
    if first == last:
        return
    kind = types[domain.type]
    if kind.contention == NONE:
        _dilate(scratch, domain, math.inf)
    elif kind.contention == PIECEWISE:
        for n in range(domain.first, domain.last):
            _piecewise(scratch, kind, nodes[n])
    elif kind.all_threads:
        equal = kind.contention == EQUAL_SHARE
        _dilate(scratch, domain, memory_level(scratch, first, last, domain.bandwidth, equal, ONE))
    else:
        _coupled(scratch, domain, kind.contention == EQUAL_SHARE)


@inner
def solve(
    scratch: Scratch, types: Array, factors: Array, n_domains: int, n_parts: int, n_strands: int, multi: bool
) -> None:
    """Compute the rates of a whole component.

    A strand on several nodes progresses everywhere at its smallest rate, and its faster parts release the cores that
    they do not use. Iterated to 1e-9, damped if it oscillates, finally with the slowest rate of an oscillation.

    Args:
        scratch: the scratch tables.
        types: node types.
        factors: co-run inflation, see `layout.World`.
        n_domains: rows of domains in use.
        n_parts: rows of parts in use.
        n_strands: rows of strands in use.
        multi: strands have parts on several nodes.
    """
    strands, parts = scratch.strands, scratch.parts
    for d in range(n_domains):
        if types[scratch.domains[d].type].inflating:
            inflate(scratch.domains[d], scratch.nodes, parts, factors)
        solve_domain(scratch, scratch.domains[d], types)
    if multi:
        for turn in range(300):
            _lowest(strands, parts, n_parts, n_strands)
            change = 0.0
            for p in range(n_parts):
                part = parts[p]
                strand = strands[part.strand]
                cap = (strand.second if strand.low_part == p else strand.low) / part.scale
                if part.offer <= cap * HAIR:
                    cap = math.inf
                if turn > 64:
                    cap = min(cap, part.cap)
                elif 30 < turn <= 60 and part.cap < math.inf and cap < math.inf:
                    cap = 0.5 * (cap + part.cap)
                if cap != part.cap:
                    change = max(change, 1.0 if max(cap, part.cap) == math.inf else abs(cap - part.cap) / cap)
                part.cap = cap
            if change <= 1e-10:
                break
            for d in range(n_domains):
                solve_domain(scratch, scratch.domains[d], types)
    _lowest(strands, parts, n_parts, n_strands)
    for i in range(n_strands):
        strands[i].rate = strands[i].low
    for p in range(n_parts):
        strands[parts[p].strand].rate = min(strands[parts[p].strand].rate, parts[p].cap * parts[p].scale)


@inner
def _lowest(strands: Array, parts: Array, n_parts: int, n_strands: int) -> None:
    """Set the smallest and second smallest offer of each strand, in progress on its reference type."""
    for i in range(n_strands):
        strands[i].low, strands[i].second, strands[i].low_part = math.inf, math.inf, -1
    for p in range(n_parts):
        strand = strands[parts[p].strand]
        offer = parts[p].offer * parts[p].scale
        if offer < strand.low:
            strand.second, strand.low, strand.low_part = strand.low, offer, p
        elif offer < strand.second:
            strand.second = offer
