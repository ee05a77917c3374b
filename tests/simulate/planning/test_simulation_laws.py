"""Laws that hold for every run of the engine, under any model."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import InvalidJobError, InvalidJobErrors
from pilotfish.simulate.model.cluster import Cluster, ContendingThreads, Contention, CpuSharing, Node, Power
from pilotfish.simulate.model.job import Job, Profile, Workflow
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.planning.simulation import Outcome, Simulation
from tests.support.instances import (
    PAPER,
    PIECEWISE,
    clusters,
    fitting,
    flow,
    groups,
    make_cluster,
    make_job,
    node_types,
    renamed,
    workflows,
)

SLACK = 1 + 1e-9
policies = st.sampled_from(PAPER)
Instance = tuple[Workflow, Cluster]


def ran(workflow: Workflow, cluster: Cluster, policy: str) -> tuple[Simulation, Outcome]:
    """Draw a simulation after a run."""
    simulation = Simulation(workflow, cluster)
    return simulation, simulation.run(policy)


@settings(max_examples=80, deadline=None)
@given(fitting(clusters(shared=True), workflows(phased=True, nodes=2)), policies)
def test_no_node_holds_more_than_it_may_at_any_moment(instance: Instance, policy: str) -> None:
    workflow, cluster = instance
    simulation, outcome = ran(workflow, cluster, policy)
    for n, node in enumerate(cluster.nodes):
        here = [(i, job) for i, job in enumerate(workflow.jobs) if node.name in simulation.nodes_of(i)]
        for moment in outcome.start[[i for i, _ in here]]:
            residents = [job for i, job in here if outcome.start[i] <= moment < outcome.finish[i]]
            assert sum(job.profile.threads for job in residents) <= cluster.thread_limit(node) * SLACK
            assert sum(max(job.memory, job.profile.memory) for job in residents) <= node.type.memory * SLACK
        assert simulation.world.nodes[n]["alloc"] == simulation.world.nodes[n]["live"] == 0.0
        assert simulation.world.nodes[n]["used"] == pytest.approx(0.0, abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(fitting(clusters(shared=True), workflows(phased=True, nodes=2)), policies)
def test_jobs_start_after_their_predecessors_and_all_end(instance: Instance, policy: str) -> None:
    workflow, cluster = instance
    simulation, outcome = ran(workflow, cluster, policy)
    for i, job in enumerate(workflow.jobs):
        assert len(set(simulation.nodes_of(i))) == job.nodes
        assert 0.0 <= outcome.start[i] < outcome.finish[i] <= outcome.makespan
        for before in job.after:
            assert outcome.start[i] >= outcome.finish[workflow.index[before]]
    assert outcome.makespan == outcome.finish.max()


@settings(max_examples=60, deadline=None)
@given(fitting(clusters(shared=True, remote_access_penalty=1.0), workflows(phased=True, nodes=2)), policies)
def test_work_is_conserved_and_no_capacity_exceeded(instance: Instance, policy: str) -> None:
    """Between events: cores held <= cores, bytes moved <= bandwidth; over the run: integral of rates = work."""
    workflow, cluster = instance
    simulation, _ = ran(workflow, cluster, policy)
    places = [simulation.nodes_of(i) for i in range(len(workflow.jobs))]
    starts = simulation.world.jobs["start"].copy()
    world, got = simulation.world, np.zeros(len(simulation.world.strands))
    simulation.reset()
    simulation.settle()
    pending = sorted(range(len(workflow.jobs)), key=lambda i: starts[i])
    now = 0.0
    while True:
        while pending and starts[pending[0]] <= now + 1e-9:
            job = pending.pop(0)
            simulation.start(workflow.jobs[job].id, places[job])
        check_capacities(simulation)
        then = min(simulation.next_event, starts[pending[0]] if pending else math.inf)
        if math.isinf(then):
            break
        live = live_strands(simulation)
        got[live] += world.strands["rate"][live] * (then - now)
        simulation.advance(then)
        now = then
    for s in set(world.parts["strand"][world.parts["threads"] > 0].tolist()):
        strand = world.strands[s]
        group = world.groups[strand["group"]]
        first, kinds = int(group["phase_start"]), len(world.types)
        work = world.phases["work"].reshape(-1, kinds)[first : first + int(group["phase_count"]), strand["type"]]
        assert got[s] == pytest.approx(work.sum(), rel=1e-6)


def live_strands(simulation: Simulation) -> list[int]:
    """Return the strands linked on some node."""
    world, found = simulation.world, set()
    for node in world.nodes:
        p = int(node["head"])
        while p >= 0:
            found.add(int(world.parts[p]["strand"]))
            p = int(world.parts[p]["next"])
    return sorted(found)


def check_capacities(simulation: Simulation) -> None:
    world = simulation.world
    moved: dict[int, float] = {}
    for node in world.nodes:
        kind = world.types[node["type"]]
        held, p = 0.0, int(node["head"])
        while p >= 0:
            part, strand = world.parts[p], world.strands[world.parts[p]["strand"]]
            row = (world.groups[strand["group"]]["phase_start"] + strand["phase"]) * len(world.types)
            here, there = world.phases[row + node["type"]], world.phases[row + strand["type"]]
            rate = strand["rate"] * here["work"] / there["work"]
            assert 0.0 < rate <= SLACK
            held += part["threads"] * part["core"]
            domain = int(node["domain"])
            moved[domain] = moved.get(domain, 0.0) + part["threads"] * here["utilisation"] * here["bandwidth"] * rate
            if kind["contention"] in (1, 2):
                assert moved[domain] <= kind["bandwidth"] * (1 + 1e-8)
            p = int(part["next"])
        assert held <= kind["cores"] * SLACK
        assert node["busy"] == pytest.approx(held)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_job_is_slowed_while_cores_and_bandwidth_are_free(data: Any) -> None:
    fixed = {"cpu_sharing": CpuSharing.PER_THREAD, "contending_threads": ContendingThreads.RUNNING}
    contention = data.draw(st.sampled_from([Contention.NONE, Contention.MAX_MIN]))
    kind = data.draw(node_types(contention=contention, remote_access_penalty=1.0, **fixed))
    parts = data.draw(st.lists(groups(), min_size=1, max_size=4))
    workflow = flow(Job("j", Profile(tuple(parts))))
    simulation = Simulation(
        workflow, Cluster("lab", (Node("n0", kind),), math.inf), underway=[RunningJob("j", ("n0",))]
    )
    simulation.settle()
    rates = simulation.world.strands["rate"]
    moved = sum(g.count * g.utilisation * g.bandwidth * r for g, r in zip(parts, rates, strict=True))
    full = simulation.world.nodes["busy"][0] >= kind.cores * (1 - 1e-6)
    if kind.contention is Contention.MAX_MIN:
        full = full or moved >= kind.memory_bandwidth * (1 - 1e-6)
    assert full or rates.min() == pytest.approx(1.0)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_another_resident_never_speeds_a_job_up(data: Any) -> None:
    kind = data.draw(node_types(contending_threads=ContendingThreads.ALL))
    jobs = [Job(f"j{i}", Profile((data.draw(groups()),))) for i in range(data.draw(st.integers(2, 6)))]
    residents = [RunningJob(job.id, ("n0",)) for job in jobs[:-1]]
    simulation = Simulation(flow(*jobs), Cluster("lab", (Node("n0", kind),), math.inf), underway=residents)
    simulation.settle()
    before = simulation.world.strands["rate"].copy()
    live = live_strands(simulation)
    simulation.start(jobs[-1].id, ["n0"])
    assert (simulation.world.strands["rate"][live] <= before[live] * SLACK).all()


@settings(max_examples=60, deadline=None)
@given(fitting(clusters(shared=True), workflows(phased=True, nodes=2)), policies)
def test_the_isolated_time_is_the_time_alone(instance: Instance, policy: str) -> None:
    workflow, cluster = instance
    simulation, _ = ran(workflow, cluster, policy)
    for job in workflow.jobs:
        if job.nodes > 1:
            continue
        cls = simulation.world.jobs[workflow.index[job.id]]["cls"]
        for t, kind in enumerate(cluster.types):
            alone = Cluster("alone", (Node("n", kind),), math.inf)
            profile = job.profile
            if profile.measured_on is None and kind != cluster.types[0]:
                continue
            if profile.measured_on not in (None, kind.name) and profile.measured_on in [k.name for k in cluster.types]:
                continue
            expected = Simulation(flow(Job("j", profile)), alone).run("slf").makespan
            assert simulation.isolated[cls, t] == pytest.approx(expected, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(fitting(clusters(shared=True, power=Power(30.0, 6.14, 5.59, idle_uncore=0.05)), workflows(nodes=2)), policies)
def test_job_energies_and_idling_are_the_energy_of_the_nodes(instance: Instance, policy: str) -> None:
    workflow, cluster = instance
    simulation, outcome = ran(workflow, cluster, policy)
    idle = 0.0
    for node in cluster.nodes:
        here = [i for i in range(len(workflow.jobs)) if node.name in simulation.nodes_of(i)]
        spans = sorted((outcome.start[i], outcome.finish[i]) for i in here)
        used, reached = 0.0, 0.0
        for start, finish in spans:
            used += max(0.0, finish - max(start, reached))
            reached = max(reached, finish)
        idle += (30.0 + 5.59 * node.type.sockets * 0.05) * (outcome.makespan - used)
    assert simulation.world.jobs["energy"].sum() + idle == pytest.approx(outcome.energy_j, rel=1e-7)
    assert simulation.world.nodes["energy"].sum() == pytest.approx(outcome.energy_j, rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(fitting(clusters(shared=True), workflows(phased=True, nodes=2)), policies)
def test_pruning_changes_no_decision(instance: Instance, policy: str) -> None:
    workflow, cluster = instance
    simulation, pruned = ran(workflow, cluster, policy)
    nodes = [simulation.nodes_of(i) for i in range(len(workflow.jobs))]
    exact = simulation.run(policy, explain=True)
    assert [simulation.nodes_of(i) for i in range(len(workflow.jobs))] == nodes
    assert exact.finish.tolist() == pruned.finish.tolist()


@settings(max_examples=30, deadline=None)
@given(fitting(clusters(), workflows(phased=True, nodes=2)), policies)
def test_names_of_nodes_and_jobs_do_not_matter(instance: Instance, policy: str) -> None:
    workflow, cluster = instance
    simulation, outcome = ran(workflow, cluster, policy)
    names = {node.name: f"z{9 - i}" for i, node in enumerate(cluster.nodes)}
    other = Simulation(workflow, renamed(cluster, **names))
    assert other.run(policy).finish.tolist() == outcome.finish.tolist()
    for i in range(len(workflow.jobs)):
        assert other.nodes_of(i) == tuple(names[name] for name in simulation.nodes_of(i))


@settings(max_examples=30, deadline=None)
@given(fitting(clusters(shared=True), workflows(phased=True, nodes=2)), policies)
def test_a_run_repeats_itself_bit_for_bit(instance: Instance, policy: str) -> None:
    workflow, cluster = instance
    simulation, first = ran(workflow, cluster, policy)
    simulation.run("slf")
    second, fresh = simulation.run(policy), Simulation(workflow, cluster).run(policy)
    for again in (second, fresh):
        assert (again.start.tolist(), again.finish.tolist()) == (first.start.tolist(), first.finish.tolist())
        assert repr(again.energy_j) == repr(first.energy_j)


# --- sizes and extremes ---
@pytest.mark.parametrize("policy", PAPER)
def test_three_hundred_alike_jobs_end_at_one_instant(policy: str) -> None:
    cluster = make_cluster(4, cores=3, contention=Contention.MAX_MIN, cpu_sharing=CpuSharing.PER_JOB)
    after = make_job("last", 1.0, 1, *(f"j{i}" for i in range(300)))
    simulation = Simulation(flow(*(make_job(f"j{i}", 0.1, b=3e9, u=0.9) for i in range(300)), after), cluster)
    outcome = simulation.run(policy)
    if policy != "loadavg":
        assert len(set(outcome.finish[:300].round(9).tolist())) == 1
        assert [sum(simulation.nodes_of(i) == (f"n{n}",) for i in range(300)) for n in range(4)] == [75] * 4
    assert outcome.start[300] == outcome.finish[:300].max()


@pytest.mark.parametrize("contention", Contention)
@pytest.mark.parametrize("sharing", CpuSharing)
@pytest.mark.parametrize("policy", PAPER)
def test_very_long_and_very_short_jobs_together(contention: Contention, sharing: CpuSharing, policy: str) -> None:
    cluster = make_cluster(2, contention=contention, cpu_sharing=sharing, piecewise=PIECEWISE)
    jobs = [make_job("long", 1e9, b=1e9), *(make_job(f"s{i}", 1e-6, b=12e9, u=0.7) for i in range(5))]
    chain = [make_job(f"late{i}", 1e-6, 1, "long" if i == 0 else f"late{i - 1}") for i in range(5)]
    outcome = Simulation(flow(*jobs, *chain), cluster).run(policy)
    assert (outcome.finish >= outcome.start).all()
    assert outcome.finish[0] == pytest.approx(1e9, rel=1e-6)
    assert (outcome.finish[1:6] < 1.0).all()
    assert (np.diff(outcome.start[6:]) >= 0.0).all()


def test_one_job() -> None:
    outcome = Simulation(flow(make_job("only", 3.0)), make_cluster()).run("mom")
    assert (outcome.makespan, outcome.start.tolist(), outcome.finish.tolist()) == (3.0, [0.0], [3.0])


def test_everything_done() -> None:
    simulation = Simulation(flow(make_job("a"), make_job("b", 1.0, 1, "a")), make_cluster(), done=["a", "b"])
    outcome = simulation.run("mom")
    assert outcome.makespan == 0.0 and np.isnan(outcome.finish).all()


@pytest.mark.parametrize(
    "job, limit, reason",
    [
        (make_job("big", threads=5), 1.0, "5 threads.*largest takes 4"),
        (make_job("fat", memory=101.0), math.inf, "101 bytes.*100 bytes"),
        (make_job("wide", nodes=4), math.inf, "4 nodes.*3"),
    ],
)
def test_a_job_that_can_never_fit_is_named(job: Job, limit: float, reason: str) -> None:
    cluster = make_cluster(3, limit, cores=4)
    with pytest.raises(InvalidJobError, match=f"w: job '{job.id}' can never start on 'lab': .*{reason}"):
        Simulation(flow(make_job("fine"), job), cluster)
    assert Simulation(flow(make_job("fine"), job), cluster, done=[job.id]).run("slf").makespan == 10.0


def test_all_jobs_that_can_never_fit_are_named() -> None:
    jobs = [make_job("fine"), make_job("wide", nodes=4), make_job("big", threads=5)]
    with pytest.raises(InvalidJobErrors) as found:
        Simulation(flow(*jobs), make_cluster(3, cores=4, limit=1.0))
    first, second = map(str, found.value.errors)
    assert "w: job 'wide' can never" in first and "4 nodes" in first and "job 'big'" in second and "5 threads" in second
    assert str(found.value) == f"{first} (and 1 more job)"
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)


@pytest.mark.parametrize("number, last", [(5, "job 'j4' can"), (6, "and 1 more job can"), (7, "and 2 more jobs can")])
def test_of_many_jobs_that_can_never_fit_a_few_are_named(number: int, last: str) -> None:
    with pytest.raises(InvalidJobErrors) as found:
        Simulation(flow(*(make_job(f"j{i}", nodes=4) for i in range(number))), make_cluster(3))
    assert len(found.value.errors) == min(number, 6) and found.value.jobs == number
    assert last in str(found.value.errors[-1]) and str(found.value).endswith(f" (and {number - 1} more jobs)")


def test_unavailable_nodes_do_not_count_as_places_where_it_fits() -> None:
    with pytest.raises(InvalidJobError, match="'wide'"):
        Simulation(flow(make_job("wide", nodes=3)), make_cluster(3), available=["n0", "n2"])


@pytest.mark.parametrize("cores, limit, threads", [(100, 0.29, 29), (10, 1.1, 11), (3, 1.0, 3), (7, 1 / 7, 1)])
def test_a_limit_in_threads_per_core_is_meant_in_decimal(cores: int, limit: float, threads: int) -> None:
    """0.29 * 100 is slightly less than 29 in binary; 29 threads fit nevertheless, and 30 do not."""
    cluster = make_cluster(1, limit, cores=cores)
    assert Simulation(flow(make_job("j", 1.0, threads)), cluster).run("mom").finish[0] > 0.0
    with pytest.raises(InvalidJobError):
        Simulation(flow(make_job("j", 1.0, threads + 1)), cluster)
