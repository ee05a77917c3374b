"""Rates by the formulas of the papers, in plain Python: slow, obvious, and written without looking into the kernels.

Sources: CPU and memory sharing of DESiDE (Chahal et al., ICPE 2019), max-min water-filling, the piecewise-linear model
of IRMaSim (Herrera et al., CCGrid 2021). Rates, stretches and dilations that depend on each other are solved by two
nested root searches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pilotfish.simulate.model.cluster import ContendingThreads, Contention, CpuSharing, NodeType


@dataclass(frozen=True)
class Demand:
    """Threads of one group of one job on one node (and socket); `cap`: what the job's other nodes let them do."""

    job: int
    threads: float
    utilisation: float
    bandwidth: float
    cap: float = math.inf
    spin: bool = False
    socket: int = 0
    profile: str = ""


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Return where f crosses zero between low and high (Ridders 1979); f(low) and f(high) differ in sign."""
    f_low, f_high = f(low), f(high)
    if f_low == 0.0:
        return low
    if f_high == 0.0:
        return high
    assert f_low * f_high < 0.0, (low, f_low, high, f_high)
    for _ in range(200):
        middle = 0.5 * (low + high)
        f_middle = f(middle)
        if f_middle == 0.0 or high - low <= 4e-16 * abs(middle):
            return middle
        step = (middle - low) * f_middle / math.sqrt(f_middle * f_middle - f_low * f_high)
        new = middle + math.copysign(1.0, f_low - f_high) * step
        f_new = f(new)
        if f_new == 0.0:
            return new
        points = sorted([(low, f_low), (middle, f_middle), (new, f_new), (high, f_high)])
        for (a, f_a), (b, f_b) in itertools.pairwise(points):
            if f_a * f_b <= 0.0:
                low, f_low, high, f_high = a, f_a, b, f_b
                break
    return 0.5 * (low + high)


def rate(demand: Demand, m: float, s: float) -> float:
    """Progress of a thread: 1 in isolation."""
    return 1.0 / (demand.utilisation * m * s + 1.0 - demand.utilisation)


def held(demand: Demand, m: float, s: float) -> float:
    """Return the cores that its threads hold; a thread that waits for other nodes releases its core unless it spins."""
    at = rate(demand, m, s)
    return demand.threads * demand.utilisation * m * (at if demand.spin else min(at, demand.cap))


def stretch(demands: Sequence[Demand], m: Sequence[float], wake: Sequence[float], cores: float) -> float:
    """Return the smallest s >= 1 for which the time that cores are held fits."""

    def surplus(s: float) -> float:
        return sum(held(d, m[i], max(s, wake[i])) for i, d in enumerate(demands)) - cores

    if surplus(1.0) <= 1e-12 * cores:
        return 1.0
    high = 2.0
    while surplus(high) > 0.0:
        high *= 2.0
    return root(surplus, 1.0, high)


def water_level(wants: Sequence[tuple[float, float]], capacity: float) -> float:
    """Return L with sum of weight * min(want, L) = capacity over (want, weight); inf if all can have what they want."""
    if sum(want * weight for want, weight in wants) <= capacity * (1 + 1e-12):
        return math.inf
    left, weights = capacity, sum(weight for _, weight in wants)
    for want, weight in sorted(wants):
        if want * weights >= left:
            return left / weights
        left, weights = left - want * weight, weights - weight
    raise AssertionError("unreachable")


def wake_stretches(kind: NodeType, demands: Sequence[Demand], m: Sequence[float]) -> list[float]:
    """Return the waits of waking sleepers under per-job sharing: 1 + strength * min(1, 2(1-u)) * x^sqrt(2(C+1)) / C."""
    own = [d.utilisation * m[i] * rate(d, m[i], 1.0) for i, d in enumerate(demands)]
    wanted = sum(d.threads * o for d, o in zip(demands, own, strict=True))
    if sum(d.threads for d in demands) <= kind.cores:
        return [1.0] * len(demands)
    power = math.sqrt(2.0 * (kind.cores + 1))
    result = []
    for d, o in zip(demands, own, strict=True):
        x = min(1.0, max(0.0, wanted - o) / kind.cores)
        result.append(1.0 + kind.queueing * min(1.0, 2.0 * (1.0 - d.utilisation)) * x**power / kind.cores)
    return result


def share_cores(kind: NodeType, demands: Sequence[Demand], m: Sequence[float]) -> list[tuple[float, float]]:
    """Return (rate offered, cores held by one thread) of each demand on one node, dilations given."""
    if kind.cpu_sharing is CpuSharing.PER_THREAD:
        s = stretch(demands, m, [1.0] * len(demands), kind.cores)
        stretches = [s] * len(demands)
    else:
        wake = wake_stretches(kind, demands, m)
        jobs = sorted({d.job for d in demands})
        alone = {j: sum(held(d, m[i], wake[i]) for i, d in enumerate(demands) if d.job == j) for j in jobs}
        level = water_level([(alone[j], 1.0) for j in jobs], kind.cores)
        stretches = list(wake)
        for j in jobs:
            for i in [i for i, d in enumerate(demands) if d.job == j]:
                if level < math.inf:
                    # What this thread may do while the others of its job do what their other nodes let them.
                    free = [Demand(d.job, d.threads, d.utilisation, d.bandwidth, math.inf if k == i else d.cap, d.spin)
                            for k, d in enumerate(demands) if d.job == j]  # fmt: skip
                    own = [k for k, d in enumerate(demands) if d.job == j]
                    s = stretch(free, [m[k] for k in own], [wake[k] for k in own], level)
                    stretches[i] = max(s, wake[i])
    return [(rate(d, m[i], stretches[i]), held(d, m[i], stretches[i]) / d.threads) for i, d in enumerate(demands)]


def piecewise(kind: NodeType, demands: Sequence[Demand]) -> list[float]:
    """Return dilations by processor: 1 / speed; rates in MB/s."""
    c, result = kind.piecewise, []
    assert c is not None
    for d in demands:
        near = [o for o in demands if o.socket == d.socket]
        total = sum(o.threads * o.utilisation * o.bandwidth / 1e6 for o in near)
        if total < c.c:
            result.append(1.0)
            continue
        n = min(sum(o.threads for o in near) - 1, c.n_max)
        x = (d.utilisation * d.bandwidth / 1e6 - (c.da - n) * c.db) / (c.dc - n * c.dd)
        smooth = 1.0 if x < 0 else 0.0 if x > 1 else 1 - (6 * x**5 - 15 * x**4 + 10 * x**3)
        weight = n * c.d_weight
        result.append(1.0 / max((smooth * weight + 1) / (weight + 1), 1 + c.b * (total - c.c)))
    return result


def inflation(kind: NodeType, demand: Demand, everyone: Sequence[Demand]) -> float:
    """Return the factor of the other jobs in the memory domain on core time: one measured excess for each of them."""
    measured = {(pair.job, pair.neighbour): pair.factor for pair in kind.co_run_inflation}
    neighbours = {d.job: d.profile for d in everyone if d.job != demand.job}
    return 1.0 + sum(measured.get((demand.profile, other), 1.0) - 1.0 for other in neighbours.values())


@lru_cache(maxsize=200_000)
def domain_rates(nodes: tuple[tuple[NodeType, tuple[Demand, ...]], ...]) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Return (rate offered, cores held by one thread) of each demand on each node of one memory domain."""
    kind = nodes[0][0]
    everyone = [d for _, demands in nodes for d in demands]
    remote = 0.75 + 0.25 * kind.remote_access_penalty

    def dilation(d: Demand, level: float) -> float:
        return (1.0 + max(0.0, d.bandwidth / level - 1.0) * remote) * inflation(kind, d, everyone)

    def at(level: float) -> tuple[tuple[tuple[float, float], ...], ...]:
        return tuple(tuple(share_cores(t, ds, [dilation(d, level) for d in ds])) for t, ds in nodes)

    if not everyone or kind.contention is Contention.NONE:
        return at(math.inf)
    if kind.contention is Contention.PIECEWISE_LINEAR:
        alone = [piecewise(t, ds) for t, ds in nodes]
        return tuple(
            tuple(share_cores(t, ds, [m * inflation(kind, d, everyone) for d, m in zip(ds, dilations, strict=True)]))
            for (t, ds), dilations in zip(nodes, alone, strict=True)
        )
    equal, most = kind.contention is Contention.EQUAL_SHARE, max(d.bandwidth for d in everyone)
    capacity, threads = kind.memory_bandwidth, sum(d.threads for d in everyone)
    if kind.contending_threads is ContendingThreads.ALL:
        return at(capacity / threads if equal else water_level([(d.bandwidth, d.threads) for d in everyone], capacity))

    def surplus(level: float) -> float:
        total = 0.0
        for (_, demands), rates in zip(nodes, at(level), strict=True):
            for d, (offer, core) in zip(demands, rates, strict=True):
                weight = core * min(1.0, d.cap / offer) if d.spin else core
                total += d.threads * weight * (min(level, most) if equal else min(d.bandwidth, level))
        return total / capacity - 1.0

    if surplus(math.inf) <= 1e-12:
        return at(math.inf)
    return at(root(surplus, min(capacity / threads, most) * (1 - 1e-9), most))
