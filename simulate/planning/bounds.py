"""A proven lower bound on the makespan, printed with every plan.

Rule: every argument holds for any mapping. (1) No thread progresses faster than in isolation, and a job takes at least
its core-seconds and its bytes divided by what its node has. (2) A core runs one thread at a time, so core-seconds
cannot exceed cores x time; the same holds for placed threads under a finite oversubscription, and for bytes through
memory channels that the model limits. (3) A head or tail is the longest chain of jobs before or after a job. For every
pair of thresholds, the jobs whose heads and tails reach them must all fit between the two. (4) Threads do not split:
sizes may be rounded up by any dual feasible function (Fekete & Schepers, Mathematical Programming 91, 2001). (5) Jobs
do not split either: of n jobs on m places, some place takes ceil(n / m), one after the other or sharing the place.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from .simulation import Simulation
from .workflow_tables import template_of

#: About how many distinct values of a column are tried as thresholds.
THRESHOLDS = 32
#: Cells of a table of thresholds and jobs that are computed at once.
CELLS = 1 << 20
#: Running jobs that are looked at between two breaths.
STEP_JOBS = 2048


def lower_bound(simulation: Simulation) -> float:
    """Return seconds below which no plan's makespan can be. O(J^2 + E) for up to 128 jobs, then O(J log J + E)."""
    time, demands, capacities = _needs(simulation)
    head, tail = _chains(simulation, time)
    best, world = float((head + time + tail).max(initial=0.0)), simulation.world
    nodes, limit = world.classes["nodes"][world.jobs["cls"]], template_of(simulation.cluster).nodes["limit"]
    places = (  # the most that one place has of each demand, and the number of places
        (float(world.types["cores"].max()), len(world.nodes)),
        (math.inf if _underway(simulation) else float(limit.max()), len(world.nodes)),
        (float(world.types["bandwidth"].max()), len(world.domains)),
    )
    shares = _packed(simulation, time)  # of the makespan, that the jobs need together
    for demand, total, (largest, count) in zip(demands, capacities, places, strict=True):
        simulation.breathe()
        if total > 0.0 and np.isfinite(total):
            shares.append(demand / total)
            best = max(best, _counted(head, tail, demand / nodes / largest, nodes, count))
    for least, room in _whole(simulation):
        simulation.breathe()
        best = max(best, _counted(head, tail, np.where(least, time, 0.0), nodes, room, most=12))
    return max(best, _windows(head, tail, shares))


def _underway(simulation: Simulation) -> bool:
    """Return whether jobs are running, perhaps placed under another thread limit."""
    return bool((simulation.world.jobs["state"] == layout.RUNNING).any())


def _needs(simulation: Simulation) -> tuple[Array, list[Array], list[float]]:
    """Return each job's least isolated time and least core-seconds, thread-seconds and bytes; and the capacities."""
    world = simulation.world
    jobs, classes, kinds = world.jobs, world.classes, world.types
    limited = set(kinds["contention"].tolist()) <= {layout.EQUAL_SHARE, layout.MAX_MIN}
    channel = kinds["bandwidth"] if limited else np.full(len(kinds), np.inf)
    needs = _needs_of(simulation, 0, len(classes), 0.0, channel)[jobs["cls"]]
    needs[jobs["state"] == layout.DONE] = 0.0
    # Nodes that take no new jobs may still run some, with more threads than may be placed now.
    placed = np.zeros(len(world.nodes))
    for number, i in enumerate(np.flatnonzero(jobs["state"] == layout.RUNNING).tolist()):
        if number % STEP_JOBS == 0:
            simulation.breathe()
        row, cls = jobs[i], int(jobs["cls"][i])
        needs[i] = _needs_of(simulation, cls, cls + 1, float(row["progress"]), channel)[0]
        placed[world.placed[simulation.slots(i)]] += classes["threads"][cls]
    limit = np.maximum(template_of(simulation.cluster).nodes["limit"], placed)
    time, cpu, data = needs.T
    held = (classes["threads"] * classes["nodes"])[jobs["cls"]] * time
    domain_bandwidth = kinds["bandwidth"][world.nodes["type"][world.domain_nodes[world.domains["start"]]]]
    cores, channels = kinds["cores"][world.nodes["type"]].sum(), domain_bandwidth.sum() if limited else 0.0
    return time, [cpu, held, data], [float(cores), float(limit.sum()), float(channels)]


