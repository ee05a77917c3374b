"""Environment B is the plain one; a pair of rules that never changes is that policy; it knows no secrets."""

from __future__ import annotations

import math
from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.learning.environments import irmasim
from pilotfish.learning.environments.rule_choice import RuleChoiceEnvironment
from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.policy_specs import JOBS, RESOURCES, Pairs
from pilotfish.simulate.world.rule_options import ALL_PAIRS, VOID, RuleOptions
from tests.reference.plain_rule_choice import PlainChoices
from tests.simulate.replay.worlds.test_contended import JOB, KINDS, cluster, replay_contended, workload

#: Pairs whose order of the queue is the same in the engine and in the plain one, whatever came before.
SORTED = st.tuples(st.sampled_from(sorted(JOBS.keys() - {"random"})), st.sampled_from(list(RESOURCES)))
DRAWN = st.tuples(st.just("random"), st.sampled_from(list(RESOURCES)))
ACTIONS = st.one_of(*(st.lists(pairs, min_size=1, max_size=4, unique=True) for pairs in (SORTED, DRAWN)))


def small(jobs: int = 40, **options: Any) -> RuleChoiceEnvironment:
    more = {key: options.pop(key) for key in ("copies", "seed") if key in options}
    batches = [irmasim.batch(jobs, "heterogeneous", seed) for seed in (1, 2)]
    return RuleChoiceEnvironment(batches, irmasim.cluster("heterogeneous"), RuleOptions(**options), **more)


def begin(world: RuleChoiceEnvironment, seed: int) -> None:
    """Begin an episode whose random rules draw from a seed."""
    world.reset([0])
    world._worlds[0][0][0].random["state"] = seed


