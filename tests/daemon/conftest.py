"""The surroundings of the daemon for tests: a resource manager in memory, and a planner that takes the first fit."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pilotfish.adapters.base import AdapterError, Capabilities
from pilotfish.daemon.apply import Live
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.canary.canary_watch import CanaryWatch
from pilotfish.daemon.canary.group_adapter import grouped
from pilotfish.daemon.config_sections import AccessConfig, QuotaConfig
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.learning.job_profiles import GivenProfiles
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.socket.access import Access
from pilotfish.daemon.socket.rpc import Requests
from pilotfish.daemon.state import job_stages
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.daemon.state.users import Peer
from pilotfish.simulate.errors import InvariantError
from pilotfish.simulate.model.capacity import Occupancy
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.observed_queue import ObservedQueue
from pilotfish.simulate.model.plan import Place, Plan, PlannedJob, Release, RunnerUp, Start
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot


def make_cluster(nodes: int = 2, cores: int = 2) -> Cluster:
    kind = NodeType("small", cores, 1e9, 1e10, power=Power(idle=10.0, per_core=5.0))
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(1, nodes + 1)))


def make_job(name: str, *after: str, seconds: float = 10.0, threads: int = 1, **changes) -> Job:
    profile = Profile((ThreadGroup(threads, seconds),))
    return Job(name, profile, after=after, command=("true",), **changes)


class Manager:
    """A resource manager that runs each job for its profile's time, or the time in `takes`, on a clock of its own."""

    name = "memory"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.time, self.version = cluster, 1000.0, 0
        self.states = [NodeState.UP] * len(cluster.nodes)
        self.views: dict[str, JobView] = {}
        self.runs: Counter[str] = Counter()
        self.takes: dict[str, float] = {}
        self.slower: dict[str, float] = {}  # factor on the run times of a node's jobs
        self.exits: dict[str, int] = {}
        self.capabilities = Capabilities()
        self.down = ""
        self.records: dict[str, JobView] | None = None
        self.records_down = ""
        self.recalled: list[set[str]] = []
        self.used: tuple[tuple[str, float], ...] = ()  # of each job that ends
        self.refuse: dict[str, AdapterError] = {}
        self.observed: ObservedQueue | None = None

    def snapshot(self) -> Snapshot:
        if self.down:
            raise AdapterError(self.down, transient=True, kind="unreachable")
        self.version += 1
        return Snapshot(self.time, self.version, self.cluster, tuple(self.states), tuple(self.views.values()))

    def queue(self) -> ObservedQueue | None:
        return self.observed

    def keep_holding(self, until: float) -> None:
        self.holds_until = until

    def refresh(self, keys) -> Snapshot:
        return self.snapshot()

    def recall(self, since) -> dict[str, JobView] | None:
        self.recalled.append(set(since))
        if self.records_down:
            raise AdapterError(self.records_down, transient=True, kind="unreachable")
        return None if self.records is None else {key: self.records[key] for key in since if key in self.records}

    def load(self) -> None:
        pass

    def output(self, key) -> None:
        pass

    def apply(self, action) -> None:
        if action.key in self.refuse:
            raise self.refuse[action.key]
        if isinstance(action, Start):
            if action.key not in self.views:
                self.runs[action.key] += 1
                self.views[action.key] = JobView(
                    action.key, action.job, JobState.RUNNING, action.nodes, start_time=self.time
                )
        elif not self.views[action.key].state.ended:
            self._end(action.key, JobState.CANCELLED, None)

    def _end(self, key: str, state: JobState, code: int | None) -> None:
        self.views[key] = dataclasses.replace(
            self.views[key], state=state, exit_code=code, finish_time=self.time, usage=self.used
        )

    def advance(self, seconds: float) -> None:
        self.time += seconds
        for key, view in list(self.views.items()):
            takes = self.takes.get(key.partition("/")[2], view.job.profile.groups[0].isolated_time)
            takes *= max((self.slower.get(node, 1.0) for node in view.nodes), default=1.0)
            if view.state is JobState.RUNNING and self.time >= view.start_time + takes - 1e-9:
                code = self.exits.get(key.partition("/")[2], 0)
                self._end(key, JobState.FAILED if code else JobState.COMPLETED, code)

    def wait(self, timeout_s: float) -> bool:
        return False

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        pass


class Offering(Manager):
    """A manager whose users hand jobs over; a start pins the job, which begins a second later."""

    name = "rjms"
    stuck, releases = False, 0

    def offer(self, job, **changes) -> None:
        view = JobView(f"rjms/{job.id}", job, JobState.PENDING, submit_time=self.time, restartable=True, offered=True)
        self.views[view.key] = dataclasses.replace(view, **changes)

    def apply(self, action) -> None:
        if action.key in self.refuse:
            raise self.refuse[action.key]
        view = self.views[action.key]
        if isinstance(action, Place):
            self.runs[action.key] += 1
            self.views[action.key] = dataclasses.replace(
                view, nodes=action.nodes, restartable=False, pinned_since=self.time
            )
        elif isinstance(action, Release) and action.why:
            self.views[action.key] = dataclasses.replace(view, offered=False, due_why="it was released", due=None)
        elif isinstance(action, Release):
            self.releases += 1
            self.views[action.key] = dataclasses.replace(view, nodes=(), restartable=True, pinned_since=None)

    def advance(self, seconds: float) -> None:
        for key, view in self.views.items():
            if view.pinned_since is not None and not self.stuck:
                began = dataclasses.replace(
                    view, state=JobState.RUNNING, offered=False, pinned_since=None, start_time=self.time
                )
                self.views[key] = began
        super().advance(seconds)


