"""A run in steps is the same run, and forecasts near a node are those of its own jobs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.planning.search_moves import Candidate
from pilotfish.simulate.planning.simulation import POLICY_CODES, Simulation

TYPE = NodeType("t", 4, 1e9, 1e9, power=Power(idle=10.0, per_core=5.0))
CLUSTER = Cluster("x", tuple(Node(f"n{i}", TYPE) for i in range(6)))


def job_of(number: int, nodes: int, seconds: float, after: tuple[str, ...] = ()) -> Job:
    return Job(f"j{number}", Profile((ThreadGroup(1, seconds, bandwidth=4e8),)), nodes=nodes, after=after)


SIZES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9), st.booleans()), min_size=1, max_size=14)


@given(SIZES, st.sampled_from(sorted(POLICY_CODES)), st.integers(1, 3), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_run_in_steps_is_the_same_run(sizes, policy, instants, most):
    jobs = [
        job_of(i, nodes, float(seconds), (f"j{i - 1}",) if i and follows else ())
        for i, (nodes, seconds, follows) in enumerate(sizes)
    ]
    breaths: list[int] = []
    whole = Simulation(Workflow("w", tuple(jobs)), CLUSTER)
    cut = Simulation(Workflow("w", tuple(jobs)), CLUSTER, breathe=lambda: breaths.append(1))
    cut._instants, cut.world.count["most"] = instants, most
    cut._fresh = cut.world.buffer.copy()
    breaths.clear()
    one, other = whole.run(policy), cut.run(policy)
    assert one.makespan == other.makespan and np.array_equal(one.finish, other.finish)
    assert np.array_equal(whole.world.placed, cut.world.placed)
    assert len(breaths) > (len(np.unique(one.finish)) - 1) // instants
    mapping = Candidate.of(whole, whole.world.nodes["cap"])
    assert mapping.follow(whole) == mapping.follow(cut)
    assert np.array_equal(whole.world.jobs["finish"], cut.world.jobs["finish"])
    until = one.makespan / 2
    assert mapping.follow(whole, until) == mapping.follow(cut, until)


def test_a_pass_makes_a_bounded_number_of_forecasts_between_two_breaths():
    jobs = tuple(job_of(i, 1 + i % 2, 5.0 + i) for i in range(20))
    seen: list[int] = []
    simulation = Simulation(Workflow("w", jobs), CLUSTER)
    simulation._breathe = lambda: seen.append(int(simulation.world.count["evaluations"]))
    simulation.world.count["most"] = 3
    simulation._fresh = simulation.world.buffer.copy()
    total = simulation.run("let").evaluations
    steps = np.diff([0, *seen, total])
    assert total > 60 and steps.max() <= 3 + len(CLUSTER.nodes) + 10  # those of the last job come on top


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(2, 20)), min_size=2, max_size=8), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_a_forecast_near_a_node_takes_each_part_of_a_job_as_a_job_by_itself(sizes, start):
    wide, parts, running, apart = [], [], [], []
    for i, (nodes, seconds) in enumerate([*sizes, (2, 7)]):
        wide.append(job_of(i, nodes, float(seconds)))
        names = [f"n{(i * 2 + k) % 6}" for k in range(nodes)]
        running.append(RunningJob(f"j{i}", tuple(names)))
        for k, name in enumerate(names):
            parts.append(job_of(100 * i + k + 1000, 1, float(seconds)))
            apart.append(RunningJob(parts[-1].id, (name,)))
    new = Job("new", Profile((ThreadGroup(1, 11.0, bandwidth=4e8),)))
    near = Simulation(Workflow("w", (*wide, new)), CLUSTER, underway=running, by_hand=["new"], most_tied=1)
    alone = Simulation(Workflow("w", (*parts, new)), CLUSTER, underway=apart, by_hand=["new"])
    assert near.world.count["near"] == 1 and alone.world.count["near"] == 0
    for simulation in (near, alone):
        simulation.settle()
    for policy in ("let", "mom"):
        expected = alone.forecast("new", [f"n{start}"], policy)
        assert near.forecast("new", [f"n{start}"], policy) == pytest.approx(expected, rel=1e-9)


def test_only_many_nodes_of_jobs_that_share_them_make_forecasts_near():
    def is_near(most: int | None, threads: int) -> bool:
        job = Job("j", Profile((ThreadGroup(threads, 1.0),)), nodes=3)
        return bool(Simulation(Workflow("w", (job,)), CLUSTER, most_tied=most).world.count["near"])

    assert is_near(2, 1) and not is_near(3, 1) and not is_near(None, 1) and not is_near(2, 4)
