"""What others took of a job's CPUs, and that its error is then held against no model and no profile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.cli.output.status import show_accuracy
from pilotfish.daemon.learning.external_load import LATEST, LEAST, RECENT_S, LoadOfOthers, taken_by_others
from pilotfish.daemon.learning.node_speeds import at_speeds
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, Provenance, ThreadGroup
from pilotfish.simulate.model.snapshot import JobState, JobView

PROFILE = Profile((ThreadGroup(1, 10.0),))


def ran(key="w/a", cpus=(0,), begin=100.0, end=120.0, **usage) -> JobView:
    """A job of 10 CPU seconds that ran for 20 s and waited for a core for the other 10."""
    used = {"cpu_seconds": 10.0, "waiting_seconds": 10.0, "threads": 1.0, "busy_seconds": 20.0} | usage
    job = Job(key, PROFILE, command=("x",))
    known = tuple((name, value) for name, value in used.items() if value is not None)
    return JobView(key, job, JobState.COMPLETED, ("n",), 0.0, begin, end, 0, usage=known, cores=(cpus,))


def running(key="w/b", cpus=(0,), begin=100.0, source="given") -> JobView:
    job = Job(key, replace(PROFILE, provenance=Provenance(source)), command=("x",))
    return JobView(key, job, JobState.RUNNING, ("n",), 0.0, begin, None, cores=(cpus,))


@pytest.mark.parametrize(
    ("mine", "neighbours", "taken"),
    [
        (ran(), [], 0.5),
        (ran(busy_seconds=10.0), [], 0.0),  # its CPU did nothing else: it waited for its own threads
        (ran(waiting_seconds=0.0), [], 0.0),  # its CPUs were busy, but it never had to wait
        (ran(), [ran("w/b")], 0.0),  # a job of ours took it
        (ran(), [ran("w/b", cpu_seconds=4.0)], 0.3),
        (ran(), [ran("w/b", begin=80.0, end=110.0, cpu_seconds=12.0)], 0.3),  # a third of it was at the same time
        (ran(), [ran("w/b", cpus=(1,)), ran("w/c", begin=0.0, end=100.0)], 0.5),  # elsewhere, and before
        (ran(), [running()], 0.0),  # it may have taken all
        (ran(), [running(begin=115.0)], 0.25),
        (ran(busy_seconds=40.0, cpus=(0, 1)), [running(cpus=(0, 1))], 0.0),  # its threads were not measured
        (ran(busy_seconds=40.0, cpus=(0, 1)), [running(cpus=(0, 1), source="measured")], 0.5),  # it has one thread
        (ran(busy_seconds=None), [], None),
        (ran(waiting_seconds=None), [], None),
    ],
)
def test_what_others_took_is_neither_the_jobs_own_nor_of_our_other_jobs(mine, neighbours, taken):
    assert taken_by_others(mine, [mine, *neighbours]) == (None if taken is None else pytest.approx(taken))


@pytest.mark.parametrize("others", [True, False])
def test_errors_of_others_load_are_not_held_against_model_or_profile(bench, kit, capsys, others):
    usage = (("cpu_seconds", 10.0), ("waiting_seconds", 30.0), ("busy_seconds", 40.0 if others else 10.0))
    bench.manager.takes |= {f"j{i}": 40.0 for i in range(3)}
    bench.manager.used = usage
    workflow = bench.submit(*(kit.job(f"j{i}") for i in range(3)))
    bench.run(45)
    assert set(bench.states(workflow).values()) == {"completed"}
    assert bench.cycle.mode == ("live" if others else "fallback"), "the guard trips on three of them"
    assert bench.value("forecasts_not_judged_total") == (3 if others else 0)
    assert bench.value("forecast_error_factor_count", kind="run_time", direction="longer") == 3
    told = [record["text"] for record in bench.journal.records(f"{workflow}/j0") if record["kind"] == "external"]
    assert told == (["others took 75 % of its time on the CPUs; its error counts against no model or profile"] * others)
    outcomes = bench.journal.forecasts(10)
    assert [outcome.others_share for outcome in outcomes] == [0.75 if others else None] * 3
    show_accuracy(outcomes, everything=False)
    line = "others took 5.0 % or more of the time of 3 jobs: the errors trigger no guard rail"
    assert (line in " ".join(capsys.readouterr().out.split())) is others


KIND = NodeType("t", 1, 1e9, 1e9)
HERE = Cluster("here", (Node("a", KIND), Node("b", KIND.at_pace(0.8)), Node("c", KIND)))


def test_what_others_leave_is_what_they_left_of_the_jobs_that_ended_lately():
    others = LoadOfOthers()
    assert others.left(120.0) == 1.0 and others.leave(HERE, 120.0) is HERE
    others.learn(ran(), None)
    assert others.left(120.0) == 1.0, "nothing is known"
    others.learn(ran(), 0.5)
    others.learn(ran(begin=115.0, cpu_seconds=4.5), 0.1)  # it ran for a quarter of the time
    assert others.left(120.0) == pytest.approx(0.58, rel=0.025), "it had 10 s + 4.5 s and lost 10 s + 0.5 s"
    assert others.left(120.0 + RECENT_S) == 1.0
    for _ in range(LATEST):
        others.learn(ran(cpu_seconds=19.2), 0.04)
    assert others.left(120.0) == 1.0, "under 5 %"
    for _ in range(LATEST):
        others.learn(ran(cpu_seconds=0.1), 1.0)
    assert others.left(120.0) == pytest.approx(LEAST, rel=0.025)


def test_what_a_job_sleeps_is_not_what_others_leave() -> None:
    others = LoadOfOthers()
    others.learn(ran(cpu_seconds=4.0, waiting_seconds=4.0), 0.2)  # it wanted a core for 8 s of its 20 s
    assert others.left(120.0) == pytest.approx(0.5, rel=0.025)


def test_nodes_are_slowed_by_what_others_take_and_stay_of_one_type():
    others = LoadOfOthers()
    others.learn(ran(), 0.5)
    found = others.leave(HERE, 120.0)
    assert [node.type.pace for node in found.nodes] == pytest.approx([0.5, 0.4, 0.5], rel=0.025)
    assert found.nodes[0].type is found.nodes[2].type
    assert {node.type.nominal for node in found.nodes} == {KIND} and others.leave(HERE, 121.0) is found
    assert at_speeds(HERE, [1.0, 1.0, 1.0]) is HERE
    assert [node.type.pace for node in at_speeds(HERE, [1.0, 0.5, 0.25]).nodes] == [1.0, 0.4, 0.25]


def test_the_next_job_is_planned_with_what_others_leave(bench, kit):
    """Two jobs of 10 s take 40 s, because others take three quarters of their CPUs; the next is said to take as long."""
    bench.planner = simulate_plan
    bench.restart()
    bench.manager.used = (("cpu_seconds", 10.0), ("waiting_seconds", 30.0), ("busy_seconds", 40.0))
    bench.manager.takes |= {"first": 40.0, "next": 40.0}
    bench.submit(kit.job("first"))
    bench.run(45)
    workflow = bench.submit(kit.job("next"))
    bench.run(45)
    first, last = (one.forecast_s for one in bench.journal.forecasts(9))
    assert first == pytest.approx(10.0) and last == pytest.approx(40.0, rel=0.05), workflow
