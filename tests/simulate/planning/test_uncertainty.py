"""Prediction intervals: exact where they can be worked out by hand, and absent where the uncertainty is unknown."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.job import Distribution, Job, Profile, Provenance, ThreadGroup
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.planning import uncertainty
from pilotfish.simulate.planning.planner import POLICIES, plan
from tests.support.instances import circumstances, clusters, fitting, flow, make_cluster, make_job, workflows

MANY = 10**6
SIDE = NormalDist().inv_cdf(0.9)


def known(job: Job, off: float = 0.0, varies: float = 0.1, runs: int = MANY) -> Job:
    """Return the job with a measured profile: its relative error (two deviations), and the scatter of its runs."""
    about = Provenance("measured", runs=runs, interval=(1.0 - off, 1.0 + off), spread=varies)
    return replace(job, profile=replace(job.profile, provenance=about))


def times(made: Plan, name: str) -> tuple[float, float]:
    within = next(job for job in made.jobs if job.id == name).within
    assert within is not None
    return within.earliest, within.latest


def test_the_interval_of_a_job_alone_is_the_quantiles_of_its_runs() -> None:
    made = plan(flow(known(make_job("a", 100.0))), make_cluster(), policy="mom")
    assert times(made, "a") == pytest.approx((100 - 10 * SIDE, 100 + 10 * SIDE), rel=0.01)
    assert made.makespan_within == times(made, "a")


def test_the_share_of_runs_inside_the_interval_is_the_level() -> None:
    low, high = times(plan(flow(known(make_job("a", 100.0))), make_cluster(), policy="mom"), "a")
    inside = NormalDist(100, 10).cdf(high) - NormalDist(100, 10).cdf(low)
    assert inside == pytest.approx(0.8, abs=0.02)


def test_independent_errors_add_as_squares_and_those_of_a_profile_add_up() -> None:
    def half_width(off: float, varies: float) -> float:
        jobs = [known(make_job(f"j{i}", 100.0, 1, *([f"j{i - 1}"] if i else [])), off, varies) for i in range(16)]
        shared = [replace(job, profile=jobs[0].profile) for job in jobs]
        low, high = times(plan(flow(*shared), make_cluster(), policy="mom"), "j15")
        return (high - low) / 2

    assert half_width(0.0, 0.1) == pytest.approx(4 * 10 * SIDE, rel=0.35)
    assert half_width(0.2, 0.0) == pytest.approx(16 * 10 * SIDE, rel=0.02)


def test_a_neighbour_that_may_run_long_widens_the_interval() -> None:
    sure, unsure = known(make_job("a", 100.0), 0.0, 0.0), known(make_job("b", 50.0), 0.0, 0.2)
    cluster = make_cluster(cores=1, limit=2.0)
    low, high = times(plan(flow(sure, unsure), cluster, policy="mom"), "a")
    assert low < 149.0 and high > 151.0


def test_a_job_of_unknown_uncertainty_has_no_interval() -> None:
    jobs = [known(make_job("a", 100.0)), make_job("b", 10.0, 1, "a")]
    made = plan(flow(*jobs), make_cluster(), policy="mom")
    assert times(made, "a")[1] > 105.0
    assert made.jobs[1].within is None and made.makespan_within is None
    once = replace(jobs[0], profile=replace(jobs[0].profile, provenance=Provenance(runs=1, interval=(0.99, 1.01))))
    assert plan(flow(once), make_cluster(), policy="mom").jobs[0].within is None


@pytest.mark.parametrize("cores", [1, 2])
def test_a_job_whose_start_waits_for_a_guess_has_no_interval(cores: int) -> None:
    """A job behind one without a profile was forecast to 1 %; it began 65 s earlier."""
    guess = replace(make_job("a", 60.0), profile=replace(make_job("a", 60.0).profile, provenance=Provenance("default")))
    jobs = [guess, known(make_job("b", 10.0, 1, "a")), known(make_job("c", 1.0, 1)), known(make_job("d", 1.0, 1, "b"))]
    made = plan(flow(*jobs), make_cluster(cores=cores), policy="mom")
    waits = [job.id for job in made.jobs if job.within is None]
    assert {"a", "b", "d"} <= {*waits}
    assert cores == 1 or waits == ["a", "b", "d"]


def test_few_runs_widen_the_interval() -> None:
    widths = [uncertainty._small_sample_factor(runs) for runs in (2, 3, 5, 10, MANY)]
    assert widths == sorted(widths, reverse=True) and widths[-1] == pytest.approx(1.0)
    assert widths[2] == pytest.approx(1.533 / SIDE, rel=0.01)  # Student's 0.9 quantile with 4 degrees of freedom


@pytest.mark.parametrize(
    ("demand", "low", "high"),
    [
        (Distribution("uniform", low=50.0, high=150.0), 60.0, 140.0),
        (Distribution("normal", mean=100.0, cv=0.1), 100 - 10 * SIDE, 100 + 10 * SIDE),
        (Distribution("lognormal", mean=100.0, cv=0.1), 87.5, 113.1),
        (Distribution("empirical", values=(90.0, 100.0, 110.0)), 90.0, 110.0),
    ],
)
def test_a_distribution_gives_the_interval(demand: Distribution, low: float, high: float) -> None:
    made = plan(flow(Job("a", Profile((ThreadGroup(1, demand),)))), make_cluster(), policy="mom")
    assert times(made, "a") == pytest.approx((low, high), rel=0.01)


def test_in_large_plans_only_jobs_that_start_at_once_have_intervals(monkeypatch: Any) -> None:
    monkeypatch.setattr(uncertainty, "ALL_JOBS", 3)
    jobs = [known(make_job(f"j{i}", 100.0, 1, *(["j0"] if i else []))) for i in range(4)]
    made = plan(flow(*jobs), make_cluster(2), policy="mom")
    assert times(made, "j0") == pytest.approx((100 - 10 * SIDE, 100 + 10 * SIDE), rel=0.1)
    assert [job.within for job in made.jobs[1:]] == [None] * 3 and made.makespan_within is None


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(sorted(POLICIES)))
def test_intervals_do_not_change_the_plan(data: Any, policy: str) -> None:
    workflow, cluster = data.draw(fitting(clusters(shared=True), workflows(jobs=7, phased=True, nodes=2), spare=1))
    state = data.draw(st.one_of(st.just({}), circumstances(workflow, cluster)))
    profiles = {id(job.profile): known(job, 0.1, 0.3, 3).profile for job in workflow.jobs}
    measured = replace(workflow, jobs=tuple(replace(job, profile=profiles[id(job.profile)]) for job in workflow.jobs))
    made = plan(measured, cluster, policy=policy, budget=20, **state)
    again = plan(measured, cluster, policy=policy, budget=20, **state)
    blind = plan(workflow, cluster, policy=policy, budget=20, **state)
    assert made == again
    told = [replace(job, within=None) for job in made.jobs]
    assert replace(made, jobs=tuple(told), makespan_within=None) == blind
    for job in made.jobs:
        assert job.within is not None
        assert 0.0 <= job.within.earliest <= job.finish_time <= job.within.latest
        assert 0.0 <= job.within.shortest <= job.finish_time - job.start_time <= job.within.longest
    if made.jobs:
        assert made.makespan_within is not None
        assert made.makespan_within[0] <= made.makespan <= made.makespan_within[1]


@settings(max_examples=30, deadline=None)
@given(st.data(), st.floats(0.1, 10.0))
def test_a_run_scaled_is_the_run_of_scaled_jobs(data: Any, factor: float) -> None:
    from pilotfish.simulate.planning.search_moves import Candidate
    from pilotfish.simulate.planning.simulation import Simulation

    workflow, cluster = data.draw(fitting(clusters(shared=True), workflows(jobs=6, phased=True, nodes=2), spare=1))
    simulation = Simulation(workflow, cluster)
    simulation.run("mom")
    way = Candidate.of(simulation)
    scale = [factor] * len(workflow.jobs)
    simulation.follow(way.places, way.keys, way.wait_for, way.caps, scale=scale)
    finish = simulation.world.jobs["finish"].copy()

    def longer(group: ThreadGroup) -> ThreadGroup:
        return replace(group, service_demand=group.demand * factor)

    jobs = [
        replace(job, profile=replace(job.profile, groups=tuple(map(longer, job.profile.groups))))
        for job in workflow.jobs
    ]
    other = Simulation(replace(workflow, jobs=tuple(jobs)), cluster)
    other.follow(way.places, way.keys, way.wait_for, way.caps)
    assert finish == pytest.approx(other.world.jobs["finish"], rel=1e-6)
