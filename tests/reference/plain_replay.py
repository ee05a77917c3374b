"""Reference of EASY and conservative backfilling, in plain Python, by definition.

Rule: only the queue and the running jobs are kept between passes.
"""

from __future__ import annotations

import heapq
import math
from functools import cache

import numpy as np

from pilotfish.simulate.model.workload import Workload
from tests.reference.plain_dependents import Upcoming


def rank(order: str, jobs: Workload, i: int, now: float, drawn: list[int], came: Upcoming) -> tuple[float, ...]:
    """Return the sort key of the queue; the smallest comes first."""
    wall, size, wait = float(jobs.walltime[i]), int(jobs.size[i]), now - came.submit[i]
    since = max(came.submit[i] - float(jobs.submit_time[0]), 1.0)
    if order == "wfp3":
        ratio = wait / wall if wall > 0 else math.inf if wait > 0 else 0.0
        score = ratio * ratio * ratio * size
        return -score, came.turn[i]
    if order == "unicep":
        score = wait / (math.log2(max(size, 2)) * wall) if wall > 0 else math.inf if wait > 0 else 0.0
        return -score, came.turn[i]
    f1 = float(np.log10(max(wall, 1.0))) * size + 870.0 * float(np.log10(since)) if order == "f1" else 0.0
    keys = {"fcfs": 0, "sjf": wall, "smallest": size, "largest": -size, "f1": f1, "random": drawn[i] if drawn else 0}
    return keys[order], came.turn[i]


def plain(
    jobs: Workload, machine: int, order: str = "fcfs", *, fills: bool = True, drawn: list[int] | None = None
) -> tuple[list[float], list[float], list[list[int]]]:
    """Return start and finish of each job (nan: rejected), and its resources."""
    count = len(jobs)
    upcoming, wall, size = Upcoming(jobs), jobs.walltime.tolist(), jobs.size.tolist()
    run = np.minimum(jobs.run_time, jobs.walltime).tolist()
    start, finish, places = [math.nan] * count, [math.nan] * count, [list[int]() for _ in range(count)]
    free, ending, queue, running = list(range(machine)), list[tuple[float, int]](), list[int](), set[int]()
    while upcoming or ending:
        now = min(upcoming.time, ending[0][0] if ending else math.inf)
        while ending and ending[0][0] == now:
            i = heapq.heappop(ending)[1]
            running.discard(i)
            upcoming.ended(i, jobs.run_time[i] <= wall[i])
            free = sorted(free + places[i])
        queue += [i for i in upcoming.now(now) if size[i] <= machine]
        queue.sort(key=lambda i: rank(order, jobs, i, now, drawn or [], upcoming))
        left, reservation, spare = list[int](), math.inf, 0
        for i in queue:
            fits = size[i] <= len(free)
            if left and fits:
                fits = fills and (now + wall[i] <= reservation or size[i] <= spare)
                if fits and now + wall[i] > reservation:
                    spare -= size[i]
            if fits:
                start[i], finish[i], places[i] = now, now + run[i], free[: size[i]]
                free = free[size[i] :]
                heapq.heappush(ending, (finish[i], i))
                running.add(i)
                continue
            if not left:
                reservation, spare = _reserve(size[i], len(free), [(start[j] + wall[j], size[j]) for j in running])
            left.append(i)
        queue = left
    return start, finish, places


def _reserve(wanted: int, free: int, ends: list[tuple[float, int]]) -> tuple[float, int]:
    """Return when `wanted` resources are free by walltimes, and how many more are then."""
    for time in sorted({time for time, _ in ends}):
        then = free + sum(size for end, size in ends if end <= time)
        if then >= wanted:
            return time, then - wanted
    raise AssertionError("it never fits")


def conservative(
    jobs: Workload, machine: int, allocation: str = "basic", groups: list[tuple[int, int]] | None = None,
    order: str = "fcfs", drawn: list[int] | None = None, cap: tuple[float, float, int] = (0.0, 0.0, 0),
) -> tuple[list[float], list[list[int]], list[list[float]]]:  # fmt: skip
    """Return start of each job (nan: rejected), its resources, and its reserved starts, one per event.

    `cap`: begin and end of a power cap, and how many resources jobs may then use.
    """
    assert cap[2] <= machine
    count = len(jobs)
    upcoming, wall, size = Upcoming(jobs), jobs.walltime.tolist(), jobs.size.tolist()
    run = np.minimum(jobs.run_time, jobs.walltime).tolist()
    begin, end, places = [math.nan] * count, [math.nan] * count, [list[int]() for _ in range(count)]
    promised, queue, running = [list[float]() for _ in range(count)], list[int](), list[int]()

    def put(i: int, now: float) -> bool:
        others = [k for k in (*queue, *running) if k != i]

        @cache
        def fits(t: float) -> bool:
            used = sum(size[k] for k in others if begin[k] <= t < end[k])
            return used + size[i] <= (cap[2] if cap[0] <= t < cap[1] else machine)

        changes = [t for t in cap[:2] if now < t < math.inf]
        for start in sorted({now, *changes, *(t for k in others for t in (begin[k], end[k]) if t > now)}):
            until = start + wall[i]
            until = until if until > start else start + (abs(start) * 2.0**-52 + 5e-324)
            moments = (t for t in (start, cap[0], *(begin[k] for k in others)) if start <= t < until)
            if not all(map(fits, moments)):
                continue
            if allocation == "basic":
                begin[i], end[i] = start, until
                return True
            busy = {place for k in others if begin[k] < until and end[k] > start for place in places[k]}
            free = [place for place in range(machine) if place not in busy]
            chosen = choose(free, size[i], allocation, groups or [(0, machine - 1)])
            if chosen:
                begin[i], end[i], places[i] = start, until, chosen
                return True
        return False

    while upcoming or queue or running:
        times = [begin[i] + run[i] for i in running] + [begin[i] for i in queue]
        now = min(*times, upcoming.time, math.inf)
        for i in [i for i in running if begin[i] + run[i] == now]:
            running.remove(i)
            upcoming.ended(i, jobs.run_time[i] <= wall[i])
        queue.sort(key=lambda i: rank(order, jobs, i, now, drawn or [], upcoming))
        for i in queue:
            before = begin[i], end[i], places[i]
            places[i] = []
            assert put(i, now) and begin[i] <= before[0]
            if begin[i] == before[0]:
                begin[i], end[i], places[i] = before
        for i in upcoming.now(now):
            if size[i] <= machine and put(i, now):
                queue.append(i)
            else:
                begin[i], places[i] = math.nan, []
        for i in queue:
            promised[i].append(begin[i])
        queue.sort(key=lambda i: rank(order, jobs, i, now, drawn or [], upcoming))
        for i in [i for i in queue if begin[i] == now]:
            if allocation == "basic":
                taken = {place for k in running for place in places[k]}
                places[i] = [place for place in range(machine) if place not in taken][: size[i]]
            running.append(i)
        queue = [i for i in queue if begin[i] > now]
    return begin, places, promised


def choose(free: list[int], size: int, allocation: str, groups: list[tuple[int, int]]) -> list[int]:
    """Return the resources that an allocation chooses, [] if none."""
    if "contiguous" in allocation:
        for k in range(len(free) - size + 1):
            if free[k + size - 1] - free[k] == size - 1:
                return free[k : k + size]
    if "local" in allocation:
        for first, last in groups:
            inside = [x for x in free if first <= x <= last]
            if len(inside) >= size:
                return inside[:size]
    if allocation in ("contiguous", "local"):
        return []
    return free[:size] if len(free) >= size else []
