"""The times between which jobs end: exact where that can be told by hand, and never a word where nothing is known."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import circumstances, clusters, fitting, flow, make_cluster, make_job, workflows

from pilotfish.simulate import spread
from pilotfish.simulate.job import Distribution, Job, Profile, Provenance, ThreadGroup
from pilotfish.simulate.plan import Plan
from pilotfish.simulate.planner import POLICIES, plan

MANY = 10**6
SIDE = NormalDist().inv_cdf(0.9)


def known(job: Job, off: float = 0.0, varies: float = 0.1, runs: int = MANY) -> Job:
    """The job, its profile measured: by what it may be off (two deviations), and how its runs differ."""
    about = Provenance("measured", runs=runs, interval=(1.0 - off, 1.0 + off), spread=varies)
    return replace(job, profile=replace(job.profile, provenance=about))


def times(made: Plan, name: str) -> tuple[float, float]:
    within = next(job for job in made.jobs if job.id == name).within
    assert within is not None
    return within.earliest, within.latest


def test_a_job_alone_ends_within_the_quantiles_of_its_runs() -> None:
    made = plan(flow(known(make_job("a", 100.0))), make_cluster(), policy="mom")
    assert times(made, "a") == pytest.approx((100 - 10 * SIDE, 100 + 10 * SIDE), rel=0.01)
    assert made.makespan_within == times(made, "a")


def test_of_runs_that_differ_as_the_profile_says_as_many_end_within_as_the_level_says() -> None:
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


def test_a_job_beside_one_that_may_run_long_may_end_late_too() -> None:
    sure, unsure = known(make_job("a", 100.0), 0.0, 0.0), known(make_job("b", 50.0), 0.0, 0.2)
    cluster = make_cluster(cores=1, limit=2.0)
    low, high = times(plan(flow(sure, unsure), cluster, policy="mom"), "a")
    assert low < 149.0 and high > 151.0


def test_what_is_not_known_with_an_interval_is_told_nothing_of() -> None:
    jobs = [known(make_job("a", 100.0)), make_job("b", 10.0, 1, "a")]
    made = plan(flow(*jobs), make_cluster(), policy="mom")
    assert times(made, "a")[1] > 105.0
    assert made.jobs[1].within is None and made.makespan_within is None
    once = replace(jobs[0], profile=replace(jobs[0].profile, provenance=Provenance(runs=1, interval=(0.99, 1.01))))
    assert plan(flow(once), make_cluster(), policy="mom").jobs[0].within is None


def test_few_runs_tell_less() -> None:
    widths = [spread._few(runs) for runs in (2, 3, 5, 10, MANY)]
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
def test_a_distribution_says_it_itself(demand: Distribution, low: float, high: float) -> None:
    made = plan(flow(Job("a", Profile((ThreadGroup(1, demand),)))), make_cluster(), policy="mom")
    assert times(made, "a") == pytest.approx((low, high), rel=0.01)


def test_of_more_jobs_than_can_be_run_again_those_that_start_at_once_are_told_of(monkeypatch: Any) -> None:
    monkeypatch.setattr(spread, "ALL_JOBS", 3)
    jobs = [known(make_job(f"j{i}", 100.0, 1, *(["j0"] if i else []))) for i in range(4)]
    made = plan(flow(*jobs), make_cluster(2), policy="mom")
    assert times(made, "j0") == pytest.approx((100 - 10 * SIDE, 100 + 10 * SIDE), rel=0.1)
    assert [job.within for job in made.jobs[1:]] == [None] * 3 and made.makespan_within is None


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(POLICIES))
def test_it_is_about_the_plan_and_changes_nothing_in_it(data: Any, policy: str) -> None:
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
    from pilotfish.simulate.engine import Simulation
    from pilotfish.simulate.policies.moves import Candidate

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