def fitting(jobs: Workload, machine: Cluster) -> Workload:
    """Return the jobs, each of at most as many processes as the empty machine has room for."""
    capacities = [(node.type.cores, int(node.type.memory)) for node in machine.nodes]
    needs = np.ceil(jobs.more["memory"]).astype(int).tolist()
    rooms = [sum(min(cores, memory // need) if need else cores for cores, memory in capacities) for need in needs]
    return replace(jobs, size=np.minimum(jobs.size, rooms))


@given(
    st.lists(JOB, min_size=1, max_size=16), st.lists(KINDS, min_size=1, max_size=3), ACTIONS, st.booleans(),
    st.booleans(), st.booleans(), st.sampled_from(("minimal", "small", "normal")), st.integers(0, 2**32),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_it_is_the_plain_one(rows, kinds, actions, void, one, always, observation, seed) -> None:
    machine = cluster(*kinds)
    jobs = fitting(workload(rows), machine)
    options = RuleOptions("energy", observation, (*actions, *([VOID] if void else [])), one, always, sensitivity=0.5)
    world, random = RuleChoiceEnvironment([jobs], machine, options), np.random.default_rng(seed)
    begin(world, seed)
    paid, total = 0.0, 0.0

    def ask(plain: PlainChoices) -> tuple[str, str] | None:
        nonlocal paid, total
        assert world.state[0] == pytest.approx(plain.state(), abs=2e-6)
        coming = bool(plain.upcoming)
        assert world.mask[0].tolist() == [action != VOID or plain.running or coming for action in options.actions]
        assert -total == pytest.approx(plain.spent, rel=1e-9, abs=1e-9)
        number = int(random.choice(np.flatnonzero(world.mask[0])))
        assert not world.done[0]
        world.step([number])
        starts.append(world.schedule()[0])
        total += float(world.reward[0])
        action = options.actions[number]
        return action if isinstance(action, tuple) else None

    starts = list[Any]()
    plain = PlainChoices(jobs, machine, options, seed, ask)
    assert world.done[0] and world.last_joules[0] == pytest.approx(plain.joules, rel=1e-9, abs=1e-9)
    assert world.last_return[0] == pytest.approx(total) and -total == pytest.approx(plain.joules, rel=1e-9, abs=1e-9)
    assert world.last_makespan[0] == max(plain.finish) - jobs.submit_time[0]
    if len(starts) > 1:
        ran = ~np.isnan(starts[-2])
        assert (starts[-2][ran] == np.array(plain.start)[ran]).all()


@given(
    st.lists(JOB, min_size=1, max_size=20), st.lists(KINDS, min_size=1, max_size=3), SORTED | DRAWN, st.integers(0, 2**32),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_a_pair_of_rules_that_never_changes_is_that_policy(rows, kinds, pair, seed) -> None:
    machine = cluster(*kinds)
    jobs = fitting(workload(rows), machine)
    world = RuleChoiceEnvironment([jobs], machine, RuleOptions("makespan", actions=(pair,), always=True))
    begin(world, seed)
    while not world.done[0]:
        world.step([0])
    policy = replay_contended(jobs, machine, Pairs(*pair), seed=seed)
    assert world.last_makespan[0] == policy.finish_time.max() - jobs.submit_time[0]
    assert world.last_joules[0] == pytest.approx(policy.joules, rel=1e-9, abs=1e-9)
    assert world.last_return[0] == pytest.approx(-world.last_makespan[0])


def test_the_sizes_of_the_paper() -> None:
    for observation, size in (("normal", 231), ("small", 51), ("minimal", 21)):
        world = small(observation=observation)
        assert world.state.shape == (1, size) and world.observations["state"] is world.state
        assert world.mask.shape == (1, 37) and world.first_actions.tolist() == list(range(36))
    assert ALL_PAIRS[7] == ("first", "high_gflops") and ALL_PAIRS[36] == VOID


#: Of the authors' files: seconds, and joules.
PRINTED = {
    ("save", "peak_gflops"): (35.34243583528412, 985.6822291088713), ("save", "peak_power"): (39.21, 834.45),
    ("spread", "high_core"): (5.32, 492.97), ("spread", "peak_gflops"): (14.75, 837.53),
}  # fmt: skip


@pytest.mark.parametrize("name, core", PRINTED)
def test_the_examples_of_the_authors_have_their_printed_results(name, core) -> None:
    jobs, machine = irmasim.EXAMPLES[name]()
    world = RuleChoiceEnvironment([jobs], machine, RuleOptions(actions=(("first", core),)))
    while not world.done[0]:
        world.step([0])
    seconds, joules = PRINTED[name, core]
    assert world.last_makespan[0] == pytest.approx(seconds, abs=0.005)
    assert world.last_joules[0] - irmasim.unused_joules(name, core) == pytest.approx(joules, abs=0.006)


def test_a_copy_plays_the_same_for_any_number_of_copies() -> None:
    runs = []
    for copies in (1, 3):
        world, rewards = small(copies=copies, seed=5), []
        for number in range(100):
            world.step([number % 36] * copies)
            rewards.append((float(world.reward[0]), bool(world.done[0])))
        runs.append(rewards)
    assert runs[0] == runs[1]
    world.seed(5)
    again = small(copies=3, seed=5)
    assert (world.state == again.state).all() and set(world._plays.tolist()) <= {0, 1}


@given(st.lists(JOB, min_size=2, max_size=12), st.lists(KINDS, min_size=1, max_size=2), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_later_run_times_and_submissions_change_no_observation(rows, kinds, seed) -> None:
    machine = cluster(*kinds)
    jobs = fitting(workload(rows), machine)
    jobs = replace(jobs, walltime=np.full(len(jobs), math.inf), more={**jobs.more, "asked": jobs.run_time + 1.0})
    options = RuleOptions(actions=(("first", "low_power"), ("shortest", "high_core"), ("smallest", "high_mem_bw")))
    world, random, actions = RuleChoiceEnvironment([jobs], machine, options), np.random.default_rng(seed), list[int]()
    world.reset([0])
    for _ in range(int(random.integers(1, 6))):
        before = world.state.copy(), world.mask.copy()
        starts, _ = world.schedule()
        row = world._choices.copies[0]
        now, number = float(row["since"]), int(random.integers(3))
        world.step([number])
        if world.done[0]:
            break
        actions.append(number)
    waits = np.isnan(starts)
    longer, later = np.where(waits, 7.0, 0.0), np.where(jobs.submit_time > now, 3.0, 0.0)
    other_jobs = replace(jobs, submit_time=jobs.submit_time + later, run_time=jobs.run_time + longer)
    other = RuleChoiceEnvironment([other_jobs], machine, options)
    other.reset([0])
    for number in actions[: len(actions) - (0 if world.done[0] else 1)]:
        other.step([number])
    assert (other.state == before[0]).all() and (other.mask == before[1]).all()


def test_a_forbidden_action_is_an_error_and_changes_nothing() -> None:
    world = small(jobs=1)
    world.reset([0])
    before = world.state.copy()
    assert not world.mask[0, 36]  # nothing runs, and nothing will be submitted
    for action in (36, 37, -1):
        with pytest.raises(PolicyError, match=f"copy 0: the mask forbids action {action}"):
            world.step([action])
    assert (world.state == before).all()


def test_nothing_starts_by_void_until_the_next_decision() -> None:
    world = small()
    for _ in range(5):
        world.step([36])
    assert np.isnan(world.schedule()[0]).all() and (world.reward <= 0.0).all()


@pytest.mark.parametrize(
    "options, allowed",
    [({"objective": "x"}, "makespan, energy, energy-delay"), ({"observation": "x"}, "minimal, small, normal"),
     ({"actions": (("first", "x"),)}, "low_power, peak_gflops"), ({"actions": (VOID,)}, "at least one pair"),
     ({"actions": (ALL_PAIRS[0], ALL_PAIRS[0])}, "each action once"), ({"sensitivity": 0.0}, "above 0"),
     ({"copies": 0}, "1 or more")],
)  # fmt: skip
def test_wrong_options_are_named(options, allowed) -> None:
    with pytest.raises(ConfigError, match=allowed):
        small(**options)


def test_wrong_worlds_are_named() -> None:
    jobs, machine = irmasim.batch(5, "homogeneous", 0), irmasim.cluster("homogeneous")
    bare = Cluster("bare", tuple(replace(node, type=replace(node.type, power=None)) for node in machine.nodes))
    wide, chained = replace(jobs, size=np.full(5, 61)), Dependencies(np.array([0]), np.array([1]))
    for batches, nodes, options, problem in (
        ([wide], machine, {}, "npb-5: job 1: it can never start"),
        ([replace(jobs, dependencies=chained)], machine, {}, "jobs without dependencies"),
        ([replace(jobs, run_time=np.full(5, math.nan))], machine, {}, "jobs without a run time"),
        ([jobs], bare, {}, "the power of this machine is not known"),
        ([jobs], bare, {"objective": "makespan", "actions": (("first", "peak_power"),)}, "power of this machine"),
        ([], machine, {}, "workloads: 0"),
    ):
        with pytest.raises(ConfigError, match=problem):
            RuleChoiceEnvironment(batches, nodes, RuleOptions(**options))
    with pytest.raises(ConfigError, match="workloads from 0 to 1"):
        small().reset([2])
    blind = RuleChoiceEnvironment([jobs], bare, RuleOptions("makespan", actions=(("first", "high_core"),)))
    assert blind.state[0, 30 + 1 : 210 : 3].tolist() == [0.0] * 60  # unknown watts


def test_steps_a_second(record_property) -> None:
    world = RuleChoiceEnvironment([irmasim.batch(300, "heterogeneous", 1)], irmasim.cluster("heterogeneous"), copies=20)
    actions, best = np.random.default_rng(0).integers(0, 36, (200, 20)), math.inf
    for _ in range(5):
        world.seed(0)
        began = process_time()
        for row in actions:
            world.step(row)
        best = min(best, process_time() - began)
    record_property("measured", f"environment B, 20 copies: {actions.size / best:,.0f} steps/s of CPU time")
