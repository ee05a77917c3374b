"""Progress of running jobs: they are simulated in parallel with the real ones.

Rule: the simulation starts each job when it was seen to start, drops it when it has ended, and decides nothing. Under
contention a job's progress is not linear in time; the engine that made the forecast knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Workflow
from ...simulate.model.plan import RunningJob
from ...simulate.model.snapshot import JobView
from ...simulate.planning.simulation import Simulation


class Progress:
    """The running jobs of one cluster, simulated; starts over when the cluster changes or time goes back.

    Args:
        breathe: called between two steps, so that the caller can do other work; must not change these jobs.
    """

    def __init__(self, breathe: Callable[[], None] = lambda: None) -> None:
        self._breathe = breathe
        self._cluster: Cluster | None = None
        self._engine: Simulation | None = None
        self._epoch = self._now = 0.0  # start of the engine's clock, and now; epoch seconds
        self._followed: dict[str, JobView] = {}
        self._jobs: dict[str, Job] = {}  # those in the engine
        self._has_ended = False  # jobs that have ended still run in the engine
        self._progress: dict[str, float] | None = None  # progress of those that run in the engine, if it is known

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
        if self._cluster is not cluster or now < self._now:
            oldest = min((_start_time(view) for view in (*running.values(), *ended.values())), default=now)
            self._cluster, self._engine, self._followed, self._has_ended = cluster, None, {}, False
            self._epoch = self._now = min(oldest, now)
        appeared = {key: view for key, view in {**ended, **running}.items() if key not in self._followed}
        new = [view for view in appeared.values() if _is_placed(view, cluster)]  # of others it is estimated from time
        new.sort(key=lambda view: min(_start_time(view), now))
        if new:
            self._rebuild(cluster, new)
        for view in new:
            self._advance(max(min(_start_time(view), now), self._now))
            self._followed[view.key] = view
            if self._engine:
                self._engine.start(view.key, view.nodes)
                self._progress = None
        if self._has_ended:
            self._rebuild(cluster, ())
        self._advance(now)
        ended_keys = [key for key, view in self._followed.items() if running.get(key) != view]
        for key in ended_keys:  # an event wakes the daemon, so an end is about as old as the snapshot that shows it
            del self._followed[key]
            self._has_ended = self._has_ended or (self._engine is not None and self._engine.runs(key))

    def settle(self) -> None:
        """Take the jobs that have ended out of the simulation; until the next `follow`, `of` then does not breathe."""
        if self._has_ended and self._cluster is not None:
            self._rebuild(self._cluster, ())

    def of(self, key: str) -> float | None:
        """Return the share of its work that a job has done, [0, 1]; None if it is not followed."""
        if key not in self._followed:
            return None
        self.settle()
        if self._progress is None:
            self._progress = self._engine.progress_of_all() if self._engine else {}
        return self._progress.get(key, 1.0)

    def _advance(self, time: float) -> None:
        self._now, self._progress = time, None
        if self._engine:
            self._engine.advance(time - self._epoch)

    def _rebuild(self, cluster: Cluster, coming: Sequence[JobView]) -> None:
        """Create an engine with the followed jobs at their progress, and with those that are about to start."""
        before, self._has_ended, self._progress = self._engine, False, None
        still = [view for view in self._followed.values() if before and before.runs(view.key)]
        self._engine = None
        if not still and not coming:
            return
        jobs = self._jobs = {view.key: self._jobs[view.key] for view in still} | {
            view.key: replace(view.job, id=view.key, nodes=len(view.nodes), walltime=None, after=()) for view in coming
        }
        self._breathe()
        self._engine = engine = Simulation(
            Workflow("running", tuple(jobs.values())),
            cluster,
            underway=[RunningJob(view.key, view.nodes) for view in still],
            by_hand=[view.key for view in coming],
            breathe=self._breathe,
        )
        self._breathe()
        if before is not None:
            engine.adopt(before)
        else:
            engine.world.clock["now"] = self._now - self._epoch
            engine.settle()


def _start_time(view: JobView) -> float:
    assert view.start_time is not None, "a running job has a start time"
    return view.start_time


def _is_placed(view: JobView, cluster: Cluster) -> bool:
    return 0 < len(set(view.nodes)) == len(view.nodes) and all(name in cluster.index for name in view.nodes)
