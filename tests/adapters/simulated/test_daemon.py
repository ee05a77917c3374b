"""The daemon's control loop on the simulated adapter: its forecasts and its reactions to errors."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.apply import Live
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.one_off import WorkflowRun
from pilotfish.daemon.planning.plan_cache import FixedPlan
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.accuracy import factor
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.daemon.state.recorded_outcome import error_ratio
from pilotfish.simulate.model.cluster import Cluster, CpuSharing, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Action
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.planning.planner import plan
from tests.support.played_adapter import HandOverAdapter
from tests.support.played_manager import SimulatedManager

LONGEST_WAIT_S = 1e6


def cluster(oversubscription: float, bandwidth: float = 1e12) -> Cluster:
    kind = NodeType("n", 8, 1e12, bandwidth, cpu_sharing=CpuSharing.PER_THREAD)
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(5)), oversubscription)


def workflow(jobs: int, bandwidth: float = 0.0, seed: int = 1) -> Workflow:
    """Return a random DAG: jobs of 1 to 8 threads, each after up to three of the 20 before it."""
    chance = random.Random(seed)
    created: list[Job] = []
    for i in range(jobs):
        before = chance.sample(created[-20:], min(len(created), chance.randrange(4)))
        rate = bandwidth * chance.random()
        group = ThreadGroup(chance.randrange(1, 9), chance.uniform(5, 50), bandwidth=rate)
        created.append(Job(f"j{i}", Profile((group,)), after=tuple(job.id for job in before), command=("true",)))
    return Workflow("w", tuple(created))


class Counted(SimulatedAdapter):
    """A simulated cluster that counts the actions."""

    applied = 0

    def apply(self, action: Action) -> None:
        self.applied += 1
        super().apply(action)


class Virtual:
    """The daemon's control loop on the simulated adapter."""

    def __init__(self, path: Path, site: Cluster, policy: str = "mom", **world: Callable[[Job], object]) -> None:
        self.adapter = Counted(site, **world)
        self.journal, self.metrics = Journal(path / "journal.sqlite"), Metrics()
        guard = Guard(bound=0.5, window=20, fallback="slf")
        options, live = Options(policy=policy), Live(self.adapter)
        clock = lambda: self.adapter.time  # noqa: E731
        self.cycle = assemble(self.adapter, live, self.journal, self.metrics, Deciding(guard, options), clock)
        self.policies: list[str] = []

    def run(self, flow: Workflow) -> Submission:
        """Submit a workflow and let time pass until it has ended."""
        submission = Submission("w.1", flow, self.adapter.time)
        self.journal.submit(submission, None)
        self.cycle.tracker.add(submission)
        while not submission.state.ended:
            report = self.cycle.run()
            self.policies += [report.policy] if report.plan else []
            if not self.cycle.trigger.changed and not submission.state.ended:
                assert self.adapter.wait(LONGEST_WAIT_S), "nothing runs, and nothing is started"
        self.journal.close()
        return submission


@pytest.mark.long
def test_two_hundred_jobs_take_as_long_as_forecast(tmp_path: Path) -> None:
    world = Virtual(tmp_path, cluster(oversubscription=1.0))
    run = world.run(workflow(200))
    assert run.state is JobState.COMPLETED
    for entry in run.entries.values():
        assert entry.forecast is not None and entry.start_time is not None and entry.finish_time is not None
        assert entry.finish_time - entry.start_time == pytest.approx(entry.forecast.run_time, abs=1e-6)
        assert entry.expected == pytest.approx(entry.finish_time, abs=1e-6)
    guard = world.cycle.planner.forecasts.guard
    assert guard.median(guard.worst) == pytest.approx(0.0, abs=1e-6)
    assert set(world.policies) == {"mom"}
    assert world.adapter.applied == 200


