"""Progress of running jobs: they are simulated in parallel with the real ones.

Rule: the simulation starts each job when it was seen to start, drops it when it has ended, and decides nothing. Under
contention a job's progress is not linear in time; the engine that made the forecast knows it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ...adapters.simulated import SimulatedAdapter
from ...simulate.model.cluster import Cluster
from ...simulate.model.plan import Cancel, Submit
from ...simulate.model.snapshot import JobView


class Progress:
    """The running jobs of one cluster, simulated; starts over when the cluster changes or time goes back."""

    def __init__(self) -> None:
        self._twin: SimulatedAdapter | None = None
        self._followed: dict[str, JobView] = {}

    def follow(
        self, cluster: Cluster, running: Mapping[str, JobView], ended: Mapping[str, JobView], now: float
    ) -> None:
        """Advance the simulation to `now` with exactly these jobs. O(running jobs), plus all that started and ended.

        Args:
            cluster: the simulated nodes; another one restarts the simulation.
            running: by key, made by `running_view`.
            ended: the jobs that ended since the last call. One that also started since then still slowed others.
            now: epoch seconds.
        """
        twin = self._twin
        if twin is None or twin.cluster is not cluster or now < twin.time:
            oldest = min((_start_time(view) for view in running.values()), default=now)
            twin = self._twin = SimulatedAdapter(cluster, start_time=min(oldest, now))
            self._followed = {}
        new = {key: view for key, view in {**ended, **running}.items() if key not in self._followed}
        starts = [(min(_start_time(view), now), _start(view)) for view in new.values()]
        starts.sort(key=lambda start: start[0])
        refused = twin.start_in_turn(starts)  # not followed: progress is estimated from time
        self._followed |= {key: view for key, view in new.items() if key not in refused}
        twin.advance(now - twin.time)
        gone = [key for key, view in self._followed.items() if running.get(key) != view]
        for key in gone:  # an event wakes the daemon, so an end is about as old as the snapshot that shows it
            twin.apply(Cancel(key))
            twin.forget(key)
            del self._followed[key]

    def of(self, key: str) -> float | None:
        """Return the share of its work that a job has done, [0, 1]; None if it is not followed."""
        return self._twin.progress(key) if self._twin and key in self._followed else None


def _start_time(view: JobView) -> float:
    assert view.start_time is not None, "a running job has a start time"
    return view.start_time


def _start(view: JobView) -> Submit:
    return Submit(view.key, dataclasses.replace(view.job, nodes=len(view.nodes), walltime=None), view.nodes)