def _needs_of(simulation: Simulation, first: int, stop: int, progress: float, channel: Array) -> Array:
    """Return the least time, core-seconds and bytes that jobs of some classes still need [classes, 3].

    O(their phases x types).
    """
    world = simulation.world
    classes = world.classes[first:stop]
    if len(classes) == 0:
        return np.zeros((0, 3))
    group0 = int(classes["group_start"][0])
    groups = world.groups[group0 : int(classes["group_start"][-1] + classes["group_count"][-1])]
    phase0, kinds = int(groups["phase_start"][0]), len(world.types)
    phases = world.phases[phase0 * kinds : int(groups["phase_start"][-1] + groups["phase_count"][-1]) * kinds]
    phases, at = phases.reshape(-1, kinds), groups["phase_start"] - phase0
    work = phases["work"]
    if progress > 0.0:
        ends = [part.cumsum(0) for part in np.split(work, at[1:])]
        work = np.clip(np.concatenate([end - progress * end[-1] for end in ends]), 0.0, work)
    busy, count = work * phases["utilisation"], groups["count"][:, None]
    moved = busy * phases["bandwidth"]
    alone, core_s, volume = (np.add.reduceat(amount, at) for amount in (work, busy, moved))
    group = classes["group_start"] - group0
    alone = np.maximum.reduceat(alone, group)
    core_s, volume = np.add.reduceat(count * core_s, group), np.add.reduceat(count * volume, group)
    time = np.maximum(alone, np.maximum(core_s / world.types["cores"], volume / channel)).min(1)
    needs: Array = np.stack([time, classes["nodes"] * core_s.min(1), classes["nodes"] * volume.min(1)], axis=1)
    return needs


def _packed(simulation: Simulation, time: Array) -> list[Array]:
    """Return the shares of the makespan that jobs need by whole threads under the thread limit; none without one."""
    sizes = _sizes(simulation)
    if sizes is None:
        return []
    threads, nodes, limit = sizes
    scaled = np.arange(2, 14)[:, None] * (threads / limit.max())
    is_whole = np.abs(scaled - np.round(scaled)) < 1e-9
    rounded = np.where(is_whole, threads / limit.max(), np.floor(scaled) / np.arange(1, 13)[:, None])
    return list(rounded * nodes * time / len(limit))


def _whole(simulation: Simulation) -> list[tuple[Array, float]]:
    """Return, for some least numbers of threads, which jobs have as many, and how many such jobs run at a time."""
    sizes = _sizes(simulation)
    if sizes is None:
        return []
    threads, _, limit = sizes
    return [(threads >= least, float(np.floor(limit / least).sum())) for least in _thresholds(threads, 12).tolist()]


def _sizes(simulation: Simulation) -> tuple[Array, Array, Array] | None:
    """Return threads on each node and nodes of each job, and the thread limit of each node; None without a limit."""
    world, limit = simulation.world, template_of(simulation.cluster).nodes["limit"]
    if not np.isfinite(limit).all() or len(world.jobs) == 0 or _underway(simulation):
        return None
    cls = world.jobs["cls"]
    return world.classes["threads"][cls], world.classes["nodes"][cls], limit


