"""A workflow that makes planning fail is found and set aside; all others are planned and run to their end."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.cli.output.status import show_status
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.planning.isolation import _without
from pilotfish.daemon.planning.problem import Problem
from pilotfish.daemon.state.codec import decode, encode
from pilotfish.simulate.errors import PilotfishError
from pilotfish.simulate.model.capacity import never_fits
from pilotfish.simulate.model.job import Distribution, Job, Phase, Profile, Provenance, ThreadGroup, Workflow
from tests.daemon.conftest import Bench, Manager, first_fit, make_cluster, make_job, requests_of


def failing(*pairs, planner=first_fit):
    """Return a planner that fails on problems with all jobs of one of `pairs`, each a set of names."""

    def plan(problem, cluster, options):
        here = {job.id.partition("/")[2] for job in problem.workflow.jobs if job.profile.name != "default"}
        here -= {job.id.partition("/")[2] for job in problem.workflow.jobs if job.profile.groups[0].demand == 60.0}
        if bad := next((pair for pair in pairs if pair <= here), None):
            raise IndexError(f"no room for {sorted(bad)}")
        return planner(problem, cluster, options)

    return plan


def test_the_culprit_waits_with_the_reason_and_the_others_run(bench):
    bench.planner = failing({"bad"})
    bench.restart()
    first, bad = (
        bench.submit(make_job("a"), make_job("b", "a")),
        bench.submit(make_job("bad"), make_job("after", "bad")),
    )
    last = bench.submit(make_job("z"))
    bench.run(40)
    assert bench.states(first) == {"a": "completed", "b": "completed"} and bench.states(last) == {"z": "completed"}
    assert bench.states(bad) == {"bad": "pending", "after": "pending"}
    tracker = bench.cycle.tracker
    assert bench.cycle.planner.isolation.reasons == {bad: "planning fails with it: IndexError: no room for ['bad']"}
    assert tracker.stuck[f"{bad}/bad"] == tracker.stuck[f"{bad}/after"] == bench.cycle.planner.isolation.reasons[bad]
    assert bench.value("workflows_set_aside") == 1
    (report,) = bench.run()
    assert report.trouble == "1 workflow set aside, because planning fails with it; see the log"


def test_it_is_found_again_after_a_restart_and_can_be_cancelled(bench):
    bench.planner = failing({"bad"})
    bench.restart()
    bad = bench.submit(make_job("bad"))
    bench.run(2)
    bench.restart()
    good = bench.submit(make_job("z"))
    bench.run(15)
    assert bench.states(good) == {"z": "completed"} and set(bench.cycle.planner.isolation.reasons) == {bad}
    bench.cycle.tracker.cancel(list(bench.cycle.tracker.queue.submissions[bad].entries.values()))
    (report,) = bench.run()
    assert bench.states(bad) == {"bad": "cancelled"} and not report.trouble and not bench.value("workflows_set_aside")


def test_a_running_job_that_makes_planning_fail_keeps_its_node(bench):
    bad = bench.submit(make_job("bad", seconds=30.0, threads=2))
    bench.run()
    bench.cycle.planner.make_plan = failing({"bad"})
    good = bench.submit(make_job("z", threads=2), make_job("y", threads=2))
    bench.run(5)
    assert set(bench.cycle.planner.isolation.reasons) == {bad} and bench.states(bad) == {"bad": "running"}
    assert sorted(bench.states(good).values()) == ["pending", "running"]  # the other node is taken
    bench.run(60)
    assert set(bench.states(good).values()) == {"completed"} and bench.states(bad) == {"bad": "completed"}
    assert bench.cycle.planner.isolation.reasons == {}


def test_a_policy_that_always_fails_sets_nothing_aside_and_is_reported(bench, caplog):
    def broken(problem, cluster, options):
        raise IndexError("whatever is planned")

    bench.planner = broken
    bench.restart()
    bench.submit(make_job("a"))
    bench.submit(make_job("b"))
    (*_, report) = bench.run(10)
    assert not bench.cycle.planner.isolation.reasons and "no policy can make a plan" in report.trouble
    assert sum("policy slf failed" in record.message for record in caplog.records) == 1
    bench.cycle.planner.make_plan = first_fit
    (*_, report) = bench.run(70)
    assert not report.trouble


@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8),
    st.lists(st.frozensets(st.sampled_from("abcdef"), min_size=1, max_size=2), max_size=3),
    st.integers(0, 8),
)
@settings(max_examples=40, deadline=None)
def test_whatever_combination_makes_planning_fail_the_rest_completes(names, pairs, restart_at):
    """Workflows of one job each; a set of names fails. What is not set aside ends, and no more is set aside than needed."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "j.sqlite", Manager(make_cluster()), failing(*pairs))
        ids = []
        for i, name in enumerate(names):
            if i == restart_at:
                bench.restart()
            ids.append(bench.submit(make_job(name)))
            bench.run()
        bench.run(80)
        aside = set(bench.cycle.planner.isolation.reasons)
        for id, name in zip(ids, names, strict=True):
            fails = any(name in pair for pair in pairs)
            assert bench.states(id) == {name: "completed"} or (fails and id in aside), (id, name)
            if frozenset({name}) in pairs:
                assert bench.states(id) == {name: "pending"}
        bench.kill()