def first_fit(problem, cluster, options) -> Plan:
    """Start all jobs that are ready and fit, each for its isolated time; the others are planned 5 s later."""
    taken, running = Occupancy(cluster), {job.id: job for job in problem.running}
    for job in problem.workflow.jobs:
        if job.id in running:
            taken.place(job, running[job.id].nodes)
    planned = []
    for job in problem.workflow.jobs:
        length = job.profile.groups[0].isolated_time
        if job.id in running:
            left = length * (1 - running[job.id].progress)
            planned.append(PlannedJob(job.id, running[job.id].nodes, 0.0, left, length, 1.0))
            continue
        fitting = [name for name in problem.available if taken.obstacle(job, name) is None][: job.nodes]
        start = 0.0 if len(fitting) == job.nodes and not job.after else 5.0
        if start == 0.0:
            taken.place(job, fitting)
        fitting = fitting if start == 0.0 else list(problem.available[: job.nodes])
        why = RunnerUp((problem.available[-1],), 1.5)
        planned.append(PlannedJob(job.id, tuple(fitting), start, start + length, length, 1.0, why=why))
    return Plan("queue", cluster.name, options.policy, 0, 1.0, None, 1.0, 0.0, False, 7, tuple(planned))


class Bench:
    """A cycle with everything around it, which can be killed and restarted on the same journal and manager."""

    def __init__(self, path, manager: Manager, planner=first_fit) -> None:
        self.path, self.manager, self.planner = path, manager, planner
        self.ids = itertools.count(1)
        self.applier = self.wrapper = None
        self.ticks = itertools.count()
        self.clock = lambda: next(self.ticks) * 1e-3
        self.profiles, self.observers = None, lambda tracker: []
        self.handover, self.opened_again = None, 0  # the section of the configuration
        self.start()

    def start(self, wrap=lambda thing: thing, *, in_memory: bool = False, applier=None) -> None:
        self.journal = Journal(self.path, in_memory=in_memory)
        self.metrics = Metrics()
        mode = applier.mode if applier else RunMode.LIVE
        self.canary = CanaryWatch(self.handover, self.journal, self.metrics, mode)
        adapter = grouped(wrap(self.manager), self.canary.groups)
        guard = Guard(bound=0.5, window=3, fallback="slf", errors=self.journal.last_errors(3))
        self.cycle = assemble(
            adapter,
            applier or Live(adapter),
            wrap(self.journal),
            self.metrics,
            Deciding(guard, Options(policy="mom")),
            self.clock,
            planner=self.planner,
            profiles=self.profiles,
            observers=self.observers,
            canary=self.canary,
        )
        self.canary.attach(self.manager, self.cycle, self.note_open_again)

    def note_open_again(self) -> None:
        self.opened_again += 1

    def kill(self) -> None:
        self.journal.close()

    def restart(self, clock=None) -> None:
        """Start again after a kill, with another clock from now on, if one is given."""
        self.kill()
        self.clock = clock or self.clock
        self.start()

    def submit(self, *jobs: Job) -> str:
        submission = Submission(f"w.{next(self.ids)}", Workflow("w", jobs), self.manager.time)
        self.journal.submit(submission, None)
        self.cycle.tracker.add(submission)
        return submission.id

    def run(self, cycles: int = 1, step_s: float = 1.0) -> list:
        reports = []
        for _ in range(cycles):
            reports.append(self.cycle.run())
            self.manager.advance(step_s)
        return reports

    def states(self, workflow: str) -> dict[str, str]:
        found = self.cycle.tracker.queue.submissions.get(workflow) or self.journal.find(workflow)
        return {name: str(entry.state) for name, entry in found.entries.items()}

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"pilotfish_{name}", labels) or 0.0


def requests_with(bench, profiles, quotas) -> Requests:
    """Return what answers requests, which may be made in steps, with learned profiles."""
    judge = Access(AccessConfig(), quotas, operated="", file=Path("daemon.yaml"))
    return Requests(bench.cycle, bench.journal, bench.manager.cluster, profiles, judge)


def requests_of(bench, access: AccessConfig = AccessConfig(), quotas: QuotaConfig = QuotaConfig(), operated=""):
    """Return a function that asks the daemon of a bench; `uid` is the user's, by default the tests' own."""
    judge = Access(access, quotas, operated=operated, file=Path("daemon.yaml"))
    parts = bench.cycle, bench.journal, bench.manager.cluster, GivenProfiles(), judge
    requests = Requests(*parts, open_again=bench.note_open_again)

    def ask(do, uid=None, gid=54321, **arguments):
        return requests.handle({"do": do, **arguments}, Peer(os.getuid() if uid is None else uid, gid, 1))

    return ask


@pytest.fixture(autouse=True)
def no_fault_of_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move that is not in the table of stages is an error in every test."""

    def fail(text: str) -> None:
        raise InvariantError(text)

    monkeypatch.setattr(job_stages, "report_fault", fail)


@pytest.fixture
def kit() -> SimpleNamespace:
    return SimpleNamespace(
        cluster=make_cluster,
        job=make_job,
        Manager=Manager,
        Bench=Bench,
        first_fit=first_fit,
        requests=requests_of,
        requests_with=requests_with,
    )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "journal.sqlite", Manager(make_cluster()))
    yield made
    made.kill()


@pytest.fixture
def offering(tmp_path: Path) -> Bench:
    """Return a bench whose manager has a queue of its own."""
    manager = Offering(make_cluster())
    manager.capabilities = Capabilities(events=False, offers=True)
    bench = Bench(tmp_path / "journal.sqlite", manager)
    bench.kill()
    bench.start()
    bench.journal.keep_handed_over("rjms", manager.time)
    bench.kill()
    bench.start()
    return bench