def _counted(head: Array, tail: Array, seconds: Array, nodes: Array, room: float, *, most: int = THRESHOLDS) -> float:
    """Return the maximum, over sets of jobs, `room` at a time, of head + rounds + tail.

    Some place takes ceil(n / room) of the jobs, so it needs at least the least head, that many of the shortest jobs,
    and the least tail. Jobs with 0 seconds do not count. A set: the jobs whose heads and seconds reach two thresholds.
    O(J log J).
    """
    order = np.argsort(seconds, kind="stable")
    order = order[np.searchsorted(seconds[order], 0.0, "right") :]
    head, tail, seconds, nodes = head[order], tail[order], seconds[order], nodes[order]
    shortest = np.searchsorted(seconds, _thresholds(seconds, most))
    best = 0.0
    for firsts in _slices(_thresholds(head, most), len(order)):
        late = head >= firsts[:, None]  # [thresholds, jobs]
        late_nodes, last = late * nodes, np.where(late, tail, math.inf)
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        upto, work = np.zeros((2, len(firsts), len(order) + 1))
        np.cumsum(late_nodes, axis=1, out=upto[:, 1:])
        np.cumsum(late_nodes * seconds, axis=1, out=work[:, 1:])
        before, work_before = upto[:, shortest], work[:, shortest]
        number = upto[:, -1:] - before
        rounds = np.minimum(np.maximum(1.0, np.ceil(number / room - 1e-9)), number)
        row = np.arange(len(firsts))[:, None]
        apart = row * (upto[:, -1:].max() + 1.0)  # so that one search serves all rows
        ends = np.searchsorted((upto + apart).ravel(), before + rounds + apart) - row * upto.shape[1]
        beyond = (upto[row, ends] - before - rounds) * seconds[np.maximum(ends - 1, 0)]
        total = firsts[:, None] + work[row, ends] - work_before - beyond + last[:, shortest]
        best = max(best, float(total[number > 0.0].max(initial=0.0)))
    return best


def _slices(thresholds: Array, jobs: int) -> list[Array]:
    """Return the thresholds in parts; each part has at most CELLS cells with the jobs."""
    most = max(1, CELLS // max(1, jobs))
    return [thresholds[first : first + most] for first in range(0, len(thresholds), most)]


def _thresholds(values: Array, most: int) -> Array:
    """Return some distinct values in ascending order, at most 2 `most`."""
    distinct = np.unique(values)
    return distinct[:: max(1, len(distinct) // most)]


def _chains(simulation: Simulation, time: Array) -> tuple[Array, Array]:
    """Return the longest chain of isolated times before and after each job. O(J + E)."""
    jobs, seconds = simulation.world.jobs, time.tolist()
    start, stop, after = jobs["succ_start"].tolist(), jobs["succ_count"], simulation.world.successors.tolist()
    stop = (jobs["succ_start"] + stop).tolist()
    head, tail, order = [0.0] * len(seconds), [0.0] * len(seconds), topological(simulation)
    for i in order:
        end = head[i] + seconds[i]
        for k in after[start[i] : stop[i]]:
            head[k] = max(head[k], end)
    for i in reversed(order):
        tail[i] = max((tail[k] + seconds[k] for k in after[start[i] : stop[i]]), default=0.0)
    return np.array(head), np.array(tail)


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


def _windows(head: Array, tail: Array, needs: list[Array]) -> float:
    """Return the maximum of: least head + all work of the jobs at or above two thresholds + least tail.

    Args:
        head: longest chain before each job, seconds [jobs].
        tail: longest chain after it.
        needs: work of each job, seconds [jobs], in several ways.
    """
    best = 0.0
    order = np.argsort(-tail, kind="stable")
    head, tail, needs = head[order], tail[order], [need[order] for need in needs]
    for firsts in _slices(_thresholds(head, 128), len(order)):
        late = head >= firsts[:, None]
        around = np.where(late, firsts[:, None] + tail, -math.inf)
        for seconds in needs:
            best = max(best, float((np.cumsum(late * seconds, axis=1) + around).max(initial=0.0)))
    return best
