"""Running one workflow: planned again as reality leaves the forecast; a fixed plan keeps its order and its mapping."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.one_off import WorkflowRun, beginning_with
from pilotfish.daemon.planning.plan_cache import FixedPlan, released_by
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.accuracy import outcome_of, outcome_to_dict
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.simulate.errors import InvalidJobError
from pilotfish.simulate.model.job import Workflow, default_profile
from pilotfish.simulate.model.plan import Plan, PlannedJob
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.planning.planner import plan as make_plan


def plan_of(jobs, places: dict[str, tuple[tuple[str, ...], float, float]]) -> Plan:
    planned = tuple(PlannedJob(job.id, *places[job.id], places[job.id][2], 1.0) for job in jobs)
    makespan = max(job.finish_time for job in planned)
    return Plan("w", "lab", "mom", 0, makespan, None, makespan, 0.0, False, 1, planned)


@pytest.fixture
def follow(kit):
    """Run jobs on a manager whose clock only `wait` moves; returns submission, plan, manager.

    They follow a fixed plan, if `places` are given; otherwise they are planned as `pilotfish run` does.
    """

    def go(
        jobs, places=None, *, takes=(), exits=(), cores=2, nodes=2, oversubscription=1.0, cancel_at=None,
        watch=lambda report: None,
    ):  # fmt: skip
        class Virtual(kit.Manager):  # type: ignore[name-defined]  # a fixture has the class
            def wait(self, timeout_s: float) -> bool:
                self.advance(0.25)
                return True

        manager = Virtual(dataclasses.replace(kit.cluster(nodes, cores), oversubscription=oversubscription))
        manager.takes, manager.exits = dict(takes), dict(exits)
        workflow, clock = Workflow("w", tuple(jobs)), lambda: manager.time
        plan = plan_of(jobs, places) if places else make_plan(workflow, manager.cluster)
        planner = FixedPlan("r.1/", plan, workflow, clock) if places else beginning_with(plan, "r.1", workflow, clock)
        dispatch = WorkflowRun("r.1", workflow, manager, Metrics(), clock, Options(plan.policy), planner=planner)
        cancelled = lambda: cancel_at is not None and manager.time >= 1000.0 + cancel_at  # noqa: E731
        submission = dispatch.until_ended(watch, cancelled)
        dispatch.close()
        return submission, plan, manager

    return go


def starts(manager) -> dict[str, float]:
    return {key.partition("/")[2]: view.start_time - 1000.0 for key, view in manager.views.items()}


def test_a_job_starts_when_its_predecessor_has_really_ended(kit, follow):
    jobs = [kit.job("a"), kit.job("b", "a")]
    places = {"a": (("n1",), 0.0, 10.0), "b": (("n2",), 10.0, 20.0)}
    submission, _, manager = follow(jobs, places, takes={"a": 3.0})
    assert submission.state is JobState.COMPLETED
    assert starts(manager)["b"] == pytest.approx(3.0, abs=0.6)
    assert manager.views["r.1/b"].nodes == ("n2",)


def test_the_order_on_a_node_stays_the_plans(kit, follow):
    jobs = [kit.job("slow"), kit.job("first", "slow"), kit.job("second")]
    places = {"slow": (("n1",), 0.0, 1.0), "first": (("n2",), 1.0, 2.0), "second": (("n2",), 1.5, 3.0)}
    _, _, manager = follow(jobs, places, takes={"slow": 8.0})
    assert starts(manager)["second"] >= starts(manager)["first"] >= 8.0


def test_a_job_waits_for_what_the_plan_waited_for(kit, follow):
    """`b` could run next to `a`, but the plan starts it after `a`."""
    jobs = [kit.job("a"), kit.job("b")]
    places = {"a": (("n1",), 0.0, 10.0), "b": (("n1",), 10.0, 20.0)}
    assert [job.id for job in released_by(plan_of(jobs, places), Workflow("w", tuple(jobs)))["b"]] == ["a"]
    _, _, manager = follow(jobs, places, takes={"a": 15.0})
    assert starts(manager)["b"] >= 15.0


def test_no_node_is_overfilled_when_a_job_is_late(kit, follow):
    jobs = [kit.job("late", threads=2), kit.job("other"), kit.job("next", "other", threads=1)]
    places = {"late": (("n1",), 0.0, 5.0), "other": (("n2",), 0.0, 6.0), "next": (("n1",), 6.0, 9.0)}
    _, _, manager = follow(jobs, places, takes={"late": 12.0, "other": 6.0})
    assert starts(manager)["next"] >= 12.0


def test_a_failed_job_cancels_only_its_successors(kit, follow):
    jobs = [kit.job("bad"), kit.job("after", "bad"), kit.job("last", "after"), kit.job("free")]
    places = {name: (("n1",), t, t + 1.0) for name, t in (("bad", 0.0), ("after", 1.0), ("last", 2.0))}
    places["free"] = (("n2",), 0.0, 4.0)
    submission, plan, manager = follow(jobs, places, exits={"bad": 3})
    states = {name: entry.state for name, entry in submission.entries.items()}
    assert states == {
        "bad": JobState.FAILED,
        "after": JobState.CANCELLED,
        "last": JobState.CANCELLED,
        "free": JobState.COMPLETED,
    }
    assert set(starts(manager)) == {"bad", "free"}
    outcome = outcome_of(submission, plan)
    assert outcome.exit_code == 1 and outcome.makespan_error is None
    document = outcome_to_dict(outcome, {"bad": ("out", "err")})
    assert [job["state"] for job in document["jobs"]] == ["failed", "cancelled", "cancelled", "completed"]
    assert document["jobs"][0]["stderr"] == "err" and document["jobs"][1]["stderr"] is None


def test_a_run_time_is_compared_with_the_forecast_at_the_start_and_the_makespan_with_the_first_plan(kit, follow):
    """Two jobs share a core in the first plan. The one before ends so late that they no longer meet."""
    jobs = [kit.job("a", seconds=4.0), kit.job("b", seconds=1.0), kit.job("c", "b", seconds=3.0)]
    submission, plan, _ = follow(jobs, cores=1, nodes=1, oversubscription=2.0, takes={"a": 4.0, "b": 6.0, "c": 3.0})
    outcome = outcome_of(submission, plan)
    late = next(job for job in outcome.jobs if job.planned.id == "c")
    assert late.planned.finish_time - late.planned.start_time > 4.0, "it shares the core in the first plan"
    assert late.forecast_run_time == pytest.approx(3.0) and late.error == pytest.approx(1.0, rel=0.2)
    assert outcome_to_dict(outcome, {})["jobs"][2]["forecast_run_time"] == late.forecast_run_time
    assert outcome.makespan_error == pytest.approx(outcome.makespan / plan.makespan)


def test_cancelling_ends_running_jobs_and_drops_waiting_ones(kit, follow):
    jobs = [kit.job("runs", seconds=50.0), kit.job("waits", "runs")]
    places = {"runs": (("n1",), 0.0, 50.0), "waits": (("n1",), 50.0, 60.0)}
    submission, plan, manager = follow(jobs, places, cancel_at=2.0)
    assert submission.state is JobState.CANCELLED and manager.time < 1010.0
    assert set(starts(manager)) == {"runs"} and outcome_of(submission, plan).exit_code == 1


def test_a_lost_resource_manager_ends_the_run(kit, follow):
    def vanish(report):
        raise AdapterError("gone", kind="unreachable")

    with pytest.raises(AdapterError, match="gone"):
        follow([kit.job("a")], {"a": (("n1",), 0.0, 1.0)}, watch=vanish)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_any_drift_keeps_dependencies_mapping_and_capacity(follow, kit, seed):
    draw = random.Random(seed)
    jobs, places, free = [], {}, {"n1": 0.0, "n2": 0.0}
    for i in range(8):
        before = tuple(draw.sample([job.id for job in jobs], min(len(jobs), draw.choice((0, 1, 2)))))
        node, length = draw.choice(("n1", "n2")), draw.uniform(0.5, 4.0)
        begin = max([free[node], *(places[name][2] for name in before)])
        jobs.append(kit.job(f"j{i}", *before, threads=draw.choice((1, 2))))
        places[f"j{i}"] = ((node,), begin, begin + length)
        free[node] = begin + length if draw.random() < 0.7 or jobs[-1].profile.threads == 2 else begin
        if free[node] == begin:
            free[node] = begin + length
    takes = {job.id: draw.uniform(0.1, 6.0) for job in jobs}
    submission, _, manager = follow(jobs, places, takes=takes)
    assert submission.state is JobState.COMPLETED
    views = {key.partition("/")[2]: view for key, view in manager.views.items()}
    assert set(manager.runs.values()) == {1} and len(views) == len(jobs)
    for job in jobs:
        assert views[job.id].nodes == places[job.id][0]
        assert all(views[name].finish_time <= views[job.id].start_time for name in job.after)
        concurrent = [
            other.job.profile.threads
            for other in views.values()
            if other.nodes == views[job.id].nodes and other.start_time <= views[job.id].start_time < other.finish_time
        ]
        assert sum(concurrent) <= 2
        for other in jobs:
            same = places[other.id][0] == places[job.id][0]
            if same and places[other.id][1] < places[job.id][1]:
                assert views[other.id].start_time <= views[job.id].start_time


def test_a_job_goes_to_the_node_that_is_free_earlier_than_forecast(kit, follow):
    """The plan gives the long job a node of its own; it ends at once, and one of the others takes its node."""
    jobs = [kit.job("long", seconds=30.0), kit.job("c1", seconds=15.0), kit.job("c2", seconds=15.0)]
    takes = {"long": 0.25, "c1": 4.0, "c2": 4.0}
    _, plan, manager = follow(jobs, takes=takes, cores=1)
    planned = {job.id: job.nodes for job in plan.jobs}
    assert planned["c1"] == planned["c2"] != planned["long"]
    assert max(starts(manager).values()) <= 1.0
    assert {view.nodes for view in manager.views.values()} == {("n1",), ("n2",)}


@pytest.mark.long
@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_no_node_is_idle_while_a_job_is_ready(follow, kit, seed):
    """Nothing is known of the jobs, so no forecast is a reason to let one wait."""
    draw = random.Random(seed)
    jobs = []
    for i in range(9):
        before = draw.sample([job.id for job in jobs], min(len(jobs), draw.choice((0, 0, 1, 2))))
        assumed = default_profile(draw.choice((0.5, 5.0, 50.0)))
        jobs.append(dataclasses.replace(kit.job(f"j{i}", *before), profile=assumed))
    takes = {job.id: draw.choice((0.25, 2.0, 9.0)) for job in jobs}
    submission, _, manager = follow(jobs, takes=takes, cores=1)
    assert submission.state is JobState.COMPLETED and set(manager.runs.values()) == {1}
    views = {key.partition("/")[2]: view for key, view in manager.views.items()}
    for job in jobs:
        ready = max([views[name].finish_time for name in job.after], default=1000.0)
        begin = views[job.id].start_time
        assert begin >= ready
        for step in range(int((begin - ready) / 0.25) - 4):  # a cycle or two may pass until an end is seen
            at = ready + 0.25 * (step + 2)
            assert sum(view.start_time <= at <= view.finish_time for view in views.values()) >= 2, (job.id, at)


def test_a_job_that_no_policy_takes_any_more_ends_the_run(kit, follow, monkeypatch):
    """The plan of the whole workflow took it; the plan after the first end rejects it."""
    from pilotfish.daemon import one_off

    def rejecting(problem, cluster, options):
        made = make_plan(problem.workflow, cluster, underway=problem.running)
        waiting = {job.id for job in problem.workflow.jobs} - {job.id for job in problem.running}
        kept = tuple(job for job in made.jobs if job.id not in waiting)
        return dataclasses.replace(made, jobs=kept, rejected=dict.fromkeys(waiting, "the queue is closed"))

    monkeypatch.setattr(one_off, "simulate_plan", rejecting)
    with pytest.raises(InvalidJobError, match="w: job 'b' cannot start: the queue is closed; running jobs go on"):
        follow([kit.job("a"), kit.job("b", "a")], takes={"a": 1.0})