@pytest.mark.long
def test_a_fixed_plan_comes_true_under_contention(tmp_path: Path) -> None:
    site, flow = cluster(oversubscription=2.0, bandwidth=40e9), workflow(200, bandwidth=10e9)
    schedule = plan(flow, site, policy="mom")
    assert max(job.contention_slowdown for job in schedule.jobs) > 1.5
    adapter = SimulatedAdapter(site)
    clock = lambda: adapter.time  # noqa: E731
    fixed = FixedPlan("w/", schedule, flow, clock)
    dispatch = WorkflowRun("w", flow, adapter, Metrics(), clock, Options("mom"), planner=fixed)
    run = dispatch.until_ended(lambda report: None, lambda: False)
    dispatch.close()
    for job in schedule.jobs:
        entry = run.entries[job.id]
        assert entry.nodes == job.nodes
        assert entry.start_time == pytest.approx(job.start_time, abs=1e-6)
        assert entry.finish_time == pytest.approx(job.finish_time, abs=1e-6)


def test_repeated_plans_under_contention_have_small_errors(tmp_path: Path) -> None:
    """Progress of jobs is known exactly; the remaining error is that a later plan may give them other neighbours."""
    world = Virtual(tmp_path, cluster(oversubscription=2.0, bandwidth=40e9))
    run = world.run(workflow(60, bandwidth=10e9))
    assert run.state is JobState.COMPLETED and not world.cycle.planner.forecasts.guard.tripped
    errors = [
        factor(error_ratio(entry.forecast.run_time, entry.finish_time - entry.start_time)) - 1.0
        for entry in run.entries.values()
    ]
    assert statistics.median(errors) < 1e-6 and max(errors) < 0.3


def three_times(job: Job) -> Profile:
    return Profile(tuple(ThreadGroup(g.count, 3 * g.demand, bandwidth=g.bandwidth) for g in job.profile.groups))


def test_jobs_that_take_three_times_as_long_trip_the_guard(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = Virtual(tmp_path, cluster(oversubscription=1.0), truth=three_times)
    run = world.run(workflow(60))
    assert run.state is JobState.COMPLETED
    assert world.cycle.mode == "fallback"
    guard = world.cycle.planner.forecasts.guard
    assert guard.median(guard.worst) == pytest.approx(2.0, rel=0.1)
    tripped = world.policies.index("slf")
    assert set(world.policies[:tripped]) == {"mom"} and set(world.policies[tripped:]) == {"slf"}
    assert caplog.text.count("over the bound of 1.50x: policy slf decides meanwhile") == 1
    assert world.adapter.applied == 60


@pytest.mark.parametrize("paused", [False, True])
def test_the_time_for_which_a_job_is_suspended_is_no_forecast_error(tmp_path: Path, paused: bool) -> None:
    manager = SimulatedManager(cluster(oversubscription=1.0), start_time=1.7e9, most_s=90.0)
    adapter, journal, metrics = HandOverAdapter(manager), Journal(tmp_path / "j"), Metrics()
    guard, options = Guard(bound=0.5, window=20, fallback="slf"), Options(policy="mom")
    journal.keep_handed_over(adapter.name, manager.time)
    cycle = assemble(adapter, Live(adapter), journal, metrics, Deciding(guard, options), lambda: manager.time)
    number = manager.submit(Job("a", Profile((ThreadGroup(1, 30.0),))), hold_s=50.0)
    for second in range(200):
        if paused and second in (10, 110):
            manager.suspend(number)
        cycle.run()
        manager.advance(1.0)
    assert manager.jobs[number].state is JobState.COMPLETED
    error_sum = metrics.registry.get_sample_value(
        "pilotfish_forecast_error_factor_sum", {"kind": "run_time", "direction": "longer"}
    )
    assert error_sum == (0.0 if paused else pytest.approx(1.0, abs=0.1))
    journal.close()


def test_a_failure_cancels_the_jobs_that_depend_on_it(tmp_path: Path) -> None:
    import networkx

    flow = workflow(40)
    culprit = max(flow.index, key=lambda name: len(networkx.descendants(flow.dag, name)) * (name != "j0"))
    doomed = networkx.descendants(flow.dag, culprit)
    assert 3 < len(doomed) < 39
    world = Virtual(tmp_path, cluster(oversubscription=1.0), exit_code=lambda job: 9 if job.id == culprit else 0)
    run = world.run(flow)
    assert run.entries[culprit].exit_code == 9 and run.exit_code == 1
    ended_well = {name for name, entry in run.entries.items() if entry.state is JobState.COMPLETED}
    cancelled = {name for name, entry in run.entries.items() if entry.state is JobState.CANCELLED}
    assert (cancelled, ended_well) == (doomed, set(flow.index) - doomed - {culprit})
