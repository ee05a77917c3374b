"""The lower bound lies below every plan, from the beginning and from the middle, and is tight where it should be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Contention
from pilotfish.simulate.model.job import Job, Phase, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.planning.bounds import bottom_levels, lower_bound, topological
from pilotfish.simulate.planning.simulation import Simulation
from tests.support.instances import PAPER, circumstances, clusters, fitting, flow, make_cluster, make_job, workflows


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_plan_is_faster_than_the_bound(data: Any) -> None:
    workflow, cluster = data.draw(fitting(clusters(shared=True), workflows(phased=True, nodes=2, kinds=2), spare=1))
    state = data.draw(st.one_of(st.just({}), circumstances(workflow, cluster)))
    simulation = Simulation(workflow, cluster, **state)
    bound = lower_bound(simulation)
    for policy in PAPER:
        assert simulation.run(policy).makespan >= bound * (1 - 1e-9), policy


def bound(workflow: Workflow, *arguments: Any, **state: Any) -> float:
    return lower_bound(Simulation(workflow, make_cluster(*arguments), **state))


def test_a_chain_is_a_bound() -> None:
    jobs = [make_job("a", 3.0), make_job("b", 4.0, 1, "a"), make_job("c", 5.0, 1, "b"), make_job("d", 1.0)]
    assert bound(flow(*jobs), 9) == pytest.approx(12.0)


def test_core_seconds_are_a_bound() -> None:
    assert bound(flow(*(make_job(f"j{i}", 6.0) for i in range(4))), 2) == pytest.approx(12.0)


def test_threads_held_are_a_bound_under_a_limit() -> None:
    jobs = [make_job(f"j{i}", 1.0, u=0.1) for i in range(4)]
    assert bound(flow(*jobs), 2) == pytest.approx(10.0)
    assert bound(flow(*jobs), 2, 1.0) == pytest.approx(20.0)


def test_bytes_are_a_bound_where_the_model_limits_them() -> None:
    jobs = flow(*(make_job(f"j{i}", 1.0, b=10e9) for i in range(4)))
    fields = {"cores": 4, "memory_bandwidth": 10e9}
    for contention, seconds in [(Contention.NONE, 1.0), (Contention.MAX_MIN, 4.0), (Contention.EQUAL_SHARE, 4.0)]:
        assert lower_bound(Simulation(jobs, make_cluster(1, contention=contention, **fields))) == pytest.approx(seconds)


def test_jobs_before_and_after_all_others_add_up() -> None:
    middle = [make_job(f"m{i}", 6.0, 1, "first") for i in range(4)]
    jobs = [make_job("first", 5.0), *middle, make_job("last", 7.0, 1, *(j.id for j in middle))]
    assert bound(flow(*jobs), 2) == pytest.approx(5.0 + 12.0 + 7.0)


def test_done_jobs_need_no_time() -> None:
    jobs = flow(make_job("a", 3.0), make_job("b", 4.0, 1, "a"), make_job("c", 2.0))
    assert bound(jobs, 2, done=["a"]) == pytest.approx(4.0)
    assert bound(jobs, 2, done=["a"], underway=[RunningJob("b", ("n0",), 0.75)]) == pytest.approx(2.0)
    assert bound(jobs, 2, done=["a", "b", "c"]) == 0.0


def test_a_job_on_a_drained_node_uses_that_node_s_cores() -> None:
    """n1 takes no new jobs, but its running job continues: both end after 100 s."""
    workflow, state = flow(make_job("old", 100.0), make_job("new", 100.0)), [RunningJob("old", ("n1",))]
    simulation = Simulation(workflow, make_cluster(2), underway=state, available=["n0"])
    assert simulation.run("mom").makespan == pytest.approx(100.0)
    assert bound(workflow, 2, underway=state, available=["n0"]) == pytest.approx(100.0)


def test_jobs_that_were_placed_under_another_limit() -> None:
    """Three sleepers share a node that now takes one thread: they end together."""
    names = ("a", "b", "c")
    workflow, state = flow(*(make_job(n, 1.0, u=0.01) for n in names)), [RunningJob(n, ("n0",)) for n in names]
    outcome = Simulation(workflow, make_cluster(1, 1.0), underway=state).run("mom")
    assert bound(workflow, 1, 1.0, underway=state) <= outcome.makespan * (1 + 1e-9)


def test_progress_in_a_busy_first_phase() -> None:
    """Half of the work is done, and that was the busy half."""
    phases = (Phase(0.5, 1.0, 0.0), Phase(0.5, 0.1, 0.0))
    profile = Profile((ThreadGroup(4, 55.0, phases=phases),))
    workflow, state = Workflow("w", (Job("j", profile),)), [RunningJob("j", ("n0",), 0.5)]
    outcome = Simulation(workflow, make_cluster(), underway=state).run("mom")
    assert outcome.makespan == pytest.approx(50.0)
    assert bound(workflow, underway=state) <= 50.0 * (1 + 1e-9)


@settings(max_examples=50, deadline=None)
@given(workflows(jobs=12))
def test_topological_order_and_bottom_levels(workflow: Workflow) -> None:
    simulation = Simulation(workflow, make_cluster(2, math.inf, cores=9))  # a core for each thread of a job
    order = topological(simulation)
    assert sorted(order) == list(range(len(workflow.jobs)))
    levels = bottom_levels(simulation)
    for i, job in enumerate(workflow.jobs):
        time = job.profile.isolated_time
        after = [levels[k] for k, other in enumerate(workflow.jobs) if job.id in other.after]
        assert levels[i] == pytest.approx(time + max(after, default=0.0))
        assert all(order.index(workflow.index[name]) < order.index(i) for name in job.after)
    assert np.isfinite(levels).all()
