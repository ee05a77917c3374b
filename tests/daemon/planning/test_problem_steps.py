"""A problem is made in steps between which clients are answered, and is one of the queue at one moment."""

from __future__ import annotations

import pytest

from pilotfish.daemon.planning import plan_steps, problem
from pilotfish.daemon.planning.problem import Neighbours, build_problem
from pilotfish.daemon.state.queue import Queue, Submission
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Workflow
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot, holds_nodes

CLUSTER = Cluster("lab", tuple(Node(f"n{i}", NodeType("t", 64, 1e9, 1e10)) for i in range(4)))


def queue_of(*names: str) -> Queue:
    queue = Queue()
    for name in names:
        queue.add(Submission(name, Workflow(name, (Job("a", DEFAULT_PROFILE), Job("b", DEFAULT_PROFILE))), 0.0))
    return queue


def snapshot_of(running: int) -> Snapshot:
    views = tuple(
        JobView(f"slurm/{i}", Job("j", DEFAULT_PROFILE), JobState.RUNNING, (f"n{i % 4}",), start_time=1.0)
        for i in range(running)
    )
    return Snapshot(9.0, 1, CLUSTER, (NodeState.UP,) * 4, views)


def test_a_bounded_number_of_neighbours_is_looked_at_between_two_breaths(monkeypatch):
    monkeypatch.setattr(plan_steps, "STEP_JOBS", 50)
    looks, most = 0, 0

    def counted(view: JobView) -> bool:
        nonlocal looks
        looks += 1
        return holds_nodes(view)

    def breathe() -> None:
        nonlocal looks, most
        looks, most = 0, max(most, looks)

    monkeypatch.setattr(problem, "holds_nodes", counted)
    result = build_problem(queue_of("w"), snapshot_of(2000), neighbours=Neighbours(), breathe=breathe)
    assert len(result.running) == 2000 and 0 < most <= 50


@pytest.mark.parametrize("at", range(1, 9))
def test_a_client_may_change_the_queue_at_any_breath(monkeypatch, at):
    monkeypatch.setattr(plan_steps, "STEP_JOBS", 50)
    queue, snapshot, breaths = queue_of("w", "x"), snapshot_of(200), 0

    def breathe() -> None:
        nonlocal breaths
        breaths += 1
        if breaths == at:  # a workflow is cancelled and forgotten, and another submitted
            del queue.submissions["w"]
            queue.add(next(iter(queue_of("y").submissions.values())))

    before, after = (build_problem(queue_of(*names), snapshot_of(200)) for names in (("w", "x"), ("x", "y")))
    made_of = build_problem(queue, snapshot, breathe=breathe)
    assert breaths == 8
    assert [job.id for job in made_of.workflow.jobs] in (
        [job.id for job in before.workflow.jobs],
        [job.id for job in after.workflow.jobs],
    )
    keys = {name for submitted in made_of.submitted for name in submitted.jobs}
    assert (
        keys == set(made_of.startable) == {job.id for job in made_of.workflow.jobs} - {f"slurm/{i}" for i in range(200)}
    )
