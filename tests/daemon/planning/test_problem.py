"""The planning problem: running, startable and omitted jobs, and progress."""

from __future__ import annotations

import math

import pytest

from pilotfish.daemon.planning.problem import ALMOST_DONE, build_problem, next_due, starts
from pilotfish.daemon.state.handed_over import HandedOver
from pilotfish.daemon.state.job_stages import JobStage
from pilotfish.daemon.state.queue import Queue, Submission
from pilotfish.simulate.model.job import Workflow
from pilotfish.simulate.model.plan import Plan, PlannedJob
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot


def posed(kit, *jobs, views=(), states=None, time=100.0, **fields):
    queue = Queue()
    submission = Submission("w", Workflow("w", jobs), 0.0)
    for name, changes in fields.items():
        for field, value in changes.items():
            setattr(submission.entries[name], field, value)
    queue.add(submission)
    cluster = kit.cluster()
    up = [NodeState.UP] * len(cluster.nodes)
    return build_problem(queue, Snapshot(time, 1, cluster, tuple(states or up), tuple(views)))


def running(**more):
    return {"state": JobState.RUNNING, "stage": JobStage.RUNNING, "nodes": ("n1",), "start_time": 90.0, **more}


def test_completed_dependencies_are_dropped_and_running_ones_kept(kit):
    jobs = (kit.job("a"), kit.job("b"), kit.job("c", "a", "b"), kit.job("d", "c"))
    problem = posed(kit, *jobs, a={"state": JobState.COMPLETED, "stage": JobStage.ENDED}, b=running())
    assert [(job.id, job.after) for job in problem.workflow.jobs] == [
        ("w/b", ()),
        ("w/c", ("w/b",)),
        ("w/d", ("w/c",)),
    ]
    assert [job.id for job in problem.running] == ["w/b"] and not problem.startable


def test_a_job_that_fits_nowhere_is_left_out_with_its_successors(kit):
    jobs = (kit.job("big", nodes=2), kit.job("x", "big"), kit.job("y", "x"), kit.job("free"))
    problem = posed(kit, *jobs, states=[NodeState.UP, NodeState.DRAINED])
    assert [job.id for job in problem.workflow.jobs] == ["w/free"] == list(problem.startable)
    assert set(problem.stuck) == {"w/big"} and problem.available == ("n1",)


def test_a_sleeping_node_is_used_only_if_a_job_would_have_to_wait(kit):
    up_and_asleep = [NodeState.UP, NodeState.ASLEEP]
    assert posed(kit, kit.job("a"), states=up_and_asleep).available == ("n1",)
    assert posed(kit, kit.job("wide", nodes=2), states=up_and_asleep).available == ("n1", "n2")
    assert "w/wide" in posed(kit, kit.job("wide", nodes=2), states=up_and_asleep).startable


def test_a_placed_job_without_nodes_delays_only_its_successors(kit):
    problem = posed(kit, kit.job("a"), kit.job("b", "a"), kit.job("c"), a={"stage": JobStage.HANDED})
    assert [job.id for job in problem.workflow.jobs] == ["w/c"]


def test_a_start_that_failed_waits_for_its_time(kit):
    assert not posed(kit, kit.job("a"), a={"not_before": 100.5}).startable
    assert posed(kit, kit.job("a"), a={"not_before": 100.0}).startable


@pytest.mark.parametrize(
    ("entry", "usage", "progress"),
    [
        (running(), (), 10 / 20),
        (running(expected=130.0), (), 10 / 40),
        (running(expected=95.0), (), ALMOST_DONE),
        (running(start_time=None), (), 0.0),
        (running(start_time=110.0), (), 0.0),
        (running(), (("cpu_seconds", 4.0),), 4 / 20),
        (running(), (("cpu_seconds", 19.0),), 10 / 20),
    ],
)
def test_progress_is_the_lesser_of_time_and_cpu_time(kit, entry, usage, progress):
    job = kit.job("a", seconds=20.0)
    view = JobView("w/a", job, JobState.RUNNING, ("n1",), start_time=90.0, usage=usage)
    (found,) = posed(kit, job, views=[view], a=entry).running
    assert found.progress == pytest.approx(progress)


