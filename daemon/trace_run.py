"""The daemon in a trace: the cycle of the service on a virtual clock, fed with the jobs of a trace.

Rule: no real time enters a decision. At each instant all ends come first, then all submissions, then cycles until there
is nothing more to plan. A cycle takes no time, or the decision time if it makes a plan: what happens meanwhile is seen
by its check and by the next cycle. The next instant is the next submission, the next end, or the time at which the
trigger wants to plan again. So the same trace and configuration give the same schedule. A job that waits for others is
submitted after the cycle that saw the last of them end.

A job of a trace is a workflow of one job, on the nodes that `simulate.world.node_allocation` says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..adapters.base import Adapter
from ..formats.text import count
from ..simulate.arrays import Array
from ..simulate.kernels.queue.power.tables import TO_IDLE, TO_OFF
from ..simulate.model.cluster import Cluster, comparable_speeds
from ..simulate.model.job import Job, Profile, Provenance, ThreadGroup, Workflow
from ..simulate.model.plan import Plan, Submit
from ..simulate.model.snapshot import JobState
from ..simulate.model.workload import Workload
from ..simulate.world.job_dependencies import DependencyTracker, stranded
from ..simulate.world.known_run_times import PREDICTED, WALLTIME, RunTimePredictor
from ..simulate.world.node_allocation import NodeShapes, Places, refuse_unknown_times
from ..simulate.world.replay_result import CHANGE, SWITCH, Replayed, merge_pieces, without_switches
from ..simulate.world.shared_tables import SHORTEST_S
from .apply import Live
from .assembly import Deciding, assemble
from .learning.guard_rail import Guard
from .planning.guarded_planner import simulate_plan
from .planning.problem import Options, Problem
from .report.cycle_report import CycleReport
from .report.delays import Delays
from .report.metrics import Metrics
from .state.journal import Journal
from .state.queue import Submission
from .state.queue_entry import Entry

#: Neither a walltime nor a prediction says anything about a model, so the guard does not judge forecasts made from it.
_KNOWN = {
    WALLTIME: Provenance("default", note="the walltime"),
    PREDICTED: Provenance("default", note="predicted from jobs that had ended"),
}
#: Virtual seconds without a start, an end or a submission after which the jobs that still wait are given up.
PATIENCE_S = 3600.0
#: Ended jobs that the journal may hold before they are dropped.
PRUNE_EVERY = 1000


class TraceJobs:
    """The jobs of a workload as the daemon knows them, and as they really run.

    Args:
        workload: the jobs; `more` may have `volume` and `memory`, bytes that a task moves and needs.
        cluster: the nodes. A run time is that on the slowest node type.
        runtimes: what the planner may know, one of `known_run_times.RUNTIMES`.
        predictor: predicts the run times, if they are `predicted`.

    Raises:
        ConfigError: a job has no walltime and the planner needs it, or its run time depends on a network; or the
            cluster takes any number of threads.
    """

    def __init__(
        self, workload: Workload, cluster: Cluster, runtimes: str, predictor: RunTimePredictor | None = None
    ) -> None:
        self.workload, self.cluster, self.runtimes, self._predictor = workload, cluster, runtimes, predictor
        self.refuse(workload, runtimes)
        names = [str(name) for name in workload.more.get("name", workload.id).tolist()]
        if len(set(names)) < len(names):  # several traces
            names = [f"{name}.{row}" for row, name in enumerate(names)]
        self.names, self._rows = names, {name: row for row, name in enumerate(names)}
        self._shapes = NodeShapes(cluster)
        speeds = comparable_speeds(cluster.types)
        slowest = cluster.types[speeds.index(min(speeds))]
        self._measured_on = slowest.name if len(cluster.types) > 1 else None
        self._truth: dict[int, Profile] = {}

    @staticmethod
    def refuse(workload: Workload, runtimes: str) -> None:
        """Refuse jobs that the planner cannot plan. Raises ConfigError.

        Args:
            workload: the jobs.
            runtimes: what the planner may know, one of `known_run_times.RUNTIMES`.
        """
        refuse_unknown_times(workload, walltimes=runtimes in _KNOWN)

    def row(self, job: Job) -> int:
        """Return the row of a job in the workload."""
        return self._rows[job.id]

    def job(self, row: int) -> Job | None:
        """Return a job as the planner knows it; None if its processors fit on no set of nodes."""
        memory = float(self.workload.more["memory"][row]) if "memory" in self.workload.more else 0.0
        size, walltime = int(self.workload.size[row]), float(self.workload.walltime[row])
        if (shape := self._shapes.of(size, memory)) is None:
            return None
        nodes, threads = shape
        profile = self._truth[row] = self._profile(row, threads, float(self.workload.run_time[row]), Provenance())
        if self.runtimes in _KNOWN:
            seconds = self._predictor.expected(row) if self._predictor else None
            seconds = walltime if seconds is None else min(seconds, walltime)
            profile = self._profile(row, threads, seconds, _KNOWN[self.runtimes])
        limit = None if math.isinf(walltime) else walltime
        return Job(self.names[row], profile, nodes=nodes, memory=memory * threads, walltime=limit)

    def truth(self, job: Job) -> Profile:
        """Return what a job really needs, for the adapter that runs it."""
        return self._truth[self._rows[job.id]]

    def ended(self, row: int) -> None:
        """Drop what is kept of a job that has ended, and learn its run time."""
        self._truth.pop(row, None)
        if self._predictor:
            self._predictor.ended(row)

    def _profile(self, row: int, threads: int, seconds: float, provenance: Provenance) -> Profile:
        moved, run_time = self.workload.more.get("volume"), float(self.workload.run_time[row])
        rate = 0.0 if moved is None or run_time <= 0.0 else float(moved[row]) / run_time
        group = ThreadGroup(threads, max(seconds, SHORTEST_S), bandwidth=rate)
        return Profile((group,), measured_on=self._measured_on, provenance=provenance)


@dataclass(frozen=True, slots=True)
class DaemonReplay:
    """A trace under the daemon.

    Args:
        replayed: the schedule, as that of any other replay.
        runtimes: what the planner knew of run times.
        cycles: how often the loop was run.
        plans: number of plans by policy.
        failures: how often a policy failed, by policy and error.
        rejections: actions that the check dropped.
        not_started: why jobs never started, and how many, without those that are too large for the machine.
        measured_starts: starts of the site by whose delays it was; 0: no time passed between decisions and starts.
    """

    replayed: Replayed
    runtimes: str
    cycles: int
    plans: dict[str, int]
    failures: dict[str, int]
    rejections: int
    not_started: dict[str, int]
    measured_starts: int = 0

    def counts(self) -> dict[str, Any]:
        """Return all but the schedule, by name."""
        return {member.name: getattr(self, member.name) for member in fields(self) if member.name != "replayed"}

    def lines(self) -> list[str]:
        """Return what the daemon did, in words."""
        plans = ", ".join(f"{number:,} by {policy}" for policy, number in self.plans.items()) or "none"
        lines = [f"{count(self.cycles, 'cycle')}, plans: {plans}"]
        lines += [f"{failure}: {count(number, 'time')}" for failure, number in self.failures.items()]
        if self.measured_starts:
            lines.append(f"delays drawn from those of the site, measured on {count(self.measured_starts, 'start')}")
        if self.rejections:
            lines.append(f"{count(self.rejections, 'action')} dropped by the check")
        return lines + [f"{count(number, 'job')} never started: {why}" for why, number in self.not_started.items()]


@dataclass(slots=True)
class _Counts:
    cycles: int = 0
    instants: int = 0
    rejections: int = 0
    plans: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


def _no_clock() -> float:
    return 0.0


class DrawnDelays:
    """Draws from the delays of a site, which must be `complete`; the same each time for a seed."""

    def __init__(self, delays: Delays, seed: int) -> None:
        self._of = {phase: np.array(delays_s) for phase, delays_s in delays.samples.items()}
        self._draw = np.random.default_rng(seed)
        self._looks = list[tuple[float, float]]()  # the first end that a look shows, and the look
        self.starts = len(delays.samples["started"])  #: on which they were measured

    def seen(self, submit_time: Array) -> Array:
        """Return when submissions are seen, seconds, in their order; a look shows all that came before it."""
        seen_at, look = np.empty(len(submit_time)), -math.inf
        for row, at in enumerate(submit_time.tolist()):
            if at > look:
                look = at + max(0.0, self._one("submitted"))
            seen_at[row] = look
        return seen_at

    def of_run(self, now: float, run_s: float) -> tuple[float, float]:
        """Return a time from a decision to the start, and one from the end until it is seen, seconds, 0 or more.

        Ends that come before the same look are seen together.

        Args:
            now: time of the decision, seconds, not before that of the last call.
            run_s: how long the job is to run.
        """
        start_s = max(0.0, sum(self._one(phase) for phase in ("decided", "sent", "started")))
        end = now + start_s + run_s
        self._looks = [old_look for old_look in self._looks if old_look[1] >= now]
        look = next((look for first, look in self._looks if first <= end <= look), None)
        if look is None:
            look = end + max(0.0, self._one("seen"))
            self._looks.append((end, look))
        return start_s, look - end

    def _one(self, phase: str) -> float:
        return float(self._draw.choice(self._of[phase]))


class TraceRun:
    """A trace that runs under the daemon; used once.

    Args:
        jobs: of the trace.
        adapter: a simulated one of virtual time, whose clock begins at 0 and whose truth is that of `jobs`.
        options: how to plan; a limit in seconds has no effect.
        guard: overrules the policy while forecasts keep missing.
        recheck_s: virtual seconds until a plan that has drifted is made again.
        decision_time: virtual seconds that a plan takes; None: as long as it took by the clock of `run`.
        delays: those of a site, from which times until submissions are seen are drawn; None: no time passes.
        switched: where the adapter notes what it switches: position of the node, whether on, begin and end.
    """

    def __init__(
        self, jobs: TraceJobs, adapter: Adapter, options: Options, guard: Guard, *, recheck_s: float = 1.0,
        decision_time: float | None = 0.0, delays: DrawnDelays | None = None,
        switched: Sequence[tuple[int, bool, float, float]] = (),
    ) -> None:  # fmt: skip
        self._jobs, self._workload, self._adapter = jobs, jobs.workload, adapter
        self._now = float(self._workload.submit_time[0]) if len(self._workload) else 0.0
        adapter.wait(self._now)
        self._journal = Journal(Path(":memory:"), in_memory=True)
        self._cycle = assemble(
            adapter, Live(adapter), self._journal, Metrics(), Deciding(guard, options, recheck_s=recheck_s),
            lambda: self._now, planner=self._plan,
        )  # fmt: skip
        self._decision_time, self._clock = decision_time, _no_clock
        size = len(self._workload)
        self._delays, self._switched = delays, switched
        self._seen_at = delays.seen(self._workload.submit_time) if delays else self._workload.submit_time
        self._submitted = self._workload.submit_time.astype(np.float64)
        self._start, self._finish = np.full(size, math.nan), np.full(size, math.nan)
        self._overran = np.zeros(size, bool)
        self._reasons: dict[int, str] = {}
        self._dependencies = DependencyTracker(self._workload)
        self._next, self._ended, self._running = 0, 0, set[int]()
        self._last_event = self._now
        self._places = Places([int(limit) for limit in jobs.cluster.thread_limits])
        self._pieces = list[tuple[int, int, int]]()
        self._counts = _Counts()

    def run(self, *, progress: Callable[[float], None], clock: Callable[[], float]) -> DaemonReplay:
        """Run the trace to its end.

        Args:
            progress: called with the simulated time at each instant.
            clock: returns seconds, for `simulation_time`, and for decisions whose time is measured.
        """
        began, self._clock = clock(), clock
        try:
            while (until := self._next_instant()) is not None:
                self._pass(until)
                self._counts.instants += 1
                self._submit_due()
                self._run_cycles()
                progress(self._now)
        finally:
            self._journal.close()
        return self._result(clock() - began)

    def _next_instant(self) -> float | None:
        """Return until when time may pass, inf: until a job ends; None if nothing more can happen."""
        if self._counts.instants == 0:
            return self._now if len(self._workload) else None
        coming = self._next < len(self._workload)
        until = min(float(self._seen_at[self._next]) if coming else math.inf, self._dependencies.next_time)
        waits = self._cycle.tracker.any_waiting
        if waits or self._cycle.planner.switches:
            until = min(until, self._cycle.trigger.recheck_at)
        if self._running or coming or self._dependencies.next_time < math.inf:
            return until
        return until if waits and until < self._last_event + PATIENCE_S else None

    def _pass(self, until: float) -> None:
        """Let time pass until then, or until a job ends."""
        while self._now < until:
            ended = self._adapter.wait(until - self._now)
            self._now = self._adapter.snapshot().time
            if ended or until == math.inf:
                return

    def _plan(self, problem: Problem, cluster: Cluster, options: Options) -> Plan:
        """Make a plan, and let pass the time that this takes."""
        began = self._clock()
        plan = simulate_plan(problem, cluster, options)
        spent = self._clock() - began if self._decision_time is None else self._decision_time
        until = self._now + spent
        while self._now < until:
            self._adapter.wait(until - self._now)
            snapshot = self._adapter.snapshot()
            self._now = snapshot.time
            for view in snapshot.jobs:
                if view.state.ended:
                    self._places.release(self._jobs.row(view.job))
        return plan

    def _submit_due(self) -> None:
        """Submit the jobs whose time has come, and those whose last predecessor has ended."""
        for row in self._dependencies.pop_released(self._now):
            self._submitted[row] = self._now
            self._submit(row)
        while self._next < len(self._workload) and self._seen_at[self._next] <= self._now:
            row, self._next = self._next, self._next + 1
            if self._dependencies.arrives(row, self._now):
                self._submit(row)

    def _submit(self, row: int) -> None:
        self._last_event = self._now
        if (job := self._jobs.job(row)) is None:
            if self._workload.size[row] <= self._places.count:
                self._reasons[row] = "its processors fit on no set of nodes"
            return
        users = self._workload.more.get("user")
        owner = int(users[row]) if users is not None and users[row] >= 0 else None
        submission = Submission(str(row), Workflow(job.id, (job,)), self._now, owner=owner)
        self._journal.submit(submission, None)
        self._cycle.tracker.add(submission)

    def _run_cycles(self) -> None:
        """Run cycles until there is nothing more to plan at this instant."""
        while True:
            self._note(self._cycle.run())
            self._submit_due()
            if not self._cycle.trigger.changed or self._cycle.tracker.blocked:
                return

    def _note(self, report: CycleReport) -> None:
        """Note what a cycle did."""
        counts = self._counts
        counts.cycles += 1
        counts.rejections += len(report.rejected)
        counts.plans.update([report.policy] if report.policy else [])
        counts.failures.update(report.failures)
        for event in report.events:
            if event.entry.state.ended:
                self._note_end(event.entry)
        for applied in report.applied:
            if isinstance(applied.action, Submit) and not applied.error:
                self._note_start(applied.action)

    def _note_start(self, action: Submit) -> None:
        row, job = self._jobs.row(action.job), action.job
        self._start[row], self._last_event = self._now, self._now
        self._running.add(row)
        size = int(self._workload.size[row])
        nodes = [self._jobs.cluster.index[name] for name in action.nodes]
        places = self._places.allocate(row, nodes, job.profile.threads, size)
        self._pieces += [(row, first, last) for first, last in places]

    def _note_end(self, entry: Entry) -> None:
        row, self._last_event = self._jobs.row(entry.job), self._now
        if row not in self._running:
            self._reasons[row] = entry.reason
            return
        self._running.remove(row)
        self._start[row], self._finish[row] = entry.start_time, entry.finish_time
        self._overran[row] = entry.state is JobState.TIMEOUT
        self._places.release(row)
        well = entry.state is JobState.COMPLETED
        self._dependencies.job_ended(row, self._next, self._now, well=well)
        self._adapter.forget(entry.key)
        self._jobs.ended(row)
        self._ended += 1
        if self._ended % PRUNE_EVERY == 0:
            self._journal.prune(self._now)

    def _switches(self) -> dict[str, Any]:
        """Return which cores were switched with their nodes, for jobs or not."""
        cores = [node.type.cores for node in self._jobs.cluster.nodes]
        first = np.cumsum([0, *cores])
        rows = [
            (TO_IDLE if on else TO_OFF, begin, end, first[node], first[node + 1] - 1)
            for node, on, begin, end in self._switched
        ]
        switched = np.array(rows, SWITCH)
        changes = np.empty(len(rows), CHANGE)
        for name in ("kind", "time", "until"):
            changes[name] = switched[name]
        changes["size"] = switched["last"] - switched["first"] + 1
        return {"changes": changes, "switched": switched}

    def _result(self, seconds: float) -> DaemonReplay:
        size, counts = len(self._workload), self._counts
        for entry in self._cycle.tracker.queue.active():
            why = self._cycle.tracker.stuck.get(entry.key) or "the daemon did not start it, although nothing ran"
            self._reasons[self._jobs.row(entry.job)] = why
        unfinished = stranded(np.array(self._dependencies.unmet, np.int64), size)
        owner, first, last = np.array(self._pieces, np.int64).reshape(-1, 3).T
        pieces = merge_pieces(owner, first, last, size)
        replayed = Replayed(
            self._workload, self._places.count, self._submitted, self._start, self._finish, np.isnan(self._start),
            unfinished, self._overran, *pieces, simulation_time=seconds, instants=counts.instants,
            **(without_switches(self._start) | self._switches()),
        )  # fmt: skip
        not_started = dict(Counter(self._reasons.values()))
        return DaemonReplay(
            replayed,
            self._jobs.runtimes,
            counts.cycles,
            dict(counts.plans),
            dict(counts.failures),
            counts.rejections,
            not_started,
            self._delays.starts if self._delays else 0,
        )
