"""The fluid engine against DESiDE's interval simulation where they agree; that against published numbers elsewhere."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import (
    Cluster,
    ContendingThreads,
    Contention,
    CpuSharing,
    Node,
    NodeType,
    Power,
)
from pilotfish.simulate.model.job import Job, Phase, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.simulation import Simulation
from tests.reference.deside_intervals import Intervals

MODELS = [Contention.NONE, Contention.EQUAL_SHARE, Contention.MAX_MIN]


def node_type(cores: int = 4, **options: object) -> NodeType:
    given: dict[str, object] = {
        "contention": Contention.NONE,
        "cpu_sharing": CpuSharing.PER_THREAD,
        "power": Power(50.0, 3.0, 5.0),
    }
    return NodeType(f"t{cores}", cores, 64e9, 40e9, **{**given, **options})


def cluster(*kinds: NodeType, oversubscription: float = math.inf) -> Cluster:
    nodes = tuple(Node(f"n{i}", kind) for i, kind in enumerate(kinds))
    return Cluster("lab", nodes, oversubscription=oversubscription)


def threads(count: int, demand: float, u: float = 1.0, std: float = 0.3, bandwidth: float = 0.0) -> Profile:
    return Profile((ThreadGroup(count, demand, u, std, bandwidth),))


def in_intervals(simulation: Simulation, seed: int = 0) -> Intervals:
    """Run the mapping of a simulation that has run, in its order of starts."""
    jobs, start = simulation.workflow.jobs, simulation.world.jobs["start"]
    nodes = {job.id: simulation.nodes_of(i)[0] for i, job in enumerate(jobs)}
    order = [jobs[i].id for i in start.argsort(kind="stable")]
    return Intervals(simulation.workflow, simulation.cluster, nodes, order=order, seed=seed)


def on_one_node(kind: NodeType, *profiles: Profile, seed: int = 0) -> list[float]:
    """Return the finish times of jobs that start together on one node."""
    jobs = tuple(Job(f"j{i}", profile) for i, profile in enumerate(profiles))
    nodes = dict.fromkeys((job.id for job in jobs), "n0")
    return Intervals(Workflow("w", jobs), cluster(kind), nodes, seed=seed).finish


@pytest.mark.long
@pytest.mark.parametrize(
    ("sharing", "cores", "groups", "alone", "published"),
    [
        *((sharing, 1, [(1, 0.5), (1, 0.5)], 500.0, 1.25) for sharing in CpuSharing),
        *((sharing, 1, [(1, 0.5), (1, 1.0)], 500.0, 1.50) for sharing in CpuSharing),
        (CpuSharing.PER_THREAD, 4, [(8, 0.5)], 500.0, 1.12),
        (CpuSharing.PER_JOB, 56, [(80, 0.7)], 100.0, 1.03),
        (CpuSharing.PER_THREAD, 56, [(112, 0.6)], 100.0, 1.20),
    ],
)
def test_slowdowns_as_published(
    sharing: CpuSharing, cores: int, groups: list[tuple[int, float]], alone: float, published: float
) -> None:
    profiles = [threads(count, alone * u, u) for count, u in groups]
    finish = on_one_node(node_type(cores, cpu_sharing=sharing), *profiles)[0]
    assert finish / alone == pytest.approx(published, abs=0.0101)


group = st.builds(
    ThreadGroup,
    count=st.integers(1, 3),
    service_demand=st.floats(0.5, 3.0),
    utilisation_std=st.sampled_from([0.0, 0.3, 1.0]),
    bandwidth=st.floats(0.0, 15e9),
    phases=st.sampled_from([(), (Phase(0.4, 1.0, 1e9), Phase(0.6, 1.0, 14e9))]),
)
profile = st.builds(lambda *groups: Profile(groups), group, group)


@settings(max_examples=50, deadline=None)
@given(
    profiles=st.lists(profile, min_size=1, max_size=8),
    edges=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))),
    contention=st.sampled_from(MODELS),
    contending=st.sampled_from(ContendingThreads),
    sharing=st.sampled_from(CpuSharing),
    oversubscription=st.sampled_from([1.5, math.inf]),
    policy=st.sampled_from(["slf", "let", "mom", "loadavg"]),
)
def test_cpu_bound_threads_run_as_in_the_fluid_engine(
    profiles: list[Profile],
    edges: set[tuple[int, int]],
    contention: Contention,
    contending: ContendingThreads,
    sharing: CpuSharing,
    oversubscription: float,
    policy: str,
) -> None:
    jobs = tuple(
        Job(f"j{i}", profile, tuple(f"j{a}" for a, b in edges if b == i and a < i))
        for i, profile in enumerate(profiles)
    )
    kinds = [
        node_type(
            cores,
            contention=contention,
            contending_threads=contending,
            cpu_sharing=sharing,
            remote_access_penalty=1.6,
            frequency=frequency,
        )
        for cores, frequency in ((4, 1e9), (6, 2e9))
    ]
    simulation = Simulation(Workflow("w", jobs), cluster(*kinds, oversubscription=oversubscription))
    fluid = simulation.run(policy)
    interval = in_intervals(simulation, seed=1)
    scale = 1e-9 * fluid.makespan
    assert interval.makespan == pytest.approx(fluid.makespan, rel=1e-9)
    assert interval.energy_j == pytest.approx(fluid.energy_j, rel=1e-9)
    assert interval.start == pytest.approx(fluid.start, abs=scale)
    assert interval.finish == pytest.approx(fluid.finish, abs=scale)
    assert interval.job_energy == pytest.approx(simulation.world.jobs["energy"], rel=1e-9)


@pytest.mark.parametrize("contention", MODELS)
@pytest.mark.parametrize(("count", "utilisation"), [(50, 0.9), (64, 0.7), (90, 0.5), (120, 0.8)])
def test_many_threads_run_nearly_as_in_the_fluid_engine(contention: Contention, count: int, utilisation: float) -> None:
    kind = node_type(48, contention=contention, contending_threads=ContendingThreads.ALL)
    job = Job("j", threads(count, 20.0 * utilisation, utilisation, bandwidth=1e9))
    fluid = Simulation(Workflow("w", (job,)), cluster(kind)).run("slf")
    assert on_one_node(kind, job.profile)[0] == pytest.approx(fluid.makespan, rel=0.05)


def test_a_sleeper_alone_takes_its_isolated_time() -> None:
    assert on_one_node(node_type(1), threads(1, 100.0, 0.5, 0.0))[0] == pytest.approx(200.0 - 0.05)


def test_threads_without_jitter_stay_in_step() -> None:
    finish = on_one_node(node_type(1), threads(2, 100.0, 0.5, 0.0))[0]
    assert finish == pytest.approx(300.0 - 0.05, abs=1e-6)


def test_running_threads_contend_only_while_on_a_core() -> None:
    profile = threads(40, 20.0, 0.5, bandwidth=2e9)
    times = [
        on_one_node(node_type(48, contention=Contention.MAX_MIN, contending_threads=which), profile)[0]
        for which in (ContendingThreads.RUNNING, ContendingThreads.ALL)
    ]
    assert 40.0 < times[0] < times[1] == pytest.approx(60.0, rel=0.01)


def test_same_seed_same_result_and_another_seed_another() -> None:
    profiles = [threads(3, 30.0, 0.6), threads(4, 20.0, 0.4, bandwidth=8e9)]
    kind = node_type(4, contention=Contention.MAX_MIN)
    first, again, other = (on_one_node(kind, *profiles, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_dag_order_and_energy() -> None:
    jobs = (
        Job("c", threads(2, 5.0, 0.7), after=("a", "b")),
        Job("a", threads(1, 9.0, 0.8)),
        Job("b", threads(1, 4.0, 0.8), after=("a",)),
    )
    simulation = Simulation(Workflow("w", jobs), cluster(node_type(2)))
    simulation.run("mom")
    run = in_intervals(simulation, 3)
    start, finish = dict(zip("cab", run.start, strict=True)), dict(zip("cab", run.finish, strict=True))
    assert (start["a"], start["b"], start["c"]) == (0.0, finish["a"], finish["b"])
    assert run.makespan == finish["c"]
    core_seconds = 9.0 + 4.0 + 2 * 5.0
    assert run.energy_j == pytest.approx(55.0 * run.makespan + 3.0 * core_seconds, rel=1e-9)
    assert sum(run.job_energy) < run.energy_j


def test_full_node_holds_back_and_order_decides() -> None:
    jobs = tuple(Job(name, threads(2, 10.0)) for name in "xyz")
    workflow, lab = Workflow("w", jobs), cluster(node_type(2), oversubscription=1.0)
    nodes = dict.fromkeys("xyz", "n0")
    plain, turned = Intervals(workflow, lab, nodes), Intervals(workflow, lab, nodes, order=["z", "y", "x"])
    assert plain.start == pytest.approx([0.0, 10.0, 20.0])
    assert turned.start == pytest.approx([20.0, 10.0, 0.0])


def test_underway_and_done() -> None:
    phases = (Phase(0.5, 1.0, 0.0), Phase(0.5, 0.5, 0.0))
    jobs = (
        Job("old", Profile((ThreadGroup(1, 30.0, phases=phases),))),
        Job("past", threads(1, 10.0)),
        Job("new", threads(1, 10.0), after=("past", "old")),
    )
    underway = [RunningJob("old", ("n0",), 0.75)]
    run = Intervals(Workflow("w", jobs), cluster(node_type(1)), {"new": "n0"}, underway=underway, done=["past"])
    assert run.finish[0] == pytest.approx(10.0, abs=0.06)
    assert run.start[2] == run.finish[0]
    assert math.isnan(run.start[1])


def test_jitter_makes_plans_last_longer_than_they_fluidly_do() -> None:
    jobs = tuple(Job(f"j{i}", threads(4, 10.0 + i, 0.5)) for i in range(6))
    flow, lab = Workflow("w", jobs), cluster(node_type(4), node_type(4))
    for policy in ("mom", "lookahead"):
        fluid = plan(flow, lab, policy=policy, budget=200)
        nodes = {job.id: job.nodes[0] for job in fluid.jobs}
        order = [job.id for job in sorted(fluid.jobs, key=lambda job: job.start_time)]
        run = Intervals(flow, lab, nodes, order=order)
        assert 1.01 * fluid.makespan < run.makespan == max(run.finish)
        assert fluid.lower_bound <= run.makespan
