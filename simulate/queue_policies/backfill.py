"""Backfilling: find the jobs that can start now without delaying a reservation, as each such policy has to.

Rule: each class gives the same answers. One counts resources, on a machine that is one node, which is what a replay is.
On several nodes a reservation is one of nodes, because a job does not move: what is backfilled leaves the nodes of the
reservation free in its time.
"""

from __future__ import annotations

import math

from .easy_policy import latest_end, reservation
from .free_nodes import FreeNodes
from .interface import QueueView, Start
from .queued_job import QueuedJob


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


class NodeBackfill(CountedBackfill):
    """The same on several nodes: each job starts on the lowest nodes on which it fits now.

    If it ends later than the reservation begins, the reserved nodes are left out. O(nodes) for each job.
    """

    __slots__ = ("_later", "_nodes", "_started")

    def __init__(self, now: QueueView) -> None:
        super().__init__(now)
        self._nodes, self._started = now.free_nodes(), list[tuple[float, QueuedJob, tuple[int, ...]]]()
        self._free = int(self._nodes.cores.clip(0).sum())
        self._later: FreeNodes = self._nodes

    def start(self, job: QueuedJob) -> Start | None:
        """Take what a waiting job needs, and return the decision that starts it now; see `Backfill`."""
        if job.size > self._free:
            return None
        until = self._now.time + job.walltime
        late = self._head is not None and job is not self._head and until > self.reserved
        nodes = self._nodes.where(job, self._later if late else None)
        if nodes is None:
            return None
        if job is self._head:
            self._head, self._reserved = None, math.inf
        self._nodes.take(job, nodes)
        self._free -= job.size
        if late:
            self._later.take(job, nodes)
        self._started.append((until, job, nodes))
        self._chosen.append(job)
        return Start(job, nodes=nodes)

    def _find_reservation(self) -> None:
        head, later = self._head, self._now.free_nodes()
        assert head is not None, "a reservation is sought"
        for _, job, nodes in self._started:
            later.take(job, nodes)
        if later.where(head) is not None:
            self._reserved = self._now.time
        else:
            self._reserved = reservation(self._now, later, self._started, lambda: later.where(head))
        if (place := later.where(head)) is not None:
            later.take(head, place)
        self._later = later
