"""Hardware counters of jobs on this node: a completed job is learned from once its counts have come in.

Rule: no cycle waits for a counter, or fails because of one. Counters run only for jobs from which profiles are learned,
and only for jobs on one node, because the parts of a job on several nodes differ.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ...profiles.measure.neighbour_counters import NeighbourCounters
from ...simulate.model.snapshot import JobView, Snapshot
from ..report.cycle_report import Observer, completed_views
from ..state.queue import JobEvent, Queue
from .profile_learning import LearnedProfiles

log = logging.getLogger("pilotfish.profiles")


def configured_counters(setting: str | list[str], *, here: bool) -> NeighbourCounters:
    """Return the hardware counters of a configuration, for jobs that run on this node.

    Args:
        setting: names of counters, `auto` or `none`.
        here: whether jobs run on this node.
    """
    names = setting if isinstance(setting, list) else []
    counters = NeighbourCounters(names or (None if here and setting == "auto" else ()))
    for name in counters.missing.keys() & set(names):
        log.warning("counters: %s is not available: %s", name, counters.missing[name])
    if counters.names:
        log.info("hardware counters of jobs: %s", ", ".join(counters.names))
    return counters


class NodeCounters(Observer):
    """Lets the profiles learn from completed jobs, with what was counted of them.

    Args:
        counters: of this node; may be empty.
        profiles: what learns.
        queue: knows who submitted a job.
    """

    def __init__(self, counters: NeighbourCounters, profiles: LearnedProfiles, queue: Queue) -> None:
        self._counters, self._profiles, self._queue = counters, profiles, queue
        self._held: dict[str, JobView] = {}
        self._owners: dict[str, int | None] = {}  # of those held

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Start, read and stop counters by what runs now. O(jobs)."""
        try:
            self._follow(snapshot)
        except Exception as error:  # an unexpected fault of a counter must not take the daemon down
            log.error("counters of jobs are given up: %s: %s", type(error).__name__, error)
            self._give_up()

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """Learn from the jobs that have just completed."""
        if views := completed_views(events, snapshot):
            self.learn(views)

    def learn(self, views: Iterable[JobView]) -> None:
        """Learn from completed jobs; from counted ones once their counts have come in."""
        views = list(views)
        submissions = self._queue.submissions
        owners = {
            view.key: mine.owner for view in views if (mine := submissions.get(view.key.partition("/")[0])) is not None
        }
        self._held |= {view.key: view for view in views if self._counters.counts(view.key)}
        self._owners |= {key: owner for key, owner in owners.items() if key in self._held}
        self._profiles.learn((view for view in views if view.key not in self._held), owners=owners)

    def close(self) -> None:
        """Learn from all jobs with the counts there are, and stop counting."""
        self._learn_counted()
        self._give_up()

    def _follow(self, snapshot: Snapshot) -> None:
        self._learn_counted()
        local_views = [view for view in snapshot.jobs if view.pid is not None]
        running = {
            view.key: view.pid
            for view in local_views
            if view.pid is not None and len(view.nodes) == 1 and self._profiles.learns_from(view.job)
        }
        self._counters.update(running, alone=len(local_views) == 1)

    def _give_up(self) -> None:
        held, self._held = list(self._held.values()), {}
        owners, self._owners = self._owners, {}
        with suppress(Exception):
            self._counters.close()
        self._counters = NeighbourCounters(())
        self._profiles.learn(held, owners=owners)

    def _learn_counted(self) -> None:
        """Learn from jobs whose counts have come in; drop the counts of jobs that did not complete."""
        for key in self._counters.ended:
            if key not in self._held:
                self._counters.discard(key)
            elif self._counters.ready(key):
                view = self._held.pop(key)
                counted = self._counters.collect(key, dict(view.usage).get("cpu_seconds", 0.0))
                self._profiles.learn([view], {key: counted}, {key: self._owners.pop(key, None)})
