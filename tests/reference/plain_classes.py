"""EASY backfilling on nodes of which each job may use some, as plainly as it can be said: lists of nodes, one core at a
time, and the whole state looked at again at each instant.

Rule: nothing is shared with the product. A core is free or has a job. A job takes cores of the nodes in the order in
which they are given. A job that cannot be there when the reservation of the first waiting job begins must end before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class PlainJob:
    """A job: what it needs, and `start`, nan until it has begun."""

    begin: float
    run: float
    wall: float
    size: int
    nodes: frozenset[str]
    after: tuple[int, ...] = ()
    has: list[str] = field(default_factory=list)  # one name for each core
    start: float = math.nan

    def ended(self, now: float) -> bool:
        """Whether it has run."""
        return self.start + self.run <= now


def plain_starts(cores: Sequence[str], jobs: Sequence[PlainJob]) -> list[float]:
    """Return when each job starts.

    Args:
        cores: the node of each core, in the order in which jobs take them.
        jobs: in the order of the queue; those with a `start` run, on the cores that they have.
    """
    now = 0.0
    while now < math.inf:
        shadow, kept = math.inf, None  # when the head starts, and the cores that are left to others then
        for job in jobs:
            done = all(jobs[other].ended(now) for other in job.after)
            if not math.isnan(job.start) or job.begin > now or not done:
                continue
            free = _free(cores, jobs, now)
            place = _place(free, job)
            if place is None:
                if kept is None:
                    shadow, kept = _reservation(cores, jobs, job, now)
                continue
            if kept is not None and now + job.wall > shadow:
                place = _place(_both(free, kept), job)
                if place is None:
                    continue
                for name in place:
                    kept.remove(name)
            job.start, job.has = now, place
        times = [job.start + job.run for job in jobs if not math.isnan(job.start) and not job.ended(now)]
        times += [job.begin for job in jobs if math.isnan(job.start) and job.begin > now]
        now = min(times, default=math.inf)
    return [job.start for job in jobs]


def _free(cores: Sequence[str], jobs: Sequence[PlainJob], now: float) -> list[str]:
    """Return the nodes of the cores that no running job has."""
    left = list(cores)
    for job in jobs:
        if not math.isnan(job.start) and not job.ended(now):
            for name in job.has:
                left.remove(name)
    return left


def _place(free: Sequence[str], job: PlainJob) -> list[str] | None:
    """Return the first cores that a job may use, None if they are too few."""
    usable = [name for name in free if name in job.nodes]
    return usable[: job.size] if len(usable) >= job.size else None


def _both(one: Sequence[str], two: Sequence[str]) -> list[str]:
    """Return the cores that are in both lists."""
    left, found = list(two), list[str]()
    for name in one:
        if name in left:
            left.remove(name)
            found.append(name)
    return found


def _reservation(cores: Sequence[str], jobs: Sequence[PlainJob], head: PlainJob, now: float) -> tuple[float, list[str]]:
    """Return when the head can start at the latest, and the cores that it then leaves."""
    running = [job for job in jobs if not math.isnan(job.start) and not job.ended(now)]
    for time in sorted({now, *(job.start + job.wall for job in running)}):
        left = list(cores)
        for job in running:
            if job.start + job.wall > time:
                for name in job.has:
                    left.remove(name)
        if (place := _place(left, head)) is not None:
            for name in place:
                left.remove(name)
            return time, left
    return math.inf, list(cores)
