"""EASY backfilling as its definition says it, in plain Python: what the compiled replay is compared with.

Rule: nothing is kept from one pass to the next but the queue and who runs.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from pilotfish.simulate.workload import Workload


def rank(order: str, jobs: Workload, i: int, now: float, drawn: list[int]) -> tuple[float, ...]:
    """What the queue is sorted by, smallest first."""
    wall, size, wait = float(jobs.walltime[i]), int(jobs.size[i]), now - float(jobs.submit_time[i])
    since = max(float(jobs.submit_time[i] - jobs.submit_time[0]), 1.0)
    if order == "wfp3":
        ratio = wait / wall if wall > 0 else math.inf if wait > 0 else 0.0
        score = ratio * ratio * ratio * size
        return -score, i
    if order == "unicep":
        score = wait / (math.log2(max(size, 2)) * wall) if wall > 0 else math.inf if wait > 0 else 0.0
        return -score, i
    f1 = float(np.log10(max(wall, 1.0))) * size + 870.0 * float(np.log10(since)) if order == "f1" else 0.0
    keys = {"fcfs": 0, "sjf": wall, "smallest": size, "largest": -size, "f1": f1, "random": drawn[i] if drawn else 0}
    return keys[order], i


def plain(
    jobs: Workload, machine: int, order: str = "fcfs", *, fills: bool = True, drawn: list[int] | None = None
) -> tuple[list[float], list[float], list[list[int]]]:
    """Start and finish of each job (nan: rejected), and its resources."""
    count = len(jobs)
    submit, wall, size = jobs.submit_time.tolist(), jobs.walltime.tolist(), jobs.size.tolist()
    run = np.minimum(jobs.run_time, jobs.walltime).tolist()
    start, finish, places = [math.nan] * count, [math.nan] * count, [list[int]() for _ in range(count)]
    free, ending, queue, running, upcoming = list(range(machine)), list[tuple[float, int]](), list[int](), set[int](), 0
    while upcoming < count or ending:
        now = min(submit[upcoming] if upcoming < count else math.inf, ending[0][0] if ending else math.inf)
        while ending and ending[0][0] == now:
            i = heapq.heappop(ending)[1]
            running.discard(i)
            free = sorted(free + places[i])
        while upcoming < count and submit[upcoming] == now:
            if size[upcoming] <= machine:
                queue.append(upcoming)
            upcoming += 1
        queue.sort(key=lambda i: rank(order, jobs, i, now, drawn or []))
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
    """When that many are free, by walltimes, and how many more are then."""
    for time in sorted({time for time, _ in ends}):
        then = free + sum(size for end, size in ends if end <= time)
        if then >= wanted:
            return time, then - wanted
    raise AssertionError("it never fits")
