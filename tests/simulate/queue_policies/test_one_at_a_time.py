"""`pairs` and `nodes` in Python: on nodes of one processor they place tasks as the kernel does, in replays and in plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import PolicyError
from pilotfish.simulate.model.cluster import Cluster, ContendingThreads, Contention, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.queue_mapping import QueueMapping
from pilotfish.simulate.queue_policies.policy_specs import JOBS, RESOURCES, RULES, Contending, Nodes, Pairs
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.world_parts import Part
from tests.simulate.replay.worlds.test_shared_nodes import nodes_of

DRAWN = "random"  # the one rule that is drawn in another way
PICKS = st.sampled_from([rule for rule in JOBS if rule != DRAWN])
POLICY = st.one_of(
    st.builds(Pairs, PICKS, st.sampled_from([rule for rule in RESOURCES if rule != DRAWN])),
    st.builds(Nodes, PICKS, st.sampled_from([rule for rule in RULES if rule != DRAWN])),
)
#: Gap, run time, tasks, bytes/s and bytes of each; no task alone wants more than the memory of a node gives.
ROW = st.tuples(
    st.integers(0, 3).map(float), st.integers(2, 20).map(float), st.integers(1, 3),
    st.sampled_from([0.0, 2e9, 4.5e9]), st.sampled_from([1e8, 5e8]),
)  # fmt: skip
ROWS = st.lists(ROW, min_size=1, max_size=25)
SLOW = NodeType("slow", 4, 8e9, 20e9, speed=10.0, power=Power(40.0, 5.0))
FAST = NodeType("fast", 3, 4e9, 10e9, speed=20.0, power=Power(50.0, 4.0))
LAB = Cluster("lab", (Node("n0", SLOW), Node("n1", FAST), Node("n2", SLOW)))
CLUSTERS = st.builds(
    lambda model, threads: replace(
        LAB,
        nodes=tuple(
            replace(node, type=replace(node.type, contention=model, contending_threads=threads)) for node in LAB.nodes
        ),
    ),
    st.sampled_from([Contention.NONE, Contention.EQUAL_SHARE, Contention.MAX_MIN]), st.sampled_from(ContendingThreads),
)  # fmt: skip


def workload(rows: list[Any], policy: Contending) -> Workload:
    """Return the jobs; under `pairs` each is one task."""
    gaps, run, tasks, rates, memory = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    size = tasks.astype(np.int64) if isinstance(policy, Nodes) else np.ones(len(rows), np.int64)
    more = {"volume": run * rates, "memory": memory}
    return Workload("w", np.arange(len(rows)), np.cumsum(gaps), run, run * 3.0, size, more=more)


@given(ROWS, POLICY, CLUSTERS)
@settings(max_examples=150, deadline=None)
def test_tasks_are_placed_as_the_kernel_places_them(rows: list[Any], policy: Contending, cluster: Cluster) -> None:
    jobs = workload(rows, policy)
    own, kernel = (
        replay(jobs, machine_of(cluster), uncompiled(policy, 0), parts=(Part(),), contention=True),
        replay(jobs, machine_of(cluster), policy),
    )
    np.testing.assert_allclose(own.start_time, kernel.start_time, rtol=1e-9)
    np.testing.assert_allclose(own.finish_time, kernel.finish_time, rtol=1e-9)
    assert nodes_of(own, [4, 3, 4]) == nodes_of(kernel, [4, 3, 4])


@given(ROWS, POLICY, CLUSTERS)
@settings(max_examples=100, deadline=None)
def test_a_plan_places_tasks_as_the_kernel_does(rows: list[Any], policy: Contending, cluster: Cluster) -> None:
    jobs = workload([(0.0, *row[1:]) for row in rows], policy)
    kernel = replay(jobs, machine_of(cluster), policy)
    columns = zip(*(column.tolist() for column in (jobs.run_time, jobs.size, *jobs.more.values())), strict=True)
    asked = [
        Job(
            f"j{i}", Profile((ThreadGroup(size, run, bandwidth=moved / run),)), memory=size * memory, walltime=3.0 * run
        )
        for i, (run, size, moved, memory) in enumerate(columns)
    ]
    made = planned(policy, asked, cluster)
    np.testing.assert_allclose([job.start_time for job in made.jobs], kernel.start_time, rtol=1e-9)
    np.testing.assert_allclose([job.finish_time for job in made.jobs], kernel.finish_time, rtol=1e-9)
    names = [job.nodes for job in made.jobs]
    assert {i: (LAB.index[node],) for i, (node,) in enumerate(names)} == nodes_of(kernel, [4, 3, 4])


def planned(policy: Contending, jobs: list[Job], cluster: Cluster = LAB, seed: int = 0, **options: Any) -> Plan:
    POLICIES["mine"] = QueueMapping("mine", lambda seed: uncompiled(policy, seed))
    return plan(Workflow("w", tuple(jobs)), cluster, policy="mine", explain=False, seed=seed, **options)


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        (Pairs(), ("n1", "n0")),
        (Pairs(resource="high_core"), ("n0", "n2")),
        (Pairs(resource="low_power"), ("n0", "n1")),
        (Nodes(), ("n1", "n0")),
        (Nodes(rule="biggest"), ("n0", "n2")),
    ],
)
def test_a_job_of_two_nodes_gets_the_two_best(policy: Contending, nodes: tuple[str, ...]) -> None:
    """Two cores on each node: the fast node, the slow ones, or those with more cores; all draw nothing at first."""
    (found,) = planned(policy, [Job("a", Profile((ThreadGroup(2, 5.0),)), nodes=2)]).jobs
    assert set(found.nodes) == set(nodes)


@pytest.mark.parametrize("policy", [Pairs("random", "random"), Nodes("random", "random")])
def test_random_choices_stay_from_plan_to_plan_and_follow_the_seed(policy: Contending) -> None:
    """What is left of the queue after the first starts is planned as before: no choice is drawn twice."""
    jobs = [Job(f"j{i}", Profile((ThreadGroup(3, 5.0 + i),))) for i in range(9)]
    first, others = planned(policy, jobs), [planned(policy, jobs, seed=seed) for seed in range(1, 6)]
    assert planned(policy, jobs).jobs == first.jobs
    assert any(other.jobs != first.jobs for other in others)
    order = sorted(first.jobs, key=lambda job: job.start_time)
    begun = next(job for job in order if job.start_time > 0.0)
    left = [job for job, one in zip(jobs, first.jobs, strict=True) if one.start_time >= begun.start_time]
    again = planned(policy, left)
    ahead = [job.id for job in order if job.start_time >= begun.start_time]
    assert ahead[0] in [job.id for job in again.jobs if job.start_time == 0.0]


def test_an_unknown_power_is_one_error() -> None:
    bare = replace(LAB, nodes=(Node("n0", replace(SLOW, power=None)),))
    with pytest.raises(PolicyError, match="pairs:resource: the power of this machine is not known"):
        planned(Pairs(resource="low_power"), [Job("a", Profile((ThreadGroup(1, 5.0),)))], bare)
