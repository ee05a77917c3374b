"""A proven lower bound on the makespan, printed with every plan.

Rule: every argument holds for any mapping. (1) No thread progresses faster than in isolation, and a job takes at least
its core-seconds and its bytes divided by what its node has. (2) A core runs one thread at a time, so core-seconds
cannot exceed cores x time; the same holds for placed threads under a finite oversubscription, and for bytes through
memory channels that the model limits. (3) For every pair of thresholds, the jobs whose heads and tails (longest chains
before and after them) reach it must all fit between. (4) Threads do not split: sizes may be rounded up by any dual
feasible function (Fekete & Schepers, Mathematical Programming 91, 2001). (5) Jobs do not split either: of n jobs on m
places, some place takes ceil(n / m), one after the other or sharing the place.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from .simulation import Simulation
from .workflow_tables import template_of

THRESHOLDS = 12


def lower_bound(simulation: Simulation) -> float:
    """Return seconds below which no plan's makespan can be. O(J + E), and O(J^2) vectorised for up to 400 jobs."""
    time, demands, capacities = _needs(simulation)
    head, tail = _chains(simulation, time)
    best, world = float((head + time + tail).max(initial=0.0)), simulation.world
    nodes, limit = world.classes["nodes"][world.jobs["cls"]], template_of(simulation.cluster).nodes["limit"]
    places = (  # the most that one place has of each demand, and the number of places
        (float(world.types["cores"].max()), len(world.nodes)),
        (math.inf if _underway(simulation) else float(limit.max()), len(world.nodes)),
        (float(world.types["bandwidth"].max()), len(world.domains)),
    )
    for demand, total, (largest, count) in zip(demands, capacities, places, strict=True):
        if total > 0.0 and np.isfinite(total):
            best = max(best, _windows(head, tail, demand / total))
            best = max(best, _counted(head, tail, demand / nodes / largest, nodes, count))
    return max(best, _packed(simulation, time, head, tail))


def _underway(simulation: Simulation) -> bool:
    """Return whether jobs are running, perhaps placed under another thread limit."""
    return bool((simulation.world.jobs["state"] == layout.RUNNING).any())


def _needs(simulation: Simulation) -> tuple[Array, list[Array], list[float]]:
    """Return each job's least isolated time and least core-seconds, thread-seconds and bytes; and the capacities."""
    world = simulation.world
    jobs, classes, kinds = world.jobs, world.classes, world.types
    limited = bool(np.isin(kinds["contention"], (layout.EQUAL_SHARE, layout.MAX_MIN)).all())
    channel = kinds["bandwidth"] if limited else np.full(len(kinds), np.inf)
    whole = np.array([_needs_of(simulation, c, 0.0, channel) for c in range(len(classes))]).reshape(-1, 3)
    needs = whole[jobs["cls"]]
    needs[jobs["state"] == layout.DONE] = 0.0
    # Nodes that take no new jobs may still run some, with more threads than may be placed now.
    placed = np.zeros(len(world.nodes))
    for i in np.flatnonzero(jobs["state"] == layout.RUNNING).tolist():
        row = jobs[i]
        needs[i] = _needs_of(simulation, int(row["cls"]), float(row["progress"]), channel)
        placed[world.placed[simulation.slots(i)]] += classes["threads"][row["cls"]]
    limit = np.maximum(template_of(simulation.cluster).nodes["limit"], placed)
    time, cpu, data = needs.T
    held = (classes["threads"] * classes["nodes"])[jobs["cls"]] * time
    domain_bandwidth = kinds["bandwidth"][world.nodes["type"][world.domain_nodes[world.domains["start"]]]]
    cores, channels = kinds["cores"][world.nodes["type"]].sum(), domain_bandwidth.sum() if limited else 0.0
    return time, [cpu, held, data], [float(cores), float(limit.sum()), float(channels)]


def _needs_of(simulation: Simulation, cls: int, progress: float, channel: Array) -> tuple[float, float, float]:
    """Return the least time, core-seconds and bytes that a job of a class still needs. O(its phases x types)."""
    world = simulation.world
    row, n_types = world.classes[cls], len(world.types)
    phases = world.phases.reshape(-1, n_types)
    alone, core_s, volume = np.zeros(n_types), np.zeros(n_types), np.zeros(n_types)
    for group in world.groups[row["group_start"] : row["group_start"] + row["group_count"]]:
        here = phases[group["phase_start"] : group["phase_start"] + group["phase_count"]]
        left = here["work"]
        if progress > 0.0:
            ends = left.cumsum(0)
            left = np.clip(ends - progress * ends[-1], 0.0, left)
        busy = left * here["utilisation"]
        alone = np.maximum(alone, left.sum(0))
        core_s += group["count"] * busy.sum(0)
        volume += group["count"] * (busy * here["bandwidth"]).sum(0)
    time = np.maximum.reduce([alone, core_s / world.types["cores"], volume / channel]).min()
    return float(time), float(row["nodes"] * core_s.min()), float(row["nodes"] * volume.min())


