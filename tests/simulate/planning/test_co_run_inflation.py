"""Measured co-run pairs: the cost of neighbours beyond bandwidth, against plain Python and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import InvariantError
from pilotfish.simulate.model.cluster import Cluster, CoRun, Node
from pilotfish.simulate.model.job import Job, Workflow
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.planning.bounds import lower_bound
from pilotfish.simulate.planning.simulation import Simulation
from tests.simulate.planning.test_simulation_against_oracle import compare
from tests.support.instances import PAPER, clusters, flow, make_cluster, make_job, make_type, workflows

NAMES = ("stream", "sort", "align", "")


@st.composite
def measured(draw: Any, **options: Any) -> tuple[Workflow, Cluster]:
    """Draw an instance whose profiles have names, on types of which some have measured pairs."""
    nodes = options.pop("nodes", 1)
    workflow = draw(workflows(jobs=8, nodes=nodes, phased=nodes == 1))
    profiles = {id(job.profile): job.profile for job in workflow.jobs}
    named = {key: replace(profile, name=draw(st.sampled_from(NAMES))) for key, profile in profiles.items()}
    jobs = tuple(replace(job, profile=named[id(job.profile)]) for job in workflow.jobs)
    cluster = draw(clusters(nodes=3, **options))
    kinds = {}
    for kind in cluster.types:
        pairs = draw(st.lists(st.tuples(*[st.sampled_from(NAMES[:3])] * 2), unique=True, max_size=5))
        factors = [CoRun(a, b, draw(st.sampled_from([1.0, 1.09, 1.35, 3.0]))) for a, b in pairs]
        kinds[kind.name] = replace(kind, co_run_inflation=tuple(factors))
    members = tuple(replace(node, type=kinds[node.type.name]) for node in cluster.nodes)
    return replace(workflow, jobs=jobs), replace(cluster, nodes=members)


@settings(max_examples=120, deadline=None)
@given(measured(), st.sampled_from(PAPER))
def test_as_in_plain_python(instance: tuple[Workflow, Cluster], policy: str) -> None:
    compare(*instance, policy)


@settings(max_examples=60, deadline=None)
@given(measured(shared=True), st.sampled_from(PAPER))
def test_neighbours_on_another_node_of_the_same_memory_count(instance: tuple[Workflow, Cluster], policy: str) -> None:
    compare(*instance, policy)


# As for jobs on several nodes without pairs: there can be several equilibria (rarely).
@settings(max_examples=60, deadline=None, derandomize=True)
@given(measured(nodes=2, remote_access_penalty=1.0), st.sampled_from(PAPER))
def test_jobs_on_several_nodes(instance: tuple[Workflow, Cluster], policy: str) -> None:
    compare(*instance, policy)


@settings(max_examples=60, deadline=None)
@given(measured(shared=True), st.sampled_from(PAPER))
def test_the_lower_bound_holds_without_pairs(instance: tuple[Workflow, Cluster], policy: str) -> None:
    workflow, cluster = instance
    widest = max(job.profile.threads for job in workflow.jobs)
    cluster = replace(cluster, oversubscription=max(cluster.oversubscription, float(widest)))
    plain = {kind.name: replace(kind, co_run_inflation=()) for kind in cluster.types}
    without = replace(cluster, nodes=tuple(replace(node, type=plain[node.type.name]) for node in cluster.nodes))
    simulation = Simulation(workflow, cluster)
    bound = lower_bound(simulation)
    assert bound == lower_bound(Simulation(workflow, without))
    assert simulation.run(policy).makespan >= bound * (1 - 1e-9)


def job_of(name: str, profile: str, *after: str, **options: Any) -> Job:
    """Return a job of one thread that takes 10 s alone."""
    job = make_job(name, 10.0, 1, *after, **options)
    return replace(job, profile=replace(job.profile, name=profile))


PAIRS = (CoRun("align", "stream", 1.25), CoRun("align", "align", 1.5), CoRun("stream", "align", 1.0))


def ends(*jobs: Job, **fields: Any) -> list[float]:
    """Return when jobs end that all run on one node of eight cores."""
    cluster = make_cluster(1, cores=8, co_run_inflation=PAIRS, **fields)
    finish: list[float] = Simulation(flow(*jobs), cluster).run("let").finish.tolist()
    return finish


def test_a_pair_is_slowed_by_its_factor_while_both_run() -> None:
    assert ends(job_of("a", "align"), job_of("s", "stream")) == pytest.approx([12.0, 10.0])  # 8 s of work in 10 s
    assert ends(job_of("a", "align"), job_of("x", "unheard-of")) == pytest.approx([10.0, 10.0])
    assert ends(job_of("a", "align")) == pytest.approx([10.0])


def test_two_of_one_profile_are_a_pair_and_excesses_add_up() -> None:
    assert ends(job_of("a", "align"), job_of("b", "align")) == pytest.approx([15.0, 15.0])
    # 1 + 0.5 + 0.25 next to both; the stream ends at 10 s, 10 / 1.75 s of work are done.
    left = 10.0 - 10.0 / 1.75
    both = [10.0 + 1.5 * left] * 2
    assert ends(job_of("a", "align"), job_of("b", "align"), job_of("s", "stream")) == pytest.approx([*both, 10.0])


def test_only_time_on_a_core_is_inflated() -> None:
    """u = 0.5: 10 s on a core grow by a quarter while the stream runs, 10 s asleep do not."""
    left = 1.0 - 10.0 / 22.5
    assert ends(job_of("a", "align", u=0.5), job_of("s", "stream")) == pytest.approx([10.0 + left * 20.0, 10.0])


def test_a_job_is_not_its_own_neighbour() -> None:
    """Several thread groups, or several nodes of one memory, are still one job."""
    job = job_of("a", "align")
    twice = replace(job, profile=replace(job.profile, groups=job.profile.groups * 2))
    assert ends(twice) == pytest.approx([10.0])
    kind = make_type(8, co_run_inflation=PAIRS)
    shared = Cluster("lab", (Node("n0", kind, "host"), Node("n1", kind, "host")), 1.0)
    assert Simulation(flow(replace(twice, nodes=2)), shared).run("let").makespan == pytest.approx(10.0)
    both = flow(replace(twice, nodes=2), job_of("s", "stream"))
    assert Simulation(both, shared).run("let").finish.tolist() == pytest.approx([12.0, 10.0])


def test_a_decision_uses_the_factors() -> None:
    """Two free cores: next to the stream the job would take longer."""
    cluster = make_cluster(2, cores=2, co_run_inflation=PAIRS)
    workflow = flow(job_of("s", "stream"), job_of("x", "sort"), job_of("a", "align"))
    simulation = Simulation(workflow, cluster, underway=[RunningJob("s", ("n0",)), RunningJob("x", ("n1",))])
    simulation.settle()
    assert simulation.forecast("a", ["n0"]) == pytest.approx(12.0)
    assert simulation.decide("a", "let") == ("n1",)


def test_a_factor_below_1_is_refused() -> None:
    cluster = make_cluster(1, co_run_inflation=(CoRun("a", "b", 0.9),))
    with pytest.raises(InvariantError, match=r"'a' next to 'b' is 0\.9, below 1"):
        Simulation(flow(make_job("j")), cluster)
