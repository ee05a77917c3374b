"""Counting of holds and waits: what is held, how each hold ended, how long jobs waited, and how ours ended.

Rule: a hold has expired if its deadline passed and we had done nothing: then the resource manager decided. A wait
counts once, in the first snapshot that shows the start; what ran before the daemon did is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...simulate.model.plan import Place, Release
from ...simulate.model.snapshot import JobView, JobViews, Snapshot
from ..state.queue import JobEvent, Queue
from .cycle_report import CycleReport, Observer
from .hold_metrics import HoldMetrics


class HoldWatch(Observer):
    """Counts.

    Args:
        metrics: receives the numbers.
        queue: has the jobs that are ours.
    """

    def __init__(self, metrics: HoldMetrics, queue: Queue) -> None:
        self._metrics, self._queue = metrics, queue
        self._jobs: JobViews | None = None
        self._held = dict[str, tuple[float, float]]()  # submission and deadline, by key
        self._ends = dict[str, str]()  # what we did to a held job

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Count the holds that have ended and the jobs that have begun. O(jobs) if a view has changed."""
        jobs, before = snapshot.jobs, self._jobs
        if jobs is before:
            return
        self._jobs = jobs
        held = {view.key: (view.submit_time or snapshot.time, view.due or 0.0) for view in jobs.held}
        self._metrics.held.set(len(held))
        for key in self._held.keys() - held.keys():
            submitted, due = self._held[key]
            end = self._ends.pop(key, "expired" if due <= snapshot.time else "gone")
            self._metrics.holds.labels(end).observe(max(0.0, snapshot.time - submitted))
        self._held, self._ends = held, {key: end for key, end in self._ends.items() if key in held}
        if before is not None:
            self._count_starts(jobs, before.holding)

    def _count_starts(self, jobs: JobViews, running: Mapping[str, JobView]) -> None:
        for key, view in jobs.holding.items():
            earlier = running.get(key)
            if view.start_time is None or (earlier is not None and earlier.start_time is not None):
                continue
            entry = self._queue.find(key)
            submitted = view.submit_time if entry is None or entry.since is None else entry.since
            decider = "pilotfish" if entry is not None and not entry.let_go else "manager"
            if submitted is not None:
                self._metrics.waits.labels(decider).observe(max(0.0, view.start_time - submitted))

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """Count the ends of our jobs."""
        for event in events:
            if event.entry.state.ended:
                self._metrics.ended.labels(str(event.entry.state)).inc()

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Note what was done to held jobs."""
        for applied in () if report.dry else report.applied:
            action = applied.action
            if applied.error or action.key not in self._held:
                continue
            if isinstance(action, Place):
                self._ends[action.key] = "placed"
            elif isinstance(action, Release):
                self._ends[action.key] = "released"
