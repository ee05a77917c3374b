"""The squared agent takes what is allowed, learns, is the same for a seed, and goes on from any epoch to the bit."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pilotfish.api import lublin
from pilotfish.learning.agents.packed_pairs import PackedPairs
from pilotfish.learning.agents.pair_player import PairPlayer
from pilotfish.learning.agents.squared import SquaredTraining, TrainingOptions
from pilotfish.learning.environments import thesis
from pilotfish.learning.environments.pair_rules import PairRule
from pilotfish.learning.environments.pairs import PairEnvironment, PairOptions
from pilotfish.simulate.learned.pair_network import PairNetwork
from tests.learning.environments.pair_worlds import nodes, workload
from tests.learning.environments.test_pairs import small

FEW = TrainingOptions(epochs=4, passes=2)


def training(options: TrainingOptions = FEW, seed: int = 1) -> SquaredTraining:
    return SquaredTraining(small(copies=3), small(copies=2), options, seed)


def test_rows_are_the_allowed_pairs() -> None:
    world = small(copies=5, episode=250)
    for _ in range(60):
        world.step(PairRule("random", "random").actions(world, np.random.default_rng(0)))
    pairs = PackedPairs.of(world)
    assert pairs.counts.sum() == world.mask.sum() and (pairs.counts > 0).all()
    for copy, first in enumerate(pairs.first):
        action = pairs.actions[first]
        job, node = divmod(int(action), world.node_count)
        assert action == world.mask[copy].argmax()
        assert pairs.rows[first].tolist() == [*world.jobs[copy, job], *world.nodes[copy, node]]


def test_the_same_seed_trains_the_same_agent_to_the_bit() -> None:
    states = []
    for seed in (1, 1, 2):
        one = training(seed=seed)
        one.run(FEW.epochs)
        states.append(one.state())
    assert states[0] == states[1] and states[0]["layers"] != states[2]["layers"]
    assert states[0]["epochs"] == FEW.epochs and states[0]["value"] is not None


@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_training_goes_on_from_its_state_to_the_bit(first: int) -> None:
    complete, begun, resumed = training(), training(), training()
    complete.run(FEW.epochs)
    begun.run(first)
    assert begun.epochs == first
    resumed.restore(json.loads(json.dumps(begun.state())))
    assert resumed.state() == begun.state()
    resumed.run(FEW.epochs + 5)
    assert resumed.state() == complete.state()


def test_actions_are_allowed_and_score_most() -> None:
    world, layers = small(copies=4, episode=100), training().layers
    player = PairPlayer(PairNetwork(layers).scores)
    for _ in range(100):
        actions = player.actions(world)
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
    one = SquaredTraining(small(seed=1, **options), judging, TrainingOptions(epochs=21, passes=3), 1)
    one.run(21)
    values.append(float(-judging.last_return.mean()))
    judged = values[2:]
    assert len(judged) == 2 and len(set(judged)) == 2 and one.value == min(judged)
    judging.seed(10**9)
    assert -PairPlayer(PairNetwork(one.layers).scores).returns(judging).mean() == pytest.approx(one.value, rel=1e-3)


def test_it_learns_to_take_the_fast_node() -> None:
    jobs = workload([(1000.0 * place, 100.0, 100.0, 1) for place in range(60)])
    slow_and_fast, options = nodes([(4, 1.0), (4, 2.0)]), PairOptions("sld", "any", episode=40)
    world, judging = (PairEnvironment([jobs], slow_and_fast, options, copies=8) for _ in range(2))
    one, course = SquaredTraining(world, judging, TrainingOptions(epochs=10, actor_rate=1e-2), 1), list[float]()
    for _ in range(10):
        one.run(1)
        course.append(one.objective)
    assert 0.7 < course[0] < 0.8 and course[-1] < 0.6  # on the slow node a slowdown is 1, on the fast one 0.5
    assert one.value == pytest.approx(0.5)
