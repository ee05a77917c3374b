"""Backfilling in Python: which jobs can start now without delaying a reservation.

Rule: here resources are counted, on a machine that is one node, which is what a replay is. On several nodes, and on
machines that are switched, see `node_backfill`; on one node both give the same answers.
A running job that is past its latest end is expected to go on for as long as it is late, at least OVERDUE_S.
"""

from __future__ import annotations

import math

from .free_nodes import Places
from .interface import QueueView, Start
from .queued_job import QueuedJob, Running

OVERDUE_S = 1.0


class CountedBackfill:
    """Backfilling on a machine that is one node; see `Backfill`."""

    __slots__ = ("_chosen", "_free", "_head", "_now", "_reserved", "_spare")

    def __init__(self, now: QueueView) -> None:
        self._now, self._free, self._chosen = now, now.free, list[QueuedJob]()
        self._head: QueuedJob | None = None
        self._reserved, self._spare = math.inf, 0

    @property
    def reserved(self) -> float:
        """Latest time at which the job with the reservation can start; see `Backfill`."""
        if self._reserved != self._reserved:
            self._find_reservation()
        return self._reserved

    @property
    def nodes(self) -> Places | None:
        """The nodes of the reservation; see `Backfill`."""
        return None

    def start(self, job: QueuedJob) -> Start | None:
        """Take what a waiting job needs, and return the decision that starts it now; see `Backfill`."""
        size = job.size
        if size > self._free:
            return None
        if job is self._head:
            self._head, self._reserved = None, math.inf
        elif self._head is not None and self._now.time + job.walltime > self.reserved:
            if size > self._spare:
                return None
            self._spare -= size
        self._free -= size
        self._chosen.append(job)
        return Start(job)

    def reserve(self, job: QueuedJob) -> None:
        """Reserve for a waiting job; see `Backfill`."""
        self._head, self._reserved = job, math.nan

    def start_all(self) -> list[Start]:
        """Take all waiting jobs that can start; see `Backfill`."""
        chosen = {self._head, *self._chosen}
        return [start for job in self._now.waiting if job not in chosen and (start := self.start(job)) is not None]

    def _find_reservation(self) -> None:
        assert self._head is not None, "a reservation is sought"
        now, time, spare = self._now.time, self._now.time, self._free - self._head.size
        ends = [(latest_end(run, now), run.job.size) for run in self._now.running]
        ends += [(now + job.walltime, job.size) for job in self._chosen]
        for end, size in sorted(ends) if spare < 0 else ():
            if spare >= 0 and end > time:
                break
            time, spare = end, spare + size
        self._reserved, self._spare = time if spare >= 0 else math.inf, spare


def latest_end(it: Running, now: float) -> float:
    """Return when a running job is expected to have ended, later than now."""
    expected = it.until > now or it.start_time == now
    return it.until if expected else now + max(now - it.until, OVERDUE_S)