extremes = st.sampled_from([0.0, 5e-324, 1e-300, 1e-12, 1e-9, 1e-6, 1e-3, 0.3, 1.0, 60.0, 1e6, 1e9, 1e12, 1e15, 1e18])
numbers = extremes | st.floats(0, 1e18, allow_nan=False) | st.sampled_from([1.0, 10.0])
demands = st.one_of(
    numbers,
    st.builds(
        Distribution,
        st.sampled_from(["lognormal", "normal", "uniform", "empirical", "foo"]),
        mean=numbers,
        cv=numbers,
        low=numbers,
        high=numbers,
        values=st.lists(numbers, max_size=3).map(tuple),
    ),
    st.builds(Distribution, st.sampled_from(["lognormal", "normal"]), mean=numbers, cv=st.floats(0, 100)),
    st.builds(Distribution, st.just("uniform"), low=st.floats(0, 10), high=numbers),
    st.builds(Distribution, st.just("empirical"), values=st.lists(numbers, min_size=1, max_size=3).map(tuple)),
)
shares = st.sampled_from([1.0, 0.5, 1e-3, 1e-9, 1e-300]) | st.floats(0, 1)
phases = st.sampled_from([(), (0.5, 0.5), (1e-9, 1 - 1e-9)]).flatmap(
    lambda parts: st.tuples(*(st.builds(Phase, st.just(part), shares, numbers) for part in parts))
)
groups = st.builds(
    ThreadGroup, st.integers(1, 2), demands, shares, utilisation_std=shares, bandwidth=numbers, phases=phases
)
origins = st.builds(
    Provenance,
    st.sampled_from(["given", "measured", "predicted", "default"]),
    runs=st.integers(0, 10**17),
    interval=st.none() | st.tuples(shares, numbers),
    spread=st.none() | numbers,
)
profiles = st.builds(Profile, st.lists(groups, min_size=1, max_size=2).map(tuple), provenance=origins)
jobs = st.builds(
    Job, st.just("x"), profiles, nodes=st.integers(1, 2), walltime=st.none() | numbers, command=st.just(("true",))
)


def accepted(given):
    """Return the job as the socket takes it, or None."""
    try:
        (job,) = decode(encode(Workflow("w", (given,)))).jobs
    except PilotfishError:
        return None
    return None if never_fits(job, make_cluster()) else job


@given(st.lists(jobs, min_size=1, max_size=4), st.sampled_from(["lookahead", "slf"]))
@settings(max_examples=60, deadline=None)
def test_no_workflow_that_the_socket_takes_stops_another(given_jobs, policy):
    taken = [job for job in map(accepted, given_jobs) if job is not None]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "j.sqlite", Manager(make_cluster()), simulate_plan)
        bench.cycle.planner.options = dataclasses.replace(bench.cycle.planner.options, policy=policy, budget=20)
        for job in taken:
            bench.submit(job)
            bench.manager.takes["x"] = 5.0
        good = bench.submit(make_job("good", seconds=2.0))
        ask = requests_of(bench)
        for _ in range(10 * (len(taken) + 1)):
            bench.run()
            reply = json.loads(json.dumps(ask("status")))
            assert reply["ok"] and len(reply["workflows"]) == len(taken) + 1, reply
        show_status(reply, everything=True)
        assert bench.states(good) == {"good": "completed"}
        assert all(ask("explain", job=f"{each['id']}/{each['jobs'][0]['id']}")["ok"] for each in reply["workflows"])
        bench.kill()


@pytest.mark.parametrize("stored", ['{"dist":"foo","mean":1.0}', '{"dist":"uniform","low":0.0,"high":1e-320}'])
def test_a_workflow_of_the_journal_that_is_refused_now_stops_nobody(bench, stored):
    """A workflow in the journal with numbers that the rules refuse is set aside."""
    bench.planner = simulate_plan
    bad, good = bench.submit(make_job("bad")), bench.submit(make_job("good"))
    definition = (
        '{"name":"w","jobs":[{"id":"bad","command":["true"],"profile":{"groups":[{"count":1,"service_demand":%s}]}}]}'
    )
    bench.journal._db.execute("UPDATE workflows SET definition = ? WHERE id = ?", (definition % stored, bad))
    bench.restart()
    bench.run(20)
    assert bench.states(good) == {"good": "completed"}


def test_a_long_chain_behind_a_culprit_is_left_out_in_one_look_at_each_job():
    looks = 0

    class Names(tuple):
        """Predecessors that count how often they are read."""

        def __iter__(self):
            nonlocal looks
            looks += 1
            return super().__iter__()

    jobs = [make_job(f"j{i:03}") for i in range(300)]
    chain = [dataclasses.replace(job, after=(f"j{i - 1:03}",) if i else ()) for i, job in enumerate(jobs)]
    problem = Problem(Workflow("queue", tuple(chain)), (), (), {}, {})
    for job in chain:
        object.__setattr__(job, "after", Names(job.after))
    rest = _without(problem, {"j100"})
    assert [job.id for job in rest.workflow.jobs] == [f"j{i:03}" for i in range(100)]
    assert looks <= 4 * len(chain)
