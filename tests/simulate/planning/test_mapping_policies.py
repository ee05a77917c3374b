"""Mapping policies of other packages: registered, they plan like built-in ones; wrong decisions are named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.generate.workflows import stream
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job
from pilotfish.simulate.planning.mapping_policies import POLICIES, choosing, register
from pilotfish.simulate.planning.planner import RunningJob, plan
from pilotfish.simulate.planning.simulation import Simulation

KIND = NodeType("a", 56, 256e9, 80e9, power=Power(100.0, per_core=5.0))
CLUSTER = Cluster("lab", tuple(Node(f"n{i}", KIND) for i in range(3)), oversubscription=float("inf"))
NARROW = Cluster("narrow", CLUSTER.nodes, oversubscription=1.0)
FLOW = stream(40, seed=3)


@pytest.mark.parametrize("name", ["let", "mom", "slf", "loadavg"])
def test_a_built_in_choice_registered_under_another_name_gives_the_same_plan(name: str) -> None:
    register("mine", choosing(lambda simulation, job: simulation.decide(job.id, name)))
    mine, built_in = plan(FLOW, CLUSTER, policy="mine"), plan(FLOW, CLUSTER, policy=name)
    assert mine.policy == "mine"
    assert mine.makespan == built_in.makespan
    assert mine.energy_j == pytest.approx(built_in.energy_j, rel=1e-12)
    assert [(job.nodes, job.start_time) for job in mine.jobs] == [(job.nodes, job.start_time) for job in built_in.jobs]


def test_a_policy_may_let_jobs_wait_and_keeps_running_jobs() -> None:
    @choosing
    def one_at_a_time(simulation: Simulation, job: Job) -> Sequence[str] | None:
        return None if simulation.next_event < float("inf") else ("n1",)

    register("one-at-a-time", one_at_a_time)
    made = plan(FLOW, CLUSTER, policy="one-at-a-time", underway=[RunningJob("j0", ("n0",), 0.5)])
    spans = sorted((job.start_time, job.finish_time) for job in made.jobs)
    assert all(start >= end for (_, end), (start, _) in pairwise(spans))
    assert {job.nodes for job in made.jobs} == {("n0",), ("n1",)}
    assert made.makespan == pytest.approx(sum(end - start for start, end in spans))


@pytest.mark.parametrize(
    "nodes, words",
    [
        ((), "found no node"),
        (("n7",), "found n7"),
        (("n0", "n1"), "found n0, n1"),
        (("n0",), "job 'j.*found n0 .allowed: 1 distinct node on which it fits now"),
    ],
)
def test_nodes_that_cannot_be_are_refused(nodes: tuple[str, ...], words: str) -> None:
    """The last case fills n0 until a job does not fit."""
    register("wrong", choosing(lambda simulation, job: nodes))
    with pytest.raises(PolicyError, match=words):
        plan(FLOW, NARROW, policy="wrong")


def test_a_policy_that_never_starts_a_job_is_refused() -> None:
    register("idle", choosing(lambda simulation, job: None))
    with pytest.raises(PolicyError, match="job 'j0': it was never started"):
        plan(FLOW, CLUSTER, policy="idle")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ConfigError, match=r"mapping policy: let: the name is taken \(allowed: a name other than"):
        register("let", POLICIES["mom"])
    with pytest.raises(ConfigError, match="found 3"):
        register("three", 3)
