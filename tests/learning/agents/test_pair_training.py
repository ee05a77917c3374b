"""An agent takes what is allowed, learns, is the same for a seed, and goes on from any epoch to the bit."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pilotfish.api import lublin
from pilotfish.learning.agents.pair_player import PairPlayer
from pilotfish.learning.agents.pair_training import AGENTS, PairTraining, TrainingOptions
from pilotfish.learning.environments import thesis
from pilotfish.learning.environments.pair_rules import PairRule
from pilotfish.learning.environments.pairs import PairEnvironment, PairOptions
from pilotfish.simulate.learned.packed_pairs import PackedPairs
from pilotfish.simulate.learned.pair_heads import PairChooser
from pilotfish.simulate.learned.pair_network import PairNetwork
from tests.learning.environments.pair_worlds import nodes, workload
from tests.learning.environments.test_pairs import small

FEW = TrainingOptions(epochs=4, passes=2)


def few(agent: str) -> TrainingOptions:
    return TrainingOptions(epochs=4, passes=2, agent=agent)


def training(options: TrainingOptions = FEW, seed: int = 1) -> PairTraining:
    return PairTraining(small(copies=3), small(copies=2), options, seed)


def player(one: PairTraining, options: TrainingOptions = FEW) -> PairPlayer:
    return PairPlayer(PairChooser(options.head, [PairNetwork(layers).scores for layers in one.networks]))


def test_double_agents_differ_in_how_they_are_trained() -> None:
    networks = list[object]()
    for agent in ("double-add", "double-mean", "double-sep"):
        one = training(few(agent))
        one.run(2)
        networks.append(one.networks)
    assert networks[0] != networks[1] != networks[2] != networks[0] and len(training(few(agent)).networks) == 2


def test_rows_are_the_allowed_pairs() -> None:
    world = small(copies=5, episode=250)
    for _ in range(60):
        world.step(PairRule("random", "random").actions(world, np.random.default_rng(0)))
    pairs = PackedPairs.of(world.mask, world.jobs, world.nodes)
    assert pairs.counts.sum() == world.mask.sum() and (pairs.counts > 0).all()
    for copy, first in enumerate(pairs.first):
        action = pairs.actions[first]
        job, node = divmod(int(action), world.node_count)
        assert action == world.mask[copy].argmax()
        assert pairs.rows[first].tolist() == [*world.jobs[copy, job], *world.nodes[copy, node]]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_same_seed_trains_the_same_agent_to_the_bit(agent: str) -> None:
    states = []
    for seed in (1, 1, 2):
        one = training(few(agent), seed)
        one.run(FEW.epochs)
        states.append(one.state())
    assert states[0] == states[1] and states[0]["networks"] != states[2]["networks"]
    assert states[0]["epochs"] == FEW.epochs and states[0]["value"] is not None


@pytest.mark.parametrize(("first", "agent"), [(1, "squared"), (2, "squared"), (3, "squared"), (2, "double-add")])
def test_a_training_goes_on_from_its_state_to_the_bit(first: int, agent: str) -> None:
    complete, begun, resumed = (training(few(agent)) for _ in range(3))
    complete.run(FEW.epochs)
    begun.run(first)
    assert begun.epochs == first
    resumed.restore(json.loads(json.dumps(begun.state())))
    assert resumed.state() == begun.state()
    resumed.run(FEW.epochs + 5)
    assert resumed.state() == complete.state()


@pytest.mark.parametrize("agent", AGENTS)
def test_actions_are_allowed(agent: str) -> None:
    world, agent_player = small(copies=4, episode=100), player(training(few(agent)), few(agent))
    for _ in range(100):
        actions = agent_player.actions(world)
        assert world.mask[np.arange(4), actions].all()
        world.step(actions)
    assert world.done.all()


def test_the_weights_that_judge_best_are_the_result() -> None:
    options, values = {"objective": "wait", "episode": 200, "due": "largest", "rows": 8}, list[float]()

    class Judging(PairEnvironment):
        def seed(self, seed: int) -> None:
            values.append(float(-self.last_return.mean()))  # of the set of weights that was judged before
            super().seed(seed)

    jobs = thesis.jobs_of(lublin(300, 496, load=4.0, seed=3))
    judging = Judging([jobs], thesis.NODES, PairOptions(**options), copies=4)
    one = PairTraining(small(seed=1, **options), judging, TrainingOptions(epochs=21, passes=3), 1)
    one.run(21)
    values.append(float(-judging.last_return.mean()))
    judged = values[2:]
    assert len(judged) == 2 and len(set(judged)) == 2 and one.value == min(judged)
    judging.seed(10**9)
    assert -player(one).returns(judging).mean() == pytest.approx(one.value, rel=1e-3)


@pytest.mark.parametrize("agent", AGENTS)
def test_it_learns_to_take_the_fast_node(agent: str) -> None:
    jobs = workload([(1000.0 * place, 100.0, 100.0, 1) for place in range(60)])
    slow_and_fast, world_options = nodes([(4, 1.0), (4, 2.0)]), PairOptions("sld", "any", episode=40)
    world, judging = (PairEnvironment([jobs], slow_and_fast, world_options, copies=8) for _ in range(2))
    one = PairTraining(world, judging, TrainingOptions(epochs=10, actor_rate=1e-2, agent=agent), 1)
    for _ in range(10):
        one.run(1)
    assert 0.7 < one.course[0] < 0.8 and one.course[-1] < 0.6  # on the slow node a slowdown is 1, on the fast one 0.5
    assert one.value == pytest.approx(0.5)
