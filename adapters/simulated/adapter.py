"""The engine as a resource manager: jobs run in simulation, and time passes only in `wait` and `advance`.

Rule: a caller cannot distinguish it from a real one. `truth` may give jobs other demands than their profiles, so that
forecasts can be wrong, as they are in production. A job on a node that is off begins when the node has booted.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...formats.hostlist import fold
from ...simulate.errors import PilotfishError
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Profile, Workflow
from ...simulate.model.plan import Cancel, PowerOff, PowerOn, PowerSwitch, RunningJob, Submit
from ...simulate.model.snapshot import JobState, JobView, JobViews, Snapshot
from ...simulate.planning.simulation import Simulation
from ...simulate.planning.start_latency import idling
from ..base import Adapter, AdapterError, Capabilities
from .power_states import PowerStates

#: Share of its work from which a job at its walltime has run to its end: rounding may have delayed that.
DONE = 1.0 - 1e-9


class SimulatedAdapter(Adapter):
    """A simulated cluster.

    Args:
        cluster: Its nodes.
        start_time: Start of its clock, epoch seconds.
        truth: Returns what a job really needs; None: what its profile says.
        exit_code: Returns the exit code of a job that runs to its end; None: always 0.
        delays: Returns for how long a job has its nodes before it begins, and after it has ended, seconds, from the
            time and how long it runs alone; None: no time passes.
    """

    name = "simulated"
    capabilities = Capabilities(virtual_time=True)
    notes = ("jobs are simulated, nothing runs",)

    def __init__(
        self,
        cluster: Cluster,
        *,
        start_time: float = 0.0,
        truth: Callable[[Job], Profile] | None = None,
        exit_code: Callable[[Job], int] | None = None,
        delays: Callable[[float, float], tuple[float, float]] | None = None,
    ) -> None:
        self.cluster, self.power = cluster, PowerStates(cluster)
        self.capabilities = replace(self.capabilities, power=self.power.can_switch)
        self.node_states = self.power.states
        self._truth = truth or (lambda job: job.profile)
        self._exit_code, self._delays = exit_code or (lambda job: 0), delays
        self._shown_late: dict[str, float] = {}  # how long after its end a running job will be shown as ended
        self._epoch, self._clock, self._version = start_time, 0.0, 0
        self._jobs: dict[str, JobView] = {}
        self._last_views = JobViews()  # those of the last snapshot
        self._replaced: dict[str, JobView | None] = {}  # what that showed of the jobs that have changed since
        self._true_jobs: dict[str, Job] = {}  # running jobs, with what they really need
        self._limits: dict[str, float] = {}  # key -> end of its walltime, by our clock
        self._engine: Simulation | None = None
        self._stale = False  # the engine still has cancelled jobs

    @property
    def time(self) -> float:
        """The virtual clock, epoch seconds."""
        return self._epoch + self._clock

    def snapshot(self) -> Snapshot:
        """Return all nodes and jobs at the virtual time."""
        self._version += 1
        if self._replaced:
            previous = [view for view in self._replaced.values() if view is not None]
            new = [self._jobs[key] for key in self._replaced if key in self._jobs]
            self._last_views = self._last_views.followed_by(self._jobs.values(), previous, new)
            self._replaced = {}
        return Snapshot(self.time, self._version, self.cluster, tuple(self.node_states), self._last_views)

    def _show(self, key: str, view: JobView | None) -> None:
        """Replace the view of a job; None: it has none any more."""
        before = self._jobs.pop(key, None) if view is None else self._jobs.get(key)
        if view is not None:
            self._jobs[key] = view
        self._replaced.setdefault(key, before)

    def submit(self, action: Submit) -> None:
        """Start a job, once per key."""
        if action.key not in self._jobs:
            self._start(action)

    def cancel(self, action: Cancel) -> None:
        """End a job."""
        view = self._jobs.get(action.key)
        if view is not None and not view.state.ended:
            self._end(view, JobState.CANCELLED, self._clock, number=signal.SIGTERM)
            self._stale = True

    def power_off(self, action: PowerOff) -> None:
        """Power idle nodes down."""
        self._switch(action)

    def power_on(self, action: PowerOn) -> None:
        """Power nodes up that are powered down."""
        self._switch(action)

    def _switch(self, action: PowerSwitch) -> None:
        busy = {name for view in self._jobs.values() if not view.state.ended for name in view.nodes}
        self.power.switch(action, busy, self._clock)

    def wait(self, timeout_s: float) -> bool:
        """Let virtual time pass until a job or a switch of a node ends, at most `timeout_s` seconds; return whether."""
        return self.advance(timeout_s, stop_at_event=True)

    def advance(self, seconds: float, *, stop_at_event: bool = False) -> bool:
        """Let virtual time pass; return whether a job or a switch of a node ended.

        Args:
            seconds: Virtual seconds.
            stop_at_event: Stop when one ends.
        """
        target, ended = self._clock + seconds, False
        while not (ended and stop_at_event):
            until = min(target, self._next_event())
            if math.isinf(until):
                break
            ended = self._move(until) or ended
            if until == target:
                break
        return ended

    def progress(self, key: str) -> float | None:
        """Return the share of a job's work that is done, [0, 1]; None for an unknown job."""
        view = self._jobs.get(key)
        self._refresh()
        if view is None or self._engine is None:
            return None if view is None else 1.0
        return self._engine.progress(key) if view.state is JobState.RUNNING else 1.0

    def forget(self, key: str) -> None:
        """Drop an ended job."""
        view = self._jobs.get(key)
        if view is not None and not view.state.ended:
            raise AdapterError(f"{key} has not ended", kind="refused")
        self._show(key, None)

    def _start(self, action: Submit) -> None:
        key = action.key
        if self._misplaced(action):
            raise AdapterError(f"cannot start {key} on {fold(action.nodes)}", kind="refused")
        truth = self._truth(action.job)
        before_s, after_s = self._delays(self._clock, truth.isolated_time) if self._delays else (0.0, 0.0)
        if (boot_s := self.power.wake(action.nodes, self._clock) - self._clock) == math.inf:
            raise AdapterError(f"cannot start {key}: a node of it is being powered down", kind="refused")
        before_s = max(before_s, boot_s)
        self._shown_late[key] = after_s
        self._show(key, self._begun(action, before_s))
        truth = idling(truth, before_s, after_s) if before_s or after_s else truth
        self._true_jobs[key] = replace(action.job, id=key, profile=truth, after=())
        try:
            self._rebuild()
        except PilotfishError as error:
            self._show(key, None)
            del self._true_jobs[key], self._shown_late[key]
            raise AdapterError(f"cannot start {key}: {error}", kind="refused") from error
        if action.job.walltime is not None:
            self._limits[key] = self._clock + before_s + action.job.walltime + after_s

    def _misplaced(self, start: Submit) -> bool:
        unknown = any(name not in self.cluster.index for name in start.nodes)
        return unknown or not len(set(start.nodes)) == len(start.nodes) == start.job.nodes

    def _begun(self, start: Submit, after_s: float) -> JobView:
        now = self.time
        return JobView(start.key, start.job, JobState.RUNNING, start.nodes, submit_time=now, start_time=now + after_s)

    def _next_event(self) -> float:
        """Return when a job ends or reaches its walltime, or a node is switched, next, by our clock; inf: never."""
        self._refresh()
        nearest = self._engine.next_event if self._engine else math.inf
        return max(self._clock, min([nearest, *self._limits.values(), self.power.next_end()]))

    def _move(self, until: float) -> bool:
        """Set the clock; return whether a job or a switch of a node ended."""
        self._refresh()
        self._clock = until
        switched = self.power.end_until(until)
        if self._engine is None:
            return switched
        self._engine.advance(until)
        ended = self._collect(self._engine)
        late = [key for key, limit in self._limits.items() if limit <= until]
        for key in late:
            if self._engine.progress(key) >= DONE:
                self._complete(self._jobs[key], until)
            else:
                self._end(self._jobs[key], JobState.TIMEOUT, until, number=signal.SIGTERM)
        if late:
            self._rebuild()
        return ended or switched or bool(late)

    def _collect(self, engine: Simulation) -> bool:
        """End the jobs that have run to their end; return True if there are any."""
        ended, finish = False, engine.world.jobs["finish"]
        for i in np.flatnonzero(~np.isnan(finish)).tolist():
            view = self._jobs.get(engine.workflow.jobs[i].id)
            if view is not None and view.state is JobState.RUNNING:
                ended = True
                self._complete(view, float(finish[i]))
        return ended

    def _complete(self, view: JobView, clock: float) -> None:
        """Record that a job has run to its end."""
        code = self._exit_code(view.job)
        self._end(view, JobState.FAILED if code else JobState.COMPLETED, clock, code=code)

    def _end(self, view: JobView, state: JobState, clock: float, *, code: int = 0, number: int | None = None) -> None:
        """Record how a job ended: `code` is its own, `number` the signal that ended it instead."""
        usage: tuple[tuple[str, float], ...] = ()
        if number is None:
            groups, nodes = self._true_jobs[view.key].profile.groups, view.job.nodes
            usage = (
                ("cpu_seconds", nodes * sum(group.count * group.demand for group in groups)),
                ("threads", float(nodes * sum(group.count for group in groups))),
            )
        self._limits.pop(view.key, None)
        del self._true_jobs[view.key]
        ended = replace(
            view,
            state=state,
            finish_time=max(view.start_time or 0.0, self._epoch + clock - self._shown_late.pop(view.key, 0.0)),
            exit_code=code if number is None else 128 + number,
            signal=None if number is None else int(number),
            usage=usage,
        )
        self._show(view.key, ended)

    def _refresh(self) -> None:
        """Remove cancelled jobs from the engine before time passes or it is read."""
        if self._stale:
            self._rebuild()

    def _rebuild(self) -> None:
        """Create an engine with the running jobs at their progress."""
        self._stale = False
        running = [view for view in self._jobs.values() if view.state is JobState.RUNNING]
        if not running:
            self._engine = None
            return
        jobs = (self._true_jobs[view.key] for view in running)
        underway = [RunningJob(view.key, view.nodes) for view in running]
        engine = Simulation(Workflow("running", tuple(jobs)), self.cluster, underway=underway)
        if self._engine is not None:
            self._engine.advance(self._clock)
            engine.adopt(self._engine)
        else:
            engine.world.clock["now"] = self._clock
            engine.settle()
        self._engine = engine