def test_neighbours_run_in_the_problem_and_ended_ones_do_not(kit):
    views = [
        JobView("x/1", kit.job("1"), JobState.RUNNING, ("n2", "gone"), start_time=95.0),
        JobView("x/2", kit.job("2"), JobState.COMPLETED, ("n1",)),
        JobView("x/3", kit.job("3"), JobState.PENDING, ()),
    ]
    problem = posed(kit, kit.job("a"), views=views)
    assert [(job.id, job.nodes, job.progress) for job in problem.running] == [("x/1", ("n2",), 0.5)]
    assert [job.id for job in problem.workflow.jobs] == ["w/a", "x/1"]


def test_starts_are_the_ready_jobs_planned_for_now(kit):
    problem = posed(kit, kit.job("a"), kit.job("b"), kit.job("c", "a"), kit.job("r"), r=running(start_time=95.0))
    times = {"w/r": 0.0, "w/a": 0.0, "w/b": 3.0, "w/c": 2.0}
    jobs = tuple(PlannedJob(name, ("n1",), at, at + 10, 10, 1.0) for name, at in times.items())
    plan = Plan("queue", "lab", "mom", 0, 1, None, 1, 0, False, 1, jobs)
    assert [(start.key, planned.start_time) for start, planned in starts(plan, problem)] == [("w/a", 0.0)]
    assert next_due(plan, problem) == 3.0  # c waits for the end of a, which will be an event
    assert next_due(Plan("q", "l", "mom", 0, 1, None, 1, 0, False, 1, jobs[:1]), problem) == pytest.approx(12.0)
    assert math.isinf(next_due(Plan("q", "l", "mom", 0, 1, None, 1, 0, False, 1, ()), problem))


@pytest.mark.parametrize(("start_time", "due"), [(60.0, 5.0), (98.0, 1.2)])
def test_a_job_that_outlasts_its_forecast_makes_a_plan_due_by_the_time_it_has_run(kit, start_time, due):
    problem = posed(kit, kit.job("a"), kit.job("r"), r=running(start_time=start_time, expected=99.0))
    times = {"w/r": (0.0, 0.1), "w/a": (0.1, 10.1)}
    jobs = tuple(PlannedJob(name, ("n1",), begin, end, 10, 1.0) for name, (begin, end) in times.items())
    plan = Plan("queue", "lab", "mom", 0, 1, None, 1, 0, False, 1, jobs)
    assert next_due(plan, problem) == pytest.approx(due)


@pytest.mark.parametrize(
    ("priorities", "weights"),
    [
        ((1000.0, 2000.0, 3000.0), (0.5, 1.0, 1.5)),
        ((7.0, 7.0, 7.0), (1.0, 1.0, 1.0)),
        ((None, 10.0, 30.0), (1.0, 0.5, 1.5)),
        ((None, None, None), (1.0, 1.0, 1.0)),
        ((1.0, 1.0, 1e9), (0.1, 0.1, 3.0)),
    ],
)
def test_jobs_count_by_their_priority(kit, priorities, weights):
    jobs = [kit.job(name) for name in "abc"]
    views = [
        JobView(f"rm/{job.id}", job, JobState.PENDING, offered=True, priority=priority)
        for job, priority in zip(jobs, priorities, strict=True)
    ]
    queue = Queue()
    queue.add(HandedOver("rm", Workflow("rm", tuple(jobs)), 0.0))
    cluster = kit.cluster()
    problem = build_problem(queue, Snapshot(0.0, 1, cluster, (NodeState.UP,) * len(cluster.nodes), views))
    assert {each.jobs: each.weight for each in problem.submitted} == {
        (f"rm/{name}",): pytest.approx(weight) for name, weight in zip("abc", weights, strict=True)
    }
