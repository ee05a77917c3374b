"""Speeds of nodes that are learned from the run times of their jobs, and what plans make of them."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.learning.node_speeds import FASTEST, LATEST, LEAST_JOBS, SLOWEST, NodeSpeeds
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType

KIND = NodeType("t", 1, 1e9, 1e9)
NAMES = tuple(f"n{i}" for i in range(8))
HERE = Cluster("here", tuple(Node(name, KIND) for name in NAMES))


def ran(speeds: NodeSpeeds, true: dict[str, float], jobs: int, noise: float, seed: int) -> None:
    """Let each node run jobs, whose forecasts follow what was learned so far, and are all 20 % too short."""
    draw = random.Random(seed)
    for _ in range(jobs):
        speeds.on(HERE)
        for name in NAMES:
            work, believed = draw.uniform(1.0, 100.0), speeds.of([name])
            speeds.learn(name, work / believed, 1.2 * work / true[name] * draw.lognormvariate(0.0, noise), believed)


@given(st.lists(st.sampled_from([0.7, 0.9, 1.0, 1.0, 1.0, 1.1]), min_size=8, max_size=8), st.integers(0, 1000))
def test_speeds_are_learned_whatever_was_believed_before(factors, seed):
    true = dict(zip(NAMES, factors, strict=True))
    speeds = NodeSpeeds()
    ran(speeds, true, 4 * LATEST, 0.02, seed)
    paces = [node.type.pace for node in speeds.on(HERE).nodes]
    low, high = statistics.median_low(factors), statistics.median_high(factors)
    usual = min(max(low, 1.2), high)  # the one that the forecasts, all too short, are nearer to
    assert paces == pytest.approx([factor / usual for factor in factors], abs=0.03)
    assert [speeds.of([name]) for name in NAMES] == paces and speeds.of(NAMES) == min(paces)
    assert len({id(node.type) for node in speeds.on(HERE).nodes}) == len(set(paces)), (
        "nodes of one speed are of one type"
    )


@given(st.floats(0.0, 0.5), st.integers(0, 1000))
def test_nodes_that_differ_by_chance_hardly_differ(noise, seed):
    """Twice the standard error: one in twenty is beyond it by chance, by not much more than it."""
    speeds = NodeSpeeds()
    ran(speeds, dict.fromkeys(NAMES, 1.0), LATEST, noise, seed)
    found = [node.type.pace for node in speeds.on(HERE).nodes]
    assert statistics.median(found) == 1.0
    assert all(abs(pace - 1.0) <= 0.02 + noise for pace in found)


def test_few_jobs_several_nodes_and_single_nodes_teach_nothing():
    speeds = NodeSpeeds()
    for _ in range(LEAST_JOBS - 1):
        speeds.learn("n0", 1.0, 2.0, 1.0)
        speeds.learn("n1", 1.0, 1.0, 1.0)
        speeds.learn("n2,n3", 1.0, 2.0, 1.0)
    assert speeds.on(HERE) is HERE and speeds.of(["n0"]) == 1.0
    speeds.learn("n0", 1.0, 2.0, 1.0)
    assert speeds.on(HERE) is HERE, "the only one of its type that is known"
    speeds.learn("n1", 1.0, 1.0, 1.0)
    assert speeds.on(HERE) is not HERE


def test_only_nodes_of_one_type_are_compared_and_given_speeds_stay():
    """A variant is compared as what it is: its forecasts count with its pace."""
    other = NodeType("other", 1, 1e9, 1e9)
    mixed = Cluster("mixed", (Node("n0", KIND), Node("n1", KIND.at_pace(0.8)), Node("n2", other), Node("n3", other)))
    speeds = NodeSpeeds()
    for _ in range(LEAST_JOBS):
        for name, actual_s in (("n0", 10.0), ("n1", 10.0), ("n2", 30.0), ("n3", 30.0)):
            speeds.learn(name, 10.0, actual_s, 1.0)
    assert speeds.on(mixed) is mixed
    for _ in range(LATEST):
        speeds.learn("n1", 10.0, 12.5, 1.0)
    paces = [node.type.pace for node in speeds.on(mixed).nodes]
    assert paces[1] / paces[0] == pytest.approx(0.8 * 0.8, rel=0.02) and paces[2:] == [1.0, 1.0]


@pytest.mark.parametrize("actual_s", [0.0, 1e-9, 1e12])
def test_no_time_makes_a_node_infinitely_fast_or_slow(actual_s):
    speeds = NodeSpeeds(("n0", 1.0, actual_s, 1.0) for _ in range(LATEST))
    for _ in range(LATEST):
        speeds.learn("n1", 1.0, 1.0, 1.0)
        speeds.learn("n2", 1.0, 1.0, 1.0)
    assert speeds.on(HERE).nodes[0].type.pace in (SLOWEST, FASTEST)


def test_plans_count_with_a_slow_node_also_after_a_restart(bench, kit, caplog):
    """On n1 10 s take 12.5 s, or 13 s as cycles see it; then the first job gets n2, and all forecasts are right."""
    caplog.set_level("INFO")
    bench.planner = simulate_plan
    bench.restart()
    bench.manager.slower["n1"] = 1.25
    for turn in range(LEAST_JOBS + 2):
        bench.submit(*(kit.job(f"{turn}x{i}", threads=2) for i in range(2)))
        bench.run(14)
    assert "node n1 runs jobs 23 % slower than the other nodes of its type" in caplog.text
    for _ in range(2):
        workflow = bench.submit(kit.job("long", threads=2, seconds=40.0), kit.job("short", threads=2, seconds=10.0))
        bench.run(60)
        ended = {one.key.partition("/")[2]: one for one in bench.journal.forecasts(9) if one.key.startswith(workflow)}
        assert (ended["long"].node, ended["short"].node) == ("n2", "n1")
        assert ended["long"].forecast_s == 40.0 and ended["short"].forecast_s == pytest.approx(13.0, rel=0.01)
        bench.restart()
