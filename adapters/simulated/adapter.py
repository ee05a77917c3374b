"""The engine as a resource manager: jobs run in simulation, time passes only in `wait` and `advance`.

Rule: it behaves as a real one would as far as a caller can see; `truth` may give jobs other demands than their
profiles say, so that forecasts can be wrong as they are in life.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...simulate.engine import Simulation, Underway
from ...simulate.errors import PilotfishError
from ...simulate.job import Job, Profile, Workflow
from ...simulate.plan import Action, Cancel, Start
from ...simulate.platform import Cluster
from ...simulate.snapshot import JobState, JobView, NodeState, Snapshot
from ..base import AdapterError, Capabilities


class SimulatedAdapter:
    """See the module. `time` is the virtual clock, epoch seconds."""

    def __init__(
        self, cluster: Cluster, *, start_time: float = 0.0, truth: Callable[[Job], Profile] | None = None
    ) -> None:
        self.cluster, self.time = cluster, start_time
        self.node_states = [NodeState.UP] * len(cluster.nodes)
        self.applied: list[Action] = []
        self._truth = truth or (lambda job: job.profile)
        self._epoch, self._version = start_time, 0
        self._jobs: dict[str, JobView] = {}
        self._engine: Simulation | None = None

    @property
    def name(self) -> str:
        """Short name, used as the metrics label."""
        return "simulated"

    @property
    def capabilities(self) -> Capabilities:
        """It starts jobs, knows what they used, and its time is virtual."""
        return Capabilities(starts=True, usage=True, virtual_time=True)

    @property
    def notes(self) -> Sequence[str]:
        """What a person should know of it."""
        return ("jobs are simulated, nothing runs",)

    def snapshot(self) -> Snapshot:
        """The virtual world at the virtual time."""
        self._version += 1
        return Snapshot(self.time, self._version, self.cluster, tuple(self.node_states), tuple(self._jobs.values()))

    def apply(self, action: Action) -> None:
        """Start a job (once per key) or cancel it."""
        self.applied.append(action)
        if isinstance(action, Cancel):
            self._cancel(action.key)
            return
        if action.key not in self._jobs:
            self._start(action)

    def wait(self, timeout_s: float) -> bool:
        """Let virtual time pass until something ends, at most `timeout_s`; True if something did."""
        return self.advance(timeout_s, stop_at_event=True)

    def advance(self, seconds: float, *, stop_at_event: bool = False) -> bool:
        """Let virtual time pass; True if a job ended."""
        target = self.time + seconds
        engine = self._engine
        if engine is None:
            self.time = target
            return False
        until = target - self._epoch
        if stop_at_event:
            until = min(until, max(engine.next_event, self.time - self._epoch))
        if math.isinf(until):
            return False
        engine.advance(until)
        self.time = self._epoch + until
        return self._collect(engine)

    def fileno(self) -> None:
        """There is nothing to poll: virtual time passes in `wait`."""

    def forget(self, key: str) -> None:
        """Drop an ended job that the caller has noted."""
        view = self._jobs.get(key)
        if view is not None and not view.state.ended:
            raise AdapterError(f"{key} has not ended", kind="refused")
        self._jobs.pop(key, None)

    def close(self) -> None:
        """Nothing to let go of."""

    def _start(self, action: Start) -> None:
        unknown = [name for name in action.nodes if name not in self.cluster.index]
        if unknown or len(action.nodes) != action.job.nodes:
            raise AdapterError(f"cannot start {action.key} on {', '.join(action.nodes)}", kind="refused")
        self._jobs[action.key] = JobView(
            action.key, action.job, JobState.RUNNING, action.nodes, submit_time=self.time, start_time=self.time
        )
        try:
            self._rebuild()
        except PilotfishError as error:
            del self._jobs[action.key]
            raise AdapterError(f"cannot start {action.key}: {error}", kind="refused") from error

    def _cancel(self, key: str) -> None:
        view = self._jobs.get(key)
        if view is not None and not view.state.ended:
            self._jobs[key] = replace(view, state=JobState.CANCELLED, finish_time=self.time, signal=15)
            self._rebuild()

    def _rebuild(self) -> None:
        """A new engine with what runs now, as far along as it was."""
        running = [v for v in self._jobs.values() if v.state is JobState.RUNNING]
        if not running:
            self._engine = None
            return
        jobs = tuple(replace(v.job, id=v.key, profile=self._truth(v.job), after=()) for v in running)
        engine = Simulation(Workflow("running", jobs), self.cluster, underway=[Underway(v.key, v.nodes) for v in running])
        if self._engine is not None:
            self._engine.advance(self.time - self._epoch)
            engine.adopt(self._engine)
        else:
            engine.world.clock[0] = self.time - self._epoch
            engine.settle()
        self._engine = engine

    def _collect(self, engine: Simulation) -> bool:
        ended = False
        for job, i in engine.workflow.index.items():
            view, row = self._jobs[job], engine.world.jobs[i]
            finish = float(row["finish"])
            if view.state is JobState.RUNNING and not math.isnan(finish):
                ended = True
                used = sum(g.demand * g.count for g in self._truth(view.job).groups) * view.job.nodes
                self._jobs[job] = replace(
                    view, state=JobState.COMPLETED, finish_time=self._epoch + finish, exit_code=0,
                    usage=(("cpu_seconds", used),),
                )  # fmt: skip
        return ended


def create(cluster: Cluster, **options: object) -> SimulatedAdapter:
    """Make one; the only option is `start_time`, epoch seconds."""
    start = options.pop("start_time", 0.0)
    if options or not isinstance(start, int | float):
        raise AdapterError(f"the simulated adapter takes only start_time, not {sorted(options)}", kind="config")
    return SimulatedAdapter(cluster, start_time=float(start))
