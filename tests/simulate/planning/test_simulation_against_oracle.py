"""The engine makes the same decisions as the plain simulation, at the same times, with the same energy."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import InvalidJobError
from pilotfish.simulate.model.cluster import Cluster, ContendingThreads, Contention
from pilotfish.simulate.model.job import Workflow
from pilotfish.simulate.planning.simulation import Simulation
from tests.reference.fluid_oracle import Oracle
from tests.support.instances import PAPER, circumstances, clusters, flow, make_cluster, make_job, workflows

RELATIVE = 1e-6


def compare(workflow: Workflow, cluster: Cluster, policy: str, **moment: Any) -> None:
    """Assert the same nodes, times and energies, or the same refusal."""
    oracle = Oracle(workflow, cluster, **moment)
    misfit = oracle.never_fits()
    if misfit is not None:
        with pytest.raises(InvalidJobError, match=repr(misfit)):
            Simulation(workflow, cluster, **moment)
        return
    simulation = Simulation(workflow, cluster, **moment)
    outcome = simulation.run(policy)
    chosen = {
        i: tuple(cluster.index[name] for name in simulation.nodes_of(i))
        for i, job in enumerate(workflow.jobs)
        if job.id not in moment.get("done", ())
    }
    state = oracle.run(policy, chosen, tolerance=1e-7)
    assert outcome.makespan == pytest.approx(state.t, rel=RELATIVE)
    for i in chosen:
        assert tuple(sorted(chosen[i])) == tuple(sorted(state.where[i])), workflow.jobs[i].id
        assert outcome.start[i] == pytest.approx(state.start[i], rel=RELATIVE, abs=1e-9), workflow.jobs[i].id
        assert outcome.finish[i] == pytest.approx(state.finish[i], rel=RELATIVE), workflow.jobs[i].id
    loads = [state.load_average.get(n, 0.0) for n in range(len(cluster.nodes))]
    assert simulation.world.nodes["load"].tolist() == pytest.approx(loads, rel=RELATIVE, abs=1e-9)
    if any(kind.power is None for kind in cluster.types):
        assert math.isnan(outcome.energy_j)
        return
    assert outcome.energy_j == pytest.approx(sum(state.node_energy.values()), rel=RELATIVE, abs=1e-9)
    for n, energy in state.node_energy.items():
        assert simulation.world.nodes["energy"][n] == pytest.approx(energy, rel=RELATIVE, abs=1e-9)
    for i in chosen:
        mine = state.job_energy.get(i, 0.0)
        assert simulation.world.jobs["energy"][i] == pytest.approx(mine, rel=RELATIVE, abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from(PAPER))
def test_one_node_jobs_under_the_models_without_coupling(data: Any, policy: str) -> None:
    contention = data.draw(st.sampled_from([Contention.NONE, Contention.EQUAL_SHARE]))
    cluster = data.draw(clusters(contention=contention))
    compare(data.draw(workflows(jobs=12, kinds=2)), cluster, policy)


@settings(max_examples=80, deadline=None)
@given(clusters(), workflows(jobs=12, phased=True, kinds=2), st.sampled_from(PAPER))
def test_one_node_jobs_under_every_model_with_phases(cluster: Cluster, workflow: Workflow, policy: str) -> None:
    compare(workflow, cluster, policy)


@settings(max_examples=60, deadline=None)
@given(clusters(nodes=3, shared=True), workflows(jobs=6), st.sampled_from(PAPER))
def test_nodes_that_share_a_memory(cluster: Cluster, workflow: Workflow, policy: str) -> None:
    compare(workflow, cluster, policy)


# Several groups of a job on several nodes can have several equilibria (rarely): the same instances every time.
@settings(max_examples=100, deadline=None, derandomize=True)
@given(clusters(nodes=3, remote_access_penalty=1.0), workflows(jobs=6, nodes=2), st.sampled_from(PAPER))
def test_jobs_on_several_nodes(cluster: Cluster, workflow: Workflow, policy: str) -> None:
    compare(workflow, cluster, policy)


@settings(max_examples=60, deadline=None)
@given(st.data(), clusters(nodes=3), workflows(jobs=7, phased=True), st.sampled_from(PAPER))
def test_from_the_middle_of_a_run(data: Any, cluster: Cluster, workflow: Workflow, policy: str) -> None:
    compare(workflow, cluster, policy, **data.draw(circumstances(workflow, cluster)))


@pytest.mark.parametrize("policy", ["let", "mom"])
@pytest.mark.parametrize("contention", [Contention.EQUAL_SHARE, Contention.MAX_MIN])
def test_more_shapes_of_jobs_than_the_score_cache_has_rows(contention: Contention, policy: str) -> None:
    """Forty jobs that all differ, many offered at one instant and again at the next."""
    chance = random.Random(7)
    jobs = []
    for i in range(40):
        before = [f"j{chance.randrange(i)}"] if i > 8 and i % 3 else []
        numbers = chance.uniform(1.0, 20.0), chance.randint(1, 3), chance.uniform(0.3, 1.0), chance.uniform(0.0, 5e9)
        jobs.append(make_job(f"j{i}", numbers[0], numbers[1], *before, u=numbers[2], b=numbers[3]))
    threads = ContendingThreads.ALL if contention is Contention.EQUAL_SHARE else ContendingThreads.RUNNING
    cluster = make_cluster(4, 2.0, cores=4, contention=contention, contending_threads=threads)
    compare(flow(*jobs), cluster, policy)
