"""A proven lower bound on the makespan, to print beside every plan.

Rule: every argument holds whatever the mapping. (1) No thread progresses faster than in isolation, and a job takes
at least its core-seconds and its bytes divided by what its node has. (2) Cores are held one thread at a time, so
core-seconds cannot exceed cores x time; the same for placed threads under a finite oversubscription and for bytes
through memory channels where the model limits them. (3) For every pair of thresholds, the jobs whose heads and tails
(longest chains before and after them) reach it must all fit between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .build import template_of
from .engine import Simulation
from .kernels import layout

Array = npt.NDArray[Any]


def lower_bound(simulation: Simulation) -> float:
    """Seconds below which no plan's makespan can be. O(J + E), and O(J^2) vectorised for up to 400 jobs."""
    time, demands, capacities = _needs(simulation)
    head, tail = _chains(simulation, time)
    best = float((head + time + tail).max(initial=0.0))
    for demand, capacity in zip(demands, capacities, strict=True):
        if capacity > 0.0 and np.isfinite(capacity):
            best = max(best, _windows(head, tail, demand / capacity))
    return best


def _needs(simulation: Simulation) -> tuple[Array, list[Array], list[float]]:
    """Least isolated time of each job, its least demands (core-seconds, thread-seconds, bytes), and capacities."""
    world = simulation.world
    n_types = len(world.types)
    phases = world.phases.reshape(-1, n_types)
    work, busy = phases["work"], phases["work"] * phases["utilisation"]
    moved = busy * phases["bandwidth"]
    limited = bool(np.isin(world.types["contention"], (layout.EQUAL_SHARE, layout.MAX_MIN)).all())
    channel = world.types["bandwidth"] if limited else np.full(n_types, np.inf)
    count = len(world.classes)
    time, cpu, data = np.zeros(count), np.zeros(count), np.zeros(count)
    for c, cls in enumerate(world.classes):
        alone, core_s, volume = np.zeros(n_types), np.zeros(n_types), np.zeros(n_types)
        for group in world.groups[cls["group_start"] : cls["group_start"] + cls["group_count"]]:
            rows = slice(group["phase_start"], group["phase_start"] + group["phase_count"])
            alone = np.maximum(alone, work[rows].sum(0))
            core_s += group["count"] * busy[rows].sum(0)
            volume += group["count"] * moved[rows].sum(0)
        time[c] = np.maximum.reduce([alone, core_s / world.types["cores"], volume / channel]).min()
        cpu[c], data[c] = cls["nodes"] * core_s.min(), cls["nodes"] * volume.min()
    held = world.classes["threads"] * world.classes["nodes"] * time
    of = world.jobs["cls"]
    left = np.where(world.jobs["state"] == layout.DONE, 0.0, 1.0 - world.jobs["progress"])
    kinds = world.types[world.nodes["type"]]
    limit = template_of(simulation.cluster).nodes["limit"]  # also of nodes that take nothing new: jobs may run there
    domain_bandwidth = world.types["bandwidth"][world.nodes["type"][world.domain_nodes[world.domains["start"]]]]
    capacities = [
        float(kinds["cores"].sum()),
        float(limit.sum()),
        float(domain_bandwidth.sum()) if limited else 0.0,
    ]
    return time[of] * left, [cpu[of] * left, held[of] * left, data[of] * left], capacities


def _chains(simulation: Simulation, time: Array) -> tuple[Array, Array]:
    """Longest chain of isolated times before and after each job."""
    world = simulation.world
    jobs, successors = world.jobs, world.successors
    order = topological(simulation)
    head, tail = np.zeros(len(jobs)), np.zeros(len(jobs))
    start, count = jobs["succ_start"], jobs["succ_count"]
    for i in order:
        after = successors[start[i] : start[i] + count[i]]
        np.maximum.at(head, after, head[i] + time[i])
    for i in reversed(order):
        after = successors[start[i] : start[i] + count[i]]
        if len(after):
            tail[i] = (tail[after] + time[after]).max()
    return head, tail


def topological(simulation: Simulation) -> list[int]:
    """Jobs so that each comes after those it waits for. O(J + E)."""
    jobs, successors = simulation.world.jobs, simulation.world.successors
    blockers = jobs["blockers"].tolist()
    start, count = jobs["succ_start"].tolist(), jobs["succ_count"].tolist()
    after = successors.tolist()
    order = [i for i, n in enumerate(blockers) if n == 0]
    for i in order:
        for k in after[start[i] : start[i] + count[i]]:
            blockers[k] -= 1
            if blockers[k] == 0:
                order.append(k)
    return order


def bottom_levels(simulation: Simulation) -> Array:
    """Longest chain from each job's start to the end, isolated times (the classic critical-path priority)."""
    time, _, _ = _needs(simulation)
    _, tail = _chains(simulation, time)
    return time + tail


def _windows(head: Array, tail: Array, seconds: Array) -> float:
    """max over thresholds of: least head + all work of the jobs at or above both + least tail."""
    best = float(seconds.sum() + head.min(initial=0.0) + tail.min(initial=0.0)) if len(head) else 0.0
    thresholds = np.unique(head) if len(head) <= 400 else np.unique(head)[:: max(1, len(head) // 400)]
    for threshold in thresholds:
        late = head >= threshold
        order = np.argsort(-tail[late], kind="stable")
        total = np.cumsum(seconds[late][order])
        best = max(best, float((threshold + total + tail[late][order]).max()))
    return best
