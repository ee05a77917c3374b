"""Reference of EASY and strict order with predicted run times, in plain Python, by definition.

Rule: each list is made again from all jobs at each instant; nothing is kept but what happened to each job.
"""

from __future__ import annotations

import math
from typing import Any

from pilotfish.simulate.model.workload import Workload

MINUTES = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000]


def plain_expected(
    jobs: Workload, machine: int, predictor: Any, order: str, *, fills: bool
) -> tuple[list[float], list[float], list[float]]:
    """Return start and finish of each job (nan: rejected), and the times at which an expected end was moved."""
    rows, submit, limit = range(len(jobs)), jobs.submit_time.tolist(), jobs.walltime.tolist()
    size, lasts = jobs.size.tolist(), [min(run, wall) for run, wall in zip(jobs.run_time, limit, strict=True)]
    start, finish = [math.inf for _ in rows], [math.inf for _ in rows]
    expected, end, moved = [math.nan for _ in rows], [math.inf for _ in rows], [0 for _ in rows]
    here, done, learned, moves, now = set[int](), set[int](), set[int](), list[float](), -math.inf

    def key(i: int) -> tuple[float, float, int]:
        wait, wall = now - submit[i], expected[i]
        first = {"sjf": wall, "smallest": size[i], "largest": -size[i]}.get(order, 0.0)
        if order == "f1":
            first = math.log10(max(wall, 1.0)) * size[i] + 870.0 * math.log10(max(submit[i] - submit[0], 1.0))
        if order in ("wfp3", "unicep"):
            ratio = math.inf if wait > 0.0 else 0.0
            if wall > 0.0:
                ratio = wait / wall if order == "wfp3" else wait / (math.log2(max(size[i], 2)) * wall)
                ratio = ratio * ratio * ratio * size[i] if order == "wfp3" else ratio
            first = -ratio
        return first, submit[i], i

    while True:
        running = [i for i in here - done if start[i] <= now]
        coming = [submit[i] for i in rows if i not in here] + [min(finish[i], end[i]) for i in running]
        if not coming:
            return (
                [s if s < math.inf else math.nan for s in start],
                [f if f < math.inf else math.nan for f in finish],
                moves,
            )
        now = min(coming)
        new = [i for i in rows if i not in here and submit[i] == now]
        if new:
            for i in sorted(done - learned, key=lambda i: (finish[i], i)):
                predictor.ended(i)
            learned |= done
        for i in new:
            known = predictor.expected(i)
            expected[i] = limit[i] if known is None else min(known, limit[i])
        here |= set(new)
        done |= {i for i in running if finish[i] == now}
        for i in [i for i in running if i not in done and end[i] <= now]:
            moved[i] += 1
            moves.append(now)
            more = (
                60.0 * MINUTES[moved[i] - 1] if moved[i] <= len(MINUTES) else 360000.0 * 2 ** (moved[i] - len(MINUTES))
            )
            end[i] = start[i] + min(now - start[i] + more, limit[i])
        free = machine - sum(size[i] for i in here - done if start[i] <= now)
        head, shadow, spare = -1, math.inf, 0
        for i in sorted((i for i in here if start[i] == math.inf and size[i] <= machine), key=key):
            late = now + expected[i] > shadow
            if size[i] > free or (head >= 0 and (not fills or (late and size[i] > spare))):
                if head < 0:
                    head = i
                    busy = sorted((end[k], size[k]) for k in here - done if start[k] <= now)
                    shadow = min(at for at, _ in busy if free + sum(s for t, s in busy if t <= at) >= size[i])
                    spare = free + sum(s for t, s in busy if t <= shadow) - size[i]
                continue
            if head >= 0 and late:
                spare -= size[i]
            start[i], finish[i], end[i] = now, now + lasts[i], now + expected[i]
            free -= size[i]
