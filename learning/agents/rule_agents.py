"""IRMaSim's agents, REINFORCE and actor-critic, which choose pairs of rules in environment B.

Rule: a network of five dense layers gives each action a logit; the critic shares the first layer. One update follows
the episodes that all copies play; returns are discounted by decision and standardised over these episodes, so that
with one copy they are those of the paper. The same seed gives the same weights to the bit on one machine.
Source: Herrera et al., CCGrid 2021, IV-A, figure 5; the activations and the losses are those of the authors' program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.arrays import Array
from ...simulate.learned.pair_network import Layer
from ...simulate.learned.rule_chooser import LEAK
from ..environments.rule_choice import RuleChoiceEnvironment
from .network import Network

#: Hidden layers of the actor, and of the critic, after the first.
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class RuleTraining:
    """The options of a training.

    Args:
        updates: each follows one episode in each copy.
        hidden: width of each hidden layer.
        rate: step size of Adam.
        discount: of a reward for each decision that lies between, 0 to 1.
        critic: actor-critic; if not, REINFORCE.
        paired: all copies play the same workload, and a return is compared with those of the other copies at the same
            decision, which takes out what they share, such as the time that is left; if not, with all returns of the
            update, as in the paper.
    """

    updates: int = 100
    hidden: int = 16
    rate: float = 0.005
    discount: float = 0.99
    critic: bool = True
    paired: bool = False


class RuleAgent:
    """The agent.

    Args:
        inputs: numbers of an observation.
        choices: number of actions.
        options: of its networks.
        seed: draws its first weights.
    """

    def __init__(self, inputs: int, choices: int, options: RuleTraining, seed: int) -> None:
        generator, hidden, rate = np.random.default_rng([seed, 0]), options.hidden, options.rate
        widths = (hidden,) * (_DEPTH + 1)
        self.first = Network((inputs,), generator, rate, outputs=hidden, leak=LEAK)
        self.actor = Network(widths, generator, rate, 0.1, outputs=choices, leak=LEAK)
        self.critic = Network(widths, generator, rate, 0.1, leak=LEAK) if options.critic else None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return the layers that choose, as plain numbers; leaky ReLU is between them."""
        return (*self.first.plain_layers, *self.actor.plain_layers)

    def state(self) -> list[str]:
        """Return all that training changes."""
        return [network.state() for network in (self.first, self.actor, self.critic) if network is not None]

    def restore(self, state: Sequence[str]) -> None:
        """Go on from the state of an agent with the same options."""
        networks = [network for network in (self.first, self.actor, self.critic) if network is not None]
        for network, text in zip(networks, state, strict=True):
            network.restore(text)

    def log_shares(self, states: Array, mask: Array) -> Array:
        """Return the logarithm of the probability of each action [decisions, actions], -inf where it is masked.

        Args:
            states: float32 [decisions, inputs].
            mask: bool [decisions, actions].
        """
        return _log_shares(self.actor.layers(self.hidden(states)[-1])[-1], mask)

    def hidden(self, states: Array) -> list[Array]:
        """Return the input and the output of the layer that actor and critic share."""
        values = self.first.layers(states)
        return [*values[:-1], self.first.bent(values[-1])]

    def actions(self, world: RuleChoiceEnvironment) -> Array:
        """Return the most probable action of each copy [copies]."""
        actions: Array = self.log_shares(world.state, world.mask).argmax(axis=1)
        return actions

    def play(self, world: RuleChoiceEnvironment, starts: Sequence[int] | None = None) -> tuple[Array, Array]:
        """Play one episode in each copy by the most probable actions.

        Args:
            world: where.
            starts: the workload of each copy [copies]; None: they are drawn.

        Returns:
            Sums of the rewards [copies], and how often each action was chosen [actions].
        """
        world.reset(starts)
        returns, counts, plays = np.zeros(world.copies), np.zeros(world.mask.shape[1]), np.ones(world.copies, bool)
        while plays.any():
            actions = self.actions(world)
            np.add.at(counts, actions[plays], 1)
            world.step(actions)
            ends = plays & world.done
            returns[ends] = world.last_return[ends]
            plays &= ~world.done
        return returns, counts


def train(
    world: RuleChoiceEnvironment, options: RuleTraining, seed: int,
    progress: Callable[[int, float, Array], None] | None = None,
) -> RuleAgent:  # fmt: skip
    """Train an agent.

    Args:
        world: each copy plays one episode an update.
        options: of the training.
        seed: of weights and draws.
        progress: called after each update with its number, from 1, the mean return of its episodes, and the mean
            probability of each action at the first decision [actions].
    """
    agent = RuleAgent(world.state.shape[1], world.mask.shape[1], options, seed)
    generator = np.random.default_rng([seed, 1])
    for number in range(options.updates):
        mean_return, first_shares = update(agent, world, generator, options)
        if progress is not None:
            progress(number + 1, mean_return, first_shares)
    return agent


