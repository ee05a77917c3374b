"""EASY backfilling and strict order in Python.

Rule: on one node, which is what a replay is, each gives the schedule of its kernel. On several nodes see
`backfill.NodeBackfill`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from .interface import Decision, QueueView, Reserve
from .queued_job import QueuedJob


class JobOrder(Protocol):
    """An order of the queue."""

    def sorted(self, now: QueueView) -> list[QueuedJob]:
        """Return the waiting jobs, the first in the queue first."""
        ...

    def behind(self, jobs: list[QueuedJob]) -> list[QueuedJob]:
        """Return the jobs behind a reservation, of those that `sorted` returned last, in the order they are tried."""
        ...


class Backfilling:
    """EASY backfilling, and strict order without `fills`; `queue` is the order of the jobs."""

    def __init__(self, queue: JobOrder, *, fills: bool) -> None:
        self.queue, self.fills = queue, fills

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Start the first jobs while they fit, reserve for the first that does not, and backfill behind it."""
        backfill, queue = now.backfill(), iter(self.queue.sorted(now))
        for job in queue:
            start = backfill.start(job)
            if start is not None:
                yield start
                continue
            if not self.fills:
                return
            backfill.reserve(job)
            if (nodes := backfill.nodes) is not None and backfill.reserved > now.time:
                yield Reserve(job, backfill.reserved, nodes)
            break
        for job in self.queue.behind([*queue]):
            start = backfill.start(job)
            if start is not None:
                yield start
