"""EASY backfilling and strict order in Python.

Rule: on one node, which is what a replay is, each gives the schedule of its kernel. On several nodes a reservation is
one of nodes, because a job does not move: what is backfilled leaves the nodes of the reservation free in its time.
A running job that is past its latest end is expected to go on for as long as it is late, at least OVERDUE_S.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .free_nodes import FreeNodes
from .interface import Decision, QueueView, Reserve, Start
from .order import Order
from .queued_job import QueuedJob, Running

OVERDUE_S = 1.0
_Started = tuple[float, QueuedJob, tuple[int, ...]]  # latest end, job, nodes


class Backfilling:
    """EASY backfilling, and strict order without `fills`; `queue` is the order of the jobs."""

    def __init__(self, queue: Order, *, fills: bool) -> None:
        self.queue, self.fills = queue, fills

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Start the first jobs while they fit, reserve for the first that does not, and backfill behind it."""
        free, started = now.free_nodes(), list[_Started]()
        free_count, reserved, later = int(free.cores.clip(0).sum()), math.inf, None
        for job in self.queue.sorted(now):
            until, late = now.time + job.walltime, False
            if later is not None:
                late = until > reserved
                nodes = free.where(job, later if late else None) if job.size <= free_count else None
            else:
                nodes = free.where(job) if job.size <= free_count else None
                if nodes is None and not self.fills:
                    return
                if nodes is None:
                    reserved, later, place = self._reserve(now, job, started)
                    if place is not None and now.time < reserved < math.inf:
                        yield Reserve(job, reserved, place)
            if nodes is None:
                continue
            free.take(job, nodes)
            free_count -= job.size
            if late and later is not None:
                later.take(job, nodes)
            started.append((until, job, nodes))
            yield Start(job, nodes=nodes)

    def _reserve(
        self, now: QueueView, head: QueuedJob, started: list[tuple[float, QueuedJob, tuple[int, ...]]]
    ) -> tuple[float, FreeNodes, tuple[int, ...] | None]:
        """Return when a job can start at the latest, what is then free of its nodes and of others, and its nodes."""
        later = now.free_nodes()
        for _, job, nodes in started:
            later.take(job, nodes)
        reserved = reservation(now, later, started, lambda: later.where(head))
        if (place := later.where(head)) is not None:
            later.take(head, place)
        return reserved, later, place


def reservation(
    now: QueueView, later: FreeNodes, started: list[_Started], where: Callable[[], tuple[int, ...] | None]
) -> float:
    """Return the first time at which `where` finds nodes, inf if it never does; `later` is then what is free at it.

    Args:
        now: the snapshot.
        later: what is free now.
        started: jobs that are being started.
        where: looks for nodes in `later`.
    """
    ends: list[tuple[float, int, Any]] = [(latest_end(run, now.time), 0, run) for run in now.running]
    ends += [(until, 1, (job, nodes)) for until, job, nodes in started]
    ends.sort(key=lambda end: end[:2])
    reserved, fits = math.inf, False
    for time, is_ours, holder in ends:
        if fits and time > reserved:
            break
        if is_ours:
            later.give(*holder)
        else:
            later.release(holder)
        if not fits and (fits := where() is not None):
            reserved = time
    return reserved


def latest_end(it: Running, now: float) -> float:
    """Return when a running job is expected to have ended, later than now."""
    expected = it.until > now or it.start_time == now
    return it.until if expected else now + max(now - it.until, OVERDUE_S)