def update(
    agent: RuleAgent, world: RuleChoiceEnvironment, generator: np.random.Generator, options: RuleTraining
) -> tuple[float, Array]:  # fmt: skip
    """Play one episode in each copy, and take one step; return what `progress` of `train` gets.

    Args:
        agent: learns.
        world: where.
        generator: of the draws.
        options: of the training.
    """
    played = _play(world, agent, generator, options)
    _improve(agent, played)
    return played.mean_return, played.first_shares


@dataclass(frozen=True, slots=True)
class _Played:
    """The decisions of one update.

    Args:
        states: float32 [decisions, inputs].
        mask: bool [decisions, actions].
        actions: those that were drawn [decisions].
        returns: standardised [decisions].
        mean_return: mean over the episodes, not discounted.
        first_shares: see `train`.
    """

    states: Array
    mask: Array
    actions: Array
    returns: Array
    mean_return: float
    first_shares: Array


def _play(
    world: RuleChoiceEnvironment, agent: RuleAgent, generator: np.random.Generator, options: RuleTraining
) -> _Played:
    """Play one episode in each copy; actions are drawn."""
    world.reset([int(generator.integers(world.workload_count))] * world.copies if options.paired else None)
    plays, rows, first_shares = np.ones(world.copies, bool), list[tuple[Array, ...]](), np.zeros(0)
    while plays.any():
        present = world.state.copy(), world.mask.copy()
        shares = np.exp(agent.log_shares(*present).astype(np.float64))
        if not rows:
            first_shares = shares.mean(axis=0)
        bounds = shares.cumsum(axis=1)
        drawn = (bounds < generator.random(world.copies)[:, None] * bounds[:, -1:]).sum(axis=1)
        was_playing = plays.copy()
        world.step(drawn)
        rows.append((*present, drawn, world.reward.copy(), was_playing))
        plays &= ~world.done
    rewards, playing = np.array([row[3] for row in rows]), np.array([row[4] for row in rows])
    returns, following = np.empty_like(rewards), np.zeros(world.copies)
    for step in range(len(rows) - 1, -1, -1):
        following = returns[step] = np.where(playing[step], rewards[step] + options.discount * following, 0.0)
    if options.paired:
        returns -= (returns * playing).sum(axis=1, keepdims=True) / playing.sum(axis=1, keepdims=True)
    counted = returns[playing]
    scores = (counted - counted.mean()) / (counted.std() + 1e-12)
    states, mask, actions = (np.array([row[i] for row in rows])[playing] for i in range(3))
    return _Played(states, mask, actions, scores, float((rewards * playing).sum(axis=0).mean()), first_shares)


def _improve(agent: RuleAgent, played: _Played) -> None:
    """Take one step of all networks."""
    size = len(played.actions)
    hidden = agent.hidden(played.states)
    layers = agent.actor.layers(hidden[-1])
    advantages, slopes = played.returns, np.zeros_like(hidden[-1])
    if agent.critic is not None:
        values = agent.critic.layers(hidden[-1])
        errors = values[-1][:, 0] - played.returns
        advantages = -errors
        gradient = agent.critic.gradient(values, 2.0 * errors / size)
        slopes += _input_slopes(agent.critic, values, 2.0 * errors / size)
        agent.critic.learn(gradient)
    shares = np.exp(_log_shares(layers[-1], played.mask))
    shares[np.arange(size), played.actions] -= 1.0
    by_logit = shares * (advantages / size)[:, None]
    gradient = agent.actor.gradient(layers, by_logit)
    slopes += _input_slopes(agent.actor, layers, by_logit)
    agent.actor.learn(gradient)
    agent.first.learn(agent.first.gradient(hidden, slopes * agent.first.bends(hidden[-1])))


def _input_slopes(network: Network, values: list[Array], slopes: Array) -> Array:
    """Return the slopes of a loss by the input of a network [rows, inputs]; see `Network.gradient`."""
    slope = slopes.astype(np.float32).reshape(len(slopes), -1)
    for layer in range(len(network.weights) - 2, -1, -2):
        slope = slope @ network.weights[layer].T
        if layer:
            slope = slope * network.bends(values[layer // 2])
    return slope


def _log_shares(logits: Array, mask: Array) -> Array:
    """Return the logarithms of the softmax of the logits that the mask allows."""
    allowed = np.where(mask, logits, -np.inf)
    allowed = allowed - allowed.max(axis=1, keepdims=True)
    shares: Array = allowed - np.log(np.exp(allowed).sum(axis=1, keepdims=True))
    return shares
