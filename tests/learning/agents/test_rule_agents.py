"""IRMaSim's agents learn what its authors' examples show; the same seed gives the same weights to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from pilotfish.learning.agents.network import Network
from pilotfish.learning.agents.rule_agents import RuleAgent, RuleTraining, _improve, _input_slopes, _Played, train
from pilotfish.learning.environments import irmasim
from pilotfish.learning.environments.rule_choice import RuleChoiceEnvironment
from pilotfish.simulate.world.rule_options import VOID, RuleOptions
from tests.learning.environments.test_rule_choice import small

SPREAD = RuleOptions("makespan", "minimal", (("first", "high_core"), ("first", "peak_gflops")))


@pytest.mark.parametrize("critic", [True, False])
def test_it_learns_to_spread_tasks_that_contend(critic) -> None:
    """In the first update both actions are as likely; after the last the bad one is not."""
    jobs, machine = irmasim.EXAMPLES["spread"]()
    means, shares = [], []

    def progress(update: int, mean: float, first_shares: np.ndarray) -> None:
        means.append(mean)
        shares.append(first_shares[0])

    for seed in range(3):
        means.clear()
        shares.clear()
        world = RuleChoiceEnvironment([jobs], machine, SPREAD, copies=10, seed=seed)
        agent = train(world, RuleTraining(50, 5, 0.05, critic=critic), seed, progress)
        returns, counts = agent.play(RuleChoiceEnvironment([jobs], machine, SPREAD))
        assert returns.tolist() == pytest.approx([-5.32]) and counts.tolist() == [8, 0]
        assert len(means) == 50 and means[-1] > means[0] + 1.0
        assert shares[0] == pytest.approx(0.5, abs=0.2) and shares[-1] > 0.9


@pytest.mark.parametrize("paired", [True, False])
def test_the_same_seed_gives_the_same_weights(paired) -> None:
    weights = []
    for seed in (1, 1, 2):
        agent = train(small(jobs=20, copies=3, seed=seed), RuleTraining(3, 4, paired=paired), seed)
        assert agent.critic is not None
        weights.append([part for one in (agent.first, agent.actor, agent.critic) for part in one.weights])
    same, other = ([(one == two).all() for one, two in zip(weights[0], parts, strict=True)] for parts in weights[1:])
    assert all(same) and not all(other)
    assert all(np.isfinite(part).all() for part in weights[0])


def test_a_masked_action_is_never_chosen() -> None:
    options = RuleOptions(actions=(VOID, ("first", "high_core")), observation="minimal")
    world = RuleChoiceEnvironment(
        [irmasim.batch(3, "homogeneous", 1)], irmasim.cluster("homogeneous"), options, copies=4
    )
    agent = train(world, RuleTraining(5, 4, 0.1), 0)
    shares = np.exp(agent.log_shares(world.state, np.array([[False, True]] * 4)))
    assert shares.tolist() == [[0.0, 1.0]] * 4


def test_the_step_follows_the_slope_of_the_loss() -> None:
    """A small step of each network lowers the loss of the paper: -log p * advantage, plus the critic's squared error."""
    random = np.random.default_rng(0)
    states, mask = random.random((30, 6)).astype(np.float32), np.ones((30, 3), bool)
    actions, returns = random.integers(0, 3, 30), random.standard_normal(30)
    agent = RuleAgent(6, 3, RuleTraining(hidden=5, rate=1e-4), 0)
    assert agent.critic is not None

    def loss(advantages):
        hidden = agent.hidden(states)[-1]
        chosen = agent.log_shares(states, mask)[np.arange(30), actions]
        return -(chosen * advantages).mean() + ((agent.critic.outputs(hidden) - returns) ** 2).mean()

    advantages = returns - agent.critic.outputs(agent.hidden(states)[-1])
    before = loss(advantages)
    _improve(agent, _Played(states, mask, actions, returns, 0.0, np.zeros(3)))
    assert loss(advantages) < before


def test_slopes_by_the_input_are_those_of_differences() -> None:
    random = np.random.default_rng(1)
    network = Network((4, 5), random, 0.0, outputs=2, leak=0.01)
    row, slopes = random.standard_normal((1, 4)).astype(np.float32), np.array([[1.0, -2.0]])
    by_input = _input_slopes(network, network.layers(row), slopes)[0]
    for i in range(4):
        near = np.repeat(row, 2, axis=0)
        near[:, i] += (-1e-2, 1e-2)
        low, high = (network.layers(near)[-1] * slopes).sum(axis=1)
        assert by_input[i] == pytest.approx((high - low) / 2e-2, rel=0.05, abs=0.02)
