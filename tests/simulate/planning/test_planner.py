"""Plans: every policy and objective, from the beginning and from the middle; each error is one line."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError, InvalidJobError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, Provenance, ThreadGroup, Workflow, default_profile
from pilotfish.simulate.model.objective import Objective
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.planning.planner import POLICIES, RunningJob, plan
from tests.support.instances import (
    PAPER,
    circumstances,
    clusters,
    fitting,
    flow,
    make_cluster,
    make_job,
    powers,
    renamed,
    workflows,
)

OBJECTIVES = [Objective("energy"), Objective("edp"), Objective("mix", 0.3)]


def planned(data: Any, **options: Any) -> tuple[Plan, Workflow, Cluster, dict[str, Any]]:
    """Draw a plan of a random instance at a random moment."""
    fixed = {"power": data.draw(powers)} if options.get("objective", Objective()).needs_energy else {}
    few = workflows(jobs=7, phased=True, nodes=2)
    workflow, cluster = data.draw(fitting(clusters(shared=True, **fixed), few, spare=1))
    state = data.draw(st.one_of(st.just({}), circumstances(workflow, cluster)))
    return plan(workflow, cluster, **options, **state), workflow, cluster, state


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(POLICIES)))
def test_a_plan_is_complete_and_consistent(data: Any, policy: str) -> None:
    made, workflow, cluster, state = planned(data, policy=policy, budget=40)
    done, underway = state.get("done", ()), {u.id: u for u in state.get("underway", ())}
    jobs = {job.id: job for job in made.jobs}
    assert [job.id for job in made.jobs] == [job.id for job in workflow.jobs if job.id not in done]
    for name, job in jobs.items():
        value = workflow.jobs[workflow.index[name]]
        assert 0.0 <= job.start_time <= job.finish_time <= made.makespan
        assert job.contention_slowdown >= 1.0 and job.isolated_run_time > 0.0
        assert len(set(job.nodes)) == value.nodes and set(job.nodes) <= cluster.index.keys()
        for before in value.after:
            assert before in done or job.start_time >= jobs[before].finish_time or name in underway
        if name in underway:
            assert (job.nodes, job.start_time) == (underway[name].nodes, 0.0)
        elif state.get("available") is not None:
            assert set(job.nodes) <= state["available"]
    assert made.lower_bound <= made.makespan * (1 + 1e-9)
    assert made.makespan == max((job.finish_time for job in made.jobs), default=0.0)
    powered = all(kind.power is not None for kind in cluster.types)
    assert (made.energy_j is None) == (not powered)
    for job in made.jobs:
        assert (job.energy_j is None) == (not powered)
    if powered and made.energy_j is not None:
        assert sum(job.energy_j or 0.0 for job in made.jobs) <= made.energy_j * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from([Objective(), *OBJECTIVES]))
def test_lookahead_is_never_worse_than_the_best_of_the_four(data: Any, objective: Objective) -> None:
    made, workflow, cluster, state = planned(data, objective=objective, budget=60, explain=False)
    others = {name: plan(workflow, cluster, policy=name, explain=False, **state) for name in PAPER}
    mom = others["mom"]
    reference = (mom.makespan or 1.0, mom.energy_j or 1.0)
    values = {name: objective.value(p.makespan, p.energy_j or 0.0, reference) for name, p in others.items()}
    value = objective.value(made.makespan, made.energy_j or 0.0, reference)
    assert value <= min(values.values()) * (1 + 1e-9), values


@settings(max_examples=15, deadline=None)
@given(st.data(), st.sampled_from(sorted(POLICIES)), st.integers(0, 5))
def test_same_seed_same_plan_whatever_the_names(data: Any, policy: str, seed: int) -> None:
    made, workflow, cluster, state = planned(data, policy=policy, seed=seed, budget=60)
    assert plan(workflow, cluster, policy=policy, seed=seed, budget=60, **state) == made
    names = {node.name: f"z{9 - i}" for i, node in enumerate(cluster.nodes)}
    available = state.get("available")
    moved = {
        "done": state.get("done", ()),
        "underway": [replace(u, nodes=tuple(names[n] for n in u.nodes)) for u in state.get("underway", ())],
        "available": None if available is None else {names[n] for n in available},
    }
    other = plan(workflow, renamed(cluster, **names), policy=policy, seed=seed, budget=60, **moved)
    for mine, theirs in zip(made.jobs, other.jobs, strict=True):
        assert tuple(names[n] for n in mine.nodes) == theirs.nodes
        assert (mine.start_time, mine.finish_time) == (theirs.start_time, theirs.finish_time)


IN_ANOTHER_PROCESS = """
import json, sys
from dataclasses import asdict
sys.path.insert(0, sys.argv[1])
from tests.simulate.planning.test_planner import sample
from pilotfish.simulate.planning.planner import plan
print(json.dumps(asdict(plan(*sample(), policy=sys.argv[2], seed=7, budget=300))))
"""


def sample() -> tuple[Workflow, Cluster]:
    """Return twelve jobs on three nodes, far from any tie."""
    numbers = [(3.0 + 1.7 * i % 5.3, 1 + i % 3, 1 - 0.07 * (i % 4), 1.1e9 * (i % 6)) for i in range(8)]
    jobs = [make_job(f"j{i}", demand, count, u=u, b=b) for i, (demand, count, u, b) in enumerate(numbers)]
    late = [make_job(f"k{i}", 2.0 + i, 2, f"j{i}", f"j{i + 1}", b=3.3e9) for i in range(4)]
    kind = NodeType("t", 2, 100.0, 10e9, power=Power(95.0, computing=190.74))
    return flow(*jobs, *late), Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(3)), 2.0)


@pytest.mark.real
@pytest.mark.parametrize("policy", ["mom", "lookahead"])
def test_same_plan_in_another_process(policy: str) -> None:
    here = json.loads(json.dumps(asdict(plan(*sample(), policy=policy, seed=7, budget=300))))
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(Path(__file__).parents[2] / "support"), policy]
    for salt in ("1", "2"):
        said = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": salt})
        assert json.loads(said.stdout) == here


def test_seeds_differ() -> None:
    """Without this, the test above would prove nothing about seeds."""
    assert len({plan(*sample(), seed=seed, budget=120).makespan for seed in range(6)}) > 1


def test_a_search_is_never_worse_and_a_longer_one_is_better_here() -> None:
    """The budget is shared out by its size, so more need not always be better."""
    found = [plan(*sample(), budget=budget).makespan for budget in (4, 40, 2000)]
    assert max(found) == found[0]
    assert found[-1] < min(plan(*sample(), policy=name).makespan for name in PAPER)


@pytest.mark.parametrize("budget", [1, 4, 5, 7, 10, 33, 100])
def test_the_budget_is_kept(budget: int) -> None:
    """The four policies are always run: without them nothing could be promised."""
    made = plan(*sample(), budget=budget)
    assert made.evaluations <= max(budget, 4)
    assert not made.truncated


@pytest.mark.parametrize("allowed", [0, 3, 20])
def test_a_stopped_search_is_truncated(allowed: int) -> None:
    asked = iter(range(10_000))
    made = plan(*sample(), budget=2000, should_stop=lambda: next(asked) >= allowed)
    assert made.truncated and made.evaluations < 2000
    assert made.makespan <= min(plan(*sample(), policy=name).makespan for name in PAPER)


def test_a_stop_that_never_comes_changes_nothing() -> None:
    assert plan(*sample(), budget=200, should_stop=lambda: False) == plan(*sample(), budget=200)


@pytest.mark.parametrize(
    "objective, node",
    [("makespan", "fast"), ("mix:1", "fast"), ("energy", "frugal"), ("mix:0", "frugal"), ("edp", "frugal")],
)
def test_each_objective_chooses_its_best_node(objective: str, node: str) -> None:
    """5 s and 5,000 J on one node, 10 s and 1,000 J on the other."""
    fast = NodeType("fast", 1, 100.0, 1e9, speed=2.0, power=Power(0.0, per_core=1000.0))
    frugal = NodeType("frugal", 1, 100.0, 1e9, speed=1.0, power=Power(0.0, per_core=100.0))
    cluster = Cluster("lab", (Node("fast", fast), Node("frugal", frugal)))
    made = plan(flow(make_job("a", 5.0)), cluster, objective=Objective.parse(objective), budget=100)
    assert made.jobs[0].nodes == (node,)
    assert made.energy_j == pytest.approx(5000.0 if node == "fast" else 1000.0)


# --- explanations ---
@pytest.mark.parametrize("policy", ["let", "mom"])
def test_the_runner_up_has_the_score_of_the_policy(policy: str) -> None:
    cluster = make_cluster(2)
    made = plan(flow(make_job("a", 10.0), make_job("b", 4.0)), cluster, policy=policy)
    a, b = made.jobs
    assert a.why is not None and (a.why.nodes, a.why.cost_s) == (("n1",), 0.0)
    # b next to a on n0 would end after 8 s (a after 14), alone on n1 after 4 s (a after 10).
    assert b.why is not None and b.nodes == ("n1",) and b.why.nodes == ("n0",)
    assert b.why.cost_s == pytest.approx(4.0 if policy == "let" else 10.0)


@pytest.mark.parametrize("policy", ["slf", "loadavg"])
def test_a_score_that_is_no_time_is_not_a_cost_in_seconds(policy: str) -> None:
    made = plan(flow(make_job("a", 10.0), make_job("b", 4.0)), make_cluster(2), policy=policy)
    assert [job.why and job.why.cost_s for job in made.jobs] == [None, None]
    assert all(job.why is not None and job.why.nodes != job.nodes for job in made.jobs)


def test_the_runner_up_of_a_search_has_the_cost_of_the_plan() -> None:
    made = plan(flow(make_job("a", 10.0), make_job("b", 4.0)), make_cluster(2), budget=50)
    assert [job.why and job.why.cost_s for job in made.jobs] == pytest.approx([4.0, 4.0])


def test_without_explanations_there_are_none() -> None:
    for policy in POLICIES:
        assert all(job.why is None for job in plan(*sample(), policy=policy, budget=20, explain=False).jobs)


# --- warnings ---
def test_known_power_may_be_zero_when_idle() -> None:
    power = Power(idle=0.0, per_core=6.0)
    made = plan(flow(make_job("a", 10.0)), make_cluster(1, power=power), policy="slf")
    assert made.energy_j == made.jobs[0].energy_j == pytest.approx(60.0)


def test_slowdown_counts_contention_with_others_alone() -> None:
    kind = {"cores": 1}
    made = plan(flow(make_job("a", 10.0, 2), make_job("b", 10.0, 2)), make_cluster(1, **kind), policy="slf")
    assert [job.isolated_run_time for job in made.jobs] == [20.0, 20.0]
    assert [job.contention_slowdown for job in made.jobs] == pytest.approx([2.0, 2.0])


def test_slowdown_of_a_job_half_done() -> None:
    workflow = flow(make_job("a", 10.0), make_job("b", 10.0, 1, "z"), make_job("z"))
    state = {"underway": [RunningJob("a", ("n0",), 0.5)], "done": ["z"]}
    a, b = plan(workflow, make_cluster(1), policy="slf", **state).jobs
    assert (a.start_time, a.finish_time, a.contention_slowdown) == (0.0, pytest.approx(10.0), pytest.approx(2.0))
    assert b.finish_time == pytest.approx(15.0)


def test_warnings() -> None:
    kinds = [NodeType("fast", 1, 100.0, 1e9, frequency=2e9), NodeType("slow", 1, 100.0, 1e9)]
    cluster = Cluster("lab", tuple(Node(kind.name, kind) for kind in kinds))
    late = make_job("late", 100.0, walltime=50.0)
    foreign = Job("foreign", Profile((ThreadGroup(1, 1.0),), name="p", measured_on="other", provenance=Provenance()))
    said = plan(replace(flow(late, foreign), warnings=("first",)), cluster, policy="slf").warnings
    assert said[0] == "first"
    assert any("forecast beyond the walltime: late" in text for text in said)
    assert any("p: measured on 'other'" in text and "not scaled" in text for text in said)
    assert any("(inline): measured on fast, scaled to slow" in text for text in said)


def test_a_guess_is_not_beyond_the_walltime_on_a_slow_node() -> None:
    kind = NodeType("slow", 1, 100.0, 1e9)
    slow = Cluster("lab", (Node("n1", kind.at_pace(0.5)),))
    job = Job("a", default_profile(30.0), walltime=30.0)
    (found,) = plan(flow(job), slow, policy="mom").jobs
    assert found.finish_time - found.start_time == pytest.approx(30.0)


# --- errors ---
def test_an_unknown_policy() -> None:
    with pytest.raises(ConfigError, match=r"unknown policy 'best'.*lookahead"):
        plan(*sample(), policy="best")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_energy_of_nodes_of_unknown_power(objective: Objective) -> None:
    with pytest.raises(ConfigError, match=r"node_types\.t\.power"):
        plan(flow(make_job("a")), make_cluster(1), objective=objective)
    busy = Cluster("lab", (Node("a", NodeType("t", 2, 100.0, 1e9).at_pace(0.25)),))
    with pytest.raises(ConfigError, match=r"node_types\.t\.power"):
        plan(flow(make_job("a", 1.0)), busy, objective=objective)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "jobs, message",
    [
        ((make_job("a"), make_job("a")), "'a' is defined twice"),
        ((make_job("load"), make_job("b", 1.0, 1, "laod")), "'b' waits for 'laod'.*did you mean 'load'"),
        ((make_job("a", 1.0, 1, "b"), make_job("b", 1.0, 1, "a")), "cycle: .*a -> b|cycle: .*b -> a"),
        ((make_job("a", 1.0, 1, "a"),), "cycle: a -> a"),
    ],
)
def test_malformed_workflows_are_refused_by_every_policy(policy: str, jobs: tuple[Job, ...], message: str) -> None:
    with pytest.raises(InvalidJobError, match=message):
        plan(Workflow("w", jobs), make_cluster(2), policy=policy, budget=10)


def test_a_job_that_can_never_start_is_named() -> None:
    with pytest.raises(InvalidJobError, match=r"'wide'.*3 nodes"):
        plan(flow(make_job("a"), make_job("wide", nodes=3)), make_cluster(2))
    with pytest.raises(InvalidJobError, match="'a'"):
        plan(flow(make_job("a")), make_cluster(2), available=())


@pytest.mark.parametrize(
    "state, words",
    [
        ({"done": ["b"]}, "'b'"),
        ({"underway": [RunningJob("b", ("n0",))]}, "'b'"),
        ({"underway": [RunningJob("a", ("x9",))]}, "'x9'"),
        ({"underway": [RunningJob("a", ("n0", "n1"))]}, "'a'.*it needs 1"),
        ({"underway": [RunningJob("a", ("n0",), 1.5)]}, "'a'.*progress"),
        ({"underway": [RunningJob("a", ("n0",)), RunningJob("a", ("n1",))]}, "'a' is given as running twice, or"),
        ({"underway": [RunningJob("a", ("n0",))], "done": ["a"]}, "'a' is given as running twice, or"),
    ],
)
def test_an_impossible_state_is_refused_in_one_sentence(state: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidJobError, match=words):
        plan(flow(make_job("a")), make_cluster(2), **state)


def test_a_job_cannot_be_running_on_one_node_twice() -> None:
    with pytest.raises(InvalidJobError, match=r"'a' cannot be running on 'n0', 'n0' .* it needs 2 distinct nodes"):
        plan(flow(make_job("a", nodes=2)), make_cluster(2), underway=[RunningJob("a", ("n0", "n0"))])


def test_a_plan_without_jobs_left_is_empty() -> None:
    for policy in POLICIES:
        nothing = plan(Workflow("w", ()), make_cluster(1), policy=policy, budget=10)
        assert (nothing.jobs, nothing.makespan, nothing.lower_bound) == ((), 0.0, 0.0)
        made = plan(flow(make_job("a")), make_cluster(1), policy=policy, done=["a"], budget=10)
        assert (made.jobs, made.makespan, made.lower_bound) == ((), 0.0, 0.0)


def test_only_running_jobs() -> None:
    for policy in POLICIES:
        running = [RunningJob("a", ("n0",), 0.25)]
        made = plan(flow(make_job("a")), make_cluster(1), policy=policy, underway=running, budget=10)
        assert made.makespan == pytest.approx(7.5) and math.isclose(made.lower_bound, 7.5)