def _packed(simulation: Simulation, time: Array, head: Array, tail: Array) -> float:
    """Return bounds from whole threads under the thread limit; 0 without one. O(J^2) for up to THRESHOLDS values."""
    world = simulation.world
    limit = template_of(simulation.cluster).nodes["limit"]
    if not np.isfinite(limit).all() or len(time) == 0 or _underway(simulation):
        return 0.0
    cls = world.jobs["cls"]
    threads, nodes = world.classes["threads"][cls], world.classes["nodes"][cls]
    size, best = threads / limit.max(), 0.0
    for p in range(1, 13):
        scaled = (p + 1) * size
        whole = np.abs(scaled - np.round(scaled)) < 1e-9
        rounded = np.where(whole, size, np.floor(scaled) / p)
        best = max(best, _windows(head, tail, rounded * nodes * time / len(limit)))
    for least in _thresholds(threads):
        room = float(np.floor(limit / least).sum())
        best = max(best, _counted(head, tail, np.where(threads >= least, time, 0.0), nodes, room))
    return best


def _counted(head: Array, tail: Array, seconds: Array, nodes: Array, room: float) -> float:
    """Return the maximum, over sets of jobs, `room` at a time, of head + rounds + tail.

    Some place takes ceil(n / room) of the jobs, so it needs at least the least head, that many of the shortest jobs,
    and the least tail. Jobs with 0 seconds do not count.
    """
    order = np.argsort(seconds, kind="stable")
    head, tail, seconds, nodes, best = head[order], tail[order], seconds[order], nodes[order], 0.0
    for shortest in _thresholds(seconds[seconds > 0.0]):
        chosen = slice(int(np.searchsorted(seconds, shortest)), None)
        firsts = _thresholds(head[chosen])[:, None]
        late = head[chosen] >= firsts  # [thresholds, jobs], as those below
        many = late * nodes[chosen]
        upto = many.cumsum(axis=1)
        rounds = np.maximum(1.0, np.ceil(upto[:, -1:] / room - 1e-9))
        together = np.minimum(np.maximum(rounds - upto + many, 0.0), many) @ seconds[chosen]
        last = np.where(late, tail[chosen], math.inf).min(axis=1)
        best = max(best, float((firsts[:, 0] + together + last).max()))
    return best


def _thresholds(values: Array) -> Array:
    """Return some distinct values in ascending order, at most THRESHOLDS."""
    distinct = np.unique(values)
    return distinct[:: max(1, len(distinct) // THRESHOLDS)]


def _chains(simulation: Simulation, time: Array) -> tuple[Array, Array]:
    """Return the longest chain of isolated times before and after each job."""
    world = simulation.world
    jobs, successors = world.jobs, world.successors
    head, tail = np.zeros(len(jobs)), np.zeros(len(jobs))
    start, count = jobs["succ_start"], jobs["succ_count"]
    order = [(i, successors[start[i] : start[i] + count[i]]) for i in topological(simulation)]
    for i, after in order:
        np.maximum.at(head, after, head[i] + time[i])
    for i, after in reversed(order):
        tail[i] = (tail[after] + time[after]).max(initial=0.0)
    return head, tail


def topological(simulation: Simulation) -> list[int]:
    """Return the jobs in an order in which each comes after its predecessors. O(J + E)."""
    jobs, successors = simulation.world.jobs, simulation.world.successors
    blockers, after = jobs["blockers"].tolist(), successors.tolist()
    start, count = jobs["succ_start"].tolist(), jobs["succ_count"].tolist()
    order = [i for i, n in enumerate(blockers) if n == 0]
    for i in order:
        for k in after[start[i] : start[i] + count[i]]:
            blockers[k] -= 1
            if blockers[k] == 0:
                order.append(k)
    return order


def bottom_levels(simulation: Simulation) -> Array:
    """Return the longest chain of isolated times from each job's start to the end (critical-path priority)."""
    time = _needs(simulation)[0]
    return time + _chains(simulation, time)[1]


def _windows(head: Array, tail: Array, seconds: Array) -> float:
    """Return the maximum over thresholds of: least head + all work of the jobs at or above both + least tail."""
    best = float(seconds.sum() + head.min(initial=0.0) + tail.min(initial=0.0)) if len(head) else 0.0
    for threshold in np.unique(head)[:: max(1, len(head) // 400)]:
        late = head >= threshold
        order = np.argsort(-tail[late], kind="stable")
        total = np.cumsum(seconds[late][order])
        best = max(best, float((threshold + total + tail[late][order]).max()))
    return best
