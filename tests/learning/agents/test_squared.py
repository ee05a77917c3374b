"""The squared agent takes what is allowed, learns, and is the same for a seed."""

from __future__ import annotations

import numpy as np
import pytest

from pilotfish.api import lublin
from pilotfish.learning.agents.packed_pairs import PackedPairs
from pilotfish.learning.agents.squared import SquaredAgent, TrainingOptions, train
from pilotfish.learning.environments import thesis
from pilotfish.learning.environments.pair_rules import PairRule
from pilotfish.learning.environments.pairs import PairEnvironment, PairOptions
from tests.learning.environments.test_pairs import small

FEW = TrainingOptions(epochs=3, passes=2)


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


def test_the_same_seed_trains_the_same_agent() -> None:
    courses, agents = [], []
    for seed in (1, 1, 2):
        course = list[tuple[int, float]]()
        agents.append(train(small(copies=3, seed=4), FEW, seed, lambda *now, course=course: course.append(now)))
        courses.append(course)
    weights = [np.concatenate([part.ravel() for part in agent.network.weights]) for agent in agents]
    assert (weights[0] == weights[1]).all() and (weights[0] != weights[2]).any()
    assert courses[0] == courses[1] != courses[2] and [epoch for epoch, _ in courses[0]] == [1, 2, 3]


def test_its_actions_are_allowed_and_score_most() -> None:
    world, agent = small(copies=4, episode=100), SquaredAgent(3)
    for _ in range(100):
        actions = agent.actions(world)
        assert world.mask[np.arange(4), actions].all()
        world.step(actions)
    assert world.done.all()


def test_the_weights_that_judge_best_are_the_result() -> None:
    options, values = {"objective": "wait", "episode": 200, "due": "largest", "rows": 8}, list[float]()

    class Judging(PairEnvironment):
        def seed(self, seed: int) -> None:
            values.append(float(-self.last_return.mean()))  # of the set of weights that was judged before
            super().seed(seed)

    judging = Judging(
        [thesis.jobs_of(lublin(300, 496, load=2.5, seed=3))], thesis.NODES, PairOptions(**options), copies=4
    )
    agent = train(small(seed=1, **options), TrainingOptions(epochs=21, passes=1), 1, judging=judging)
    values.append(float(-judging.last_return.mean()))
    judged = values[2:]
    assert len(judged) == 2 and len(set(judged)) == 2
    judging.seed(1)
    assert -agent.returns(judging).mean() == min(judged)


@pytest.mark.long
@pytest.mark.parametrize("objective", ["bsld", "wait"])
def test_it_learns(objective) -> None:
    options = {"objective": objective, "episode": 120, "due": "largest", "copies": 6, "rows": 16}
    agent = train(small(600, seed=1, **options), TrainingOptions(epochs=8), 1)
    results = {
        name: -player.returns(small(600, seed=9, **options)).mean()
        for name, player in (("agent", agent), ("new", SquaredAgent(1)), ("random", PairRule("random", "random")))
    }
    assert results["agent"] < min(0.8 * results["random"], results["new"]), results
