"""Environment A is the plain one, to the bit; its masks are what the engine takes; it knows no secrets."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.api import lublin, read_workload
from pilotfish.formats.cluster import read_cluster
from pilotfish.learning.environments import thesis
from pilotfish.learning.environments.pair_rules import BLOCKING, NODE_ORDERS, PairRule, masked_rules
from pilotfish.learning.environments.pairs import OBJECTIVES, PairEnvironment, PairNode, PairOptions, nodes_of
from pilotfish.simulate.errors import ConfigError, PolicyError
from tests.learning.environments.pair_worlds import DUE, NODES, any_action, nodes, traces, workload
from tests.reference.plain_pairs import PlainPairs

TRACE = "lublin_256.swf.gz"
#: Published rules of the specification in an exact engine, on the published windows: (objective, job) -> biggest,
#: fastest node.
BLOCKED = {
    ("bsld", "first"): (72.67, 27.95), ("bsld", "shortest"): (27.12, 12.35), ("bsld", "smallest"): (31.06, 14.68),
    ("wait", "shortest"): (1399.58, 545.51), ("wait", "smallest"): (1300.95, 567.27),
}  # fmt: skip
#: The same of rules that choose among the pairs that are allowed: (objective, due, job, node) -> mean.
MASKED = {
    ("bsld", "largest", "least area", "best fit"): 10.42, ("sld", "largest", "shortest", "fastest"): 16.61,
    ("wait", "largest", "least area", "best fit"): 403.47, ("bsld", "any", "least area", "best fit"): 2.01,
}  # fmt: skip


def small(jobs: int = 300, **options: object) -> PairEnvironment:
    trace = thesis.jobs_of(lublin(jobs, 496, load=2.5, seed=3))
    more = {key: options.pop(key) for key in ("copies", "seed") if key in options}
    return PairEnvironment([trace], thesis.NODES, PairOptions(**{"episode": 40, **options}), **more)


@given(st.data(), NODES, st.sampled_from(DUE), st.sampled_from(sorted(OBJECTIVES)), st.integers(1, 4))
def test_it_is_the_plain_one(data, rows, due, objective, visible) -> None:
    jobs = data.draw(traces(max(processors for processors, _ in rows)))
    warm = data.draw(st.integers(0, len(jobs) - 1))
    options = PairOptions(objective, due, len(jobs), warm, visible, longest=50.0, logarithmic=False)
    world = PairEnvironment([workload(jobs)], nodes(rows), options)
    random = np.random.default_rng(data.draw(st.integers(0, 9)))
    for _ in range(2):  # the second episode begins by itself
        plain, total = PlainPairs(jobs, rows, due, objective, visible, warm), 0.0
        while not plain.over:
            assert world.mask[0].tolist() == plain.mask() and world.mask.any()
            assert (world.jobs[0] == plain.seen_jobs(50.0).astype(np.float32)).all()
            assert (world.nodes[0] == plain.seen_nodes().astype(np.float32)).all()
            action = any_action(world, random)
            world.step(action)
            reward = plain.step(int(action[0]))
            total += reward
            assert (world.reward[0], bool(world.done[0])) == (reward, plain.over)
        assert world.last_return[0] == pytest.approx(total, abs=1e-12)
        assert (world.last_nodes[0] == plain.seen_nodes().astype(np.float32)).all()


@given(st.data(), NODES, st.sampled_from(DUE[:2]))
def test_what_the_mask_forbids_is_refused_and_changes_nothing(data, rows, due) -> None:
    jobs = data.draw(traces(max(processors for processors, _ in rows), least=2))
    world = PairEnvironment([workload(jobs)], nodes(rows), PairOptions(due=due, episode=len(jobs), rows=3))
    random = np.random.default_rng(1)
    for _ in jobs:
        before = [table.copy() for table in (world.jobs, world.nodes, world.mask)]
        forbidden = np.flatnonzero(~world.mask[0]).tolist()
        for action in (*forbidden[:3], -1, world.mask.shape[1]):
            with pytest.raises(PolicyError, match=f"copy 0: the mask forbids action {action}"):
                world.step([action])
        assert all((one == two).all() for one, two in zip(before, (world.jobs, world.nodes, world.mask), strict=True))
        world.step(any_action(world, random))


@given(st.data(), NODES, st.sampled_from(DUE))
def test_later_run_times_and_submissions_change_no_observation(data, rows, due) -> None:
    jobs = data.draw(traces(max(processors for processors, _ in rows), least=3))
    options = PairOptions(due=due, episode=len(jobs), rows=3)
    world, plain = PairEnvironment([workload(jobs)], nodes(rows), options), PlainPairs(jobs, rows, due, rows=3)
    random, actions = np.random.default_rng(2), list[int]()
    for _ in range(data.draw(st.integers(0, len(jobs) - 1))):
        actions.append(int(any_action(world, random)[0]))
        world.step(actions[-1:])
        plain.step(actions[-1])
    now = plain.time
    longer = data.draw(st.integers(1, 50))
    changed = [
        (
            at + (longer if at > now else 0.0),
            run + (0.0 if i in plain.start and plain.end(i) <= now else longer),
            wall,
            size,
        )
        for i, (at, run, wall, size) in enumerate(jobs)
    ]
    changed = [(at, min(run, 1e9), wall, size) for at, run, wall, size in changed]
    unlimited = [(at, run, 1e9, size) for at, run, _, size in changed]  # the engine cuts run times at the limit
    other = PairEnvironment([workload(unlimited)], nodes(rows), options)
    limits = np.array([wall for *_, wall, _ in jobs])
    other._world.jobs["long"] = world._world.jobs["long"]
    other._world.jobs["wall"], other._world.jobs["key"] = limits, world._world.jobs["key"]
    other.reset()
    for action in actions:
        other.step([action])
    assert (world.jobs == other.jobs).all() and (world.nodes == other.nodes).all()
    assert (world.mask == other.mask).all()


def test_a_copy_plays_the_same_for_any_number_of_copies() -> None:
    rule, runs = PairRule("shortest", "best fit"), []
    for copies in (1, 3, 8):
        world, rewards = small(copies=copies, seed=5), []
        for _ in range(100):
            world.step(rule.actions(world, np.random.default_rng(0)))
            rewards.append(float(world.reward[0]))
        runs.append(rewards)
    assert runs[0] == runs[1] == runs[2]
    others = small(copies=3, seed=5)
    assert len({tuple(others.jobs[copy].ravel().tolist()) for copy in range(3)}) > 1
    others.seed(5)
    again = small(copies=3, seed=5)
    assert (others.jobs == again.jobs).all() and not (small(copies=3, seed=6).jobs == again.jobs).all()


def test_episodes_stay_in_their_traces() -> None:
    one, two = (thesis.jobs_of(lublin(60, 64, seed=seed)) for seed in (1, 2))
    world = PairEnvironment([one, two], thesis.NODES, PairOptions(episode=50), copies=40)
    firsts = world._world.copies["begin"]
    assert {first // len(one) for first in firsts.tolist()} == {0, 1}
    assert all(first <= 10 or len(one) <= first <= len(one) + 10 for first in firsts.tolist())


def test_a_schedule_puts_no_node_over_its_capacity() -> None:
    world = small(due="any", seed=2)
    starts, places = world.schedule()
    assert np.isnan(starts).all() and (places == -1).all()
    random = np.random.default_rng(4)
    for _ in range(39):
        world.step(any_action(world, random))
    starts, places = world.schedule()
    first = int(world._world.copies["begin"][0])
    table = world._world.jobs[first : first + 40]
    ran = ~np.isnan(starts)
    assert ran.sum() == 39 and (starts[ran] >= table["submit"][ran]).all()
    speeds = np.array([node.speed for node in thesis.NODES])
    ends = starts + np.floor(table["run"] * 2.0 / speeds[places])
    for at in starts[ran]:
        runs = ran & (starts <= at) & (ends > at)
        used = np.bincount(places[runs], weights=table["size"][runs], minlength=20)
        assert (used <= [node.processors for node in thesis.NODES]).all()


def test_a_rule_that_draws_jobs_is_the_same_for_a_seed() -> None:
    runs = [PairRule("random", "random").returns(small(due="random", copies=4, seed=seed), 3) for seed in (1, 1, 2)]
    assert (runs[0] == runs[1]).all() and (runs[0] != runs[2]).any()


def test_blocking_rules_wait_for_their_job_and_masked_ones_do_not() -> None:
    blocked, masked = (
        PairRule("first", "best fit").returns(small(due=due, copies=4, episode=250, objective="wait")).mean()
        for due in ("first", "any")
    )
    assert blocked < masked <= 0.0


def test_requested_times_are_seen_on_either_scale() -> None:
    linear, log = (small(logarithmic=scale, longest=1e6).jobs[0, 0, 1] for scale in (False, True))
    assert linear == pytest.approx(np.expm1(log * np.log1p(1e6)) / 1e6, rel=1e-3)


def test_nodes_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "schema: pilotfish/cluster/v1\nnode_types:\n  a: {cores: 8, memory: 16GB, memory_bandwidth: 10GB/s, frequency: 2GHz}\n"
        "  b: {cores: 4, memory: 16GB, memory_bandwidth: 10GB/s, frequency: 3GHz}\nnodes:\n  - {names: 'n[1-2]', type: a}\n"
        "  - {names: m, type: b}\n"
    )
    assert nodes_of(read_cluster(tmp_path / "c.yaml")) == (PairNode(8, 2e9), PairNode(8, 2e9), PairNode(4, 3e9))


@pytest.mark.parametrize(
    "options, allowed",
    [({"objective": "x"}, "bsld, sld, wait"), ({"due": "x"}, "any, largest"), ({"episode": 0}, "1 or more"),
     ({"warm": 40}, "less than the jobs"), ({"longest": float("nan")}, "1.0 or more"), ({"copies": 0}, "1 or more"),
     ({"episode": 400}, "300 jobs, episodes of 400")],
)  # fmt: skip
def test_wrong_options_are_named(options, allowed) -> None:
    with pytest.raises(ConfigError, match=allowed):
        small(**options)


def test_wrong_worlds_are_named() -> None:
    jobs = workload([(0.0, 5.0, 9.0, 4)])
    for trace, machine, problem in (
        (jobs, [PairNode(2, 1.0)], "made: a job of 4 processors .allowed: at most those of a node, 2"),
        (replace(jobs, run_time=np.array([np.nan])), [PairNode(4, 1.0)], "without a run time"),
        (jobs, [PairNode(4, 0.0)], "node 0"), (jobs, [], "nodes: 0"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=problem):
            PairEnvironment([trace], machine, PairOptions(episode=1))
    with pytest.raises(ConfigError, match="first jobs from 0 to 260"):
        small().reset([261])


def published() -> Path:
    path = Path(os.environ.get("TRACES", ""), TRACE)
    if not path.is_file():
        pytest.skip(f"{TRACE} is not in the folder that TRACES names: the published windows are not played")
    return path


def test_rules_have_their_results_on_the_published_windows() -> None:
    trace = read_workload(published())
    for (objective, job), results in BLOCKED.items():
        for node, mean in zip(("biggest", "fastest"), results, strict=True):
            world = thesis.windows(trace, objective, job)
            assert -PairRule(job, node).returns(world).mean() == pytest.approx(mean, abs=0.01)
    for (objective, due, job, node), mean in MASKED.items():
        world = thesis.windows(trace, objective, due)
        assert -PairRule(job, node).returns(world).mean() == pytest.approx(mean, abs=0.01)


def test_steps_a_second(record_property) -> None:
    world, rule, actions = small(copies=20), PairRule("shortest", "best fit"), []
    for _ in range(200):
        actions.append(rule.actions(world, np.random.default_rng(0)))
        world.step(actions[-1])
    best = np.inf
    for _ in range(5):
        world.seed(0)
        begin = process_time()
        for action in actions:
            world.step(action)
        best = min(best, process_time() - begin)
    record_property("measured", f"environment A, 20 copies: {20 * len(actions) / best:,.0f} steps/s of CPU time")


def test_all_rules_are_there() -> None:
    rules = list(masked_rules())
    assert len(rules) == len({rule.name for rule in rules}) == 20
    assert len(BLOCKING) * (len(NODE_ORDERS) - 1) == 12
