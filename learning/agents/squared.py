"""The squared agent: a small network scores each allowed pair of job and node; trained by proximal policy optimisation.

Rule: in training actions are drawn, later the pair with the largest score is taken. A future reward counts in full.
Rewards are divided by the mean objective of the epoch before, so that one set of options serves all objectives. The
critic sees sums over the queue; it is of no use after training, and not kept.
Sources: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), sections 4.3, 4.4;
J. Schulman et al., "Proximal policy optimization algorithms" (2017), and "High-dimensional continuous control using
generalized advantage estimation" (2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...simulate.arrays import Array
from ..environments.pairs import PairEnvironment
from .network import Network
from .packed_pairs import COLUMNS, PackedPairs

#: Hidden layers of the actor and of the critic.
ACTOR_WIDTHS, CRITIC_WIDTHS = (32, 16, 8), (64, 32)
#: Numbers that the critic sees: see `_state`.
_STATE_COLUMNS = 13
#: Epochs between two sets of weights that are judged.
_JUDGED_EACH = 5


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """The options of a training.

    Args:
        epochs: each is one episode in each copy.
        passes: over the decisions of an epoch.
        batches: parts of a pass; each makes one step of both networks.
        actor_rate, critic_rate: step sizes, which fall linearly to a tenth.
        clip: share by which one epoch changes a probability, at most.
        trust: lambda of the advantages, 0 to 1.
    """

    epochs: int = 80
    passes: int = 6
    batches: int = 4
    actor_rate: float = 1e-3
    critic_rate: float = 1e-3
    clip: float = 0.2
    trust: float = 0.97


class SquaredAgent:
    """The agent.

    Args:
        seed: draws its first weights.
        rate: step size of its network.
    """

    def __init__(self, seed: int, rate: float = 0.0) -> None:
        generator = np.random.default_rng([seed, 0])
        self.network = Network((COLUMNS, *ACTOR_WIDTHS), generator, rate, last_scale=0.1)

    def actions(self, world: PairEnvironment) -> Array:
        """Return the allowed action with the largest score in each copy [copies]. O(allowed pairs)."""
        pairs = PackedPairs.of(world)
        actions: Array = pairs.actions[pairs.best(self.network.outputs(pairs.rows))]
        return actions

    def returns(self, world: PairEnvironment) -> Array:
        """Play the present episodes to their ends, and return the sum of the rewards of each [copies].

        Args:
            world: at the beginning of an episode.
        """
        for _ in range(world.options.episode):
            world.step(self.actions(world))
        returns: Array = world.last_return.copy()
        return returns


def train(
    world: PairEnvironment, options: TrainingOptions, seed: int,
    progress: Callable[[int, float], None] | None = None, judging: PairEnvironment | None = None,
) -> SquaredAgent:  # fmt: skip
    """Train an agent.

    Args:
        world: at the beginning of an episode; each copy plays one episode an epoch.
        options: of the training.
        seed: of weights, draws and batches.
        progress: called after each epoch with its number, from 1, and the mean objective of its episodes.
        judging: plays the same episodes each few epochs of the second half, without drawing; the weights that are best
            in them are the result. None: the last ones.
    """
    agent, generator = SquaredAgent(seed, options.actor_rate), np.random.default_rng([seed, 1])
    critic = Network((_STATE_COLUMNS, *CRITIC_WIDTHS), generator, options.critic_rate, last_scale=0.1)
    scale, least, best_weights = 0.0, np.inf, list[Array]()
    for epoch in range(options.epochs):
        falling = 1.0 - 0.9 * epoch / options.epochs
        agent.network.rate, critic.rate = options.actor_rate * falling, options.critic_rate * falling
        played = _play(world, agent, generator)
        objective = float(-world.last_return.mean())
        scale = scale or max(objective, 1e-9)
        _improve(agent.network, critic, played, scale, options, generator)
        scale = max(objective, 1e-9)
        if judging is not None and (options.epochs - 1 - epoch) % _JUDGED_EACH == 0 and 2 * epoch >= options.epochs:
            judging.seed(seed)
            value = float(-agent.returns(judging).mean())
            if value < least:
                least, best_weights = value, [part.copy() for part in agent.network.weights]
        if progress is not None:
            progress(epoch + 1, objective)
    for part, best in zip(agent.network.weights, best_weights or agent.network.weights, strict=True):
        part[:] = best
    return agent


@dataclass(frozen=True, slots=True)
class _Played:
    """The decisions of one epoch, those of a copy `copies` apart.

    Args:
        pairs: of all decisions.
        chosen: the pair of each [decisions].
        log_shares: of the chosen pairs [decisions].
        states: what the critic sees [decisions, _STATE_COLUMNS].
        rewards: float64 [steps, copies].
    """

    pairs: PackedPairs
    chosen: Array
    log_shares: Array
    states: Array
    rewards: Array


def _play(world: PairEnvironment, agent: SquaredAgent, generator: np.random.Generator) -> _Played:
    """Play one episode in each copy; actions are drawn."""
    parts, chosen, shares, states, rewards = list[PackedPairs](), list[Array](), list[Array](), list[Array](), []
    shift, steps = 0, world.options.episode
    for step in range(steps):
        pairs = PackedPairs.of(world)
        log_shares = pairs.log_shares(agent.network.outputs(pairs.rows))
        drawn = pairs.drawn(log_shares, generator.random(world.copies))
        parts.append(pairs)
        chosen.append(drawn + shift)
        shares.append(log_shares[drawn])
        states.append(_state(world, 1.0 - step / steps))
        shift += len(pairs.actions)
        world.step(pairs.actions[drawn])
        rewards.append(world.reward.copy())
    joined = PackedPairs.concatenated(parts)
    return _Played(joined, np.concatenate(chosen), np.concatenate(shares), np.concatenate(states), np.array(rewards))


def _state(world: PairEnvironment, share_left: float) -> Array:
    """Return what the critic sees: means and maxima over waiting jobs, their number and area, the free share."""
    jobs, nodes = world.jobs, world.nodes
    waiting = (jobs[:, :, 3] > 0.0)[:, :, None]
    count = np.maximum(waiting.sum(axis=1), 1)
    state = np.empty((world.copies, _STATE_COLUMNS), np.float32)
    state[:, :4] = (jobs * waiting).sum(axis=1) / count
    state[:, 4:8] = (jobs * waiting).max(axis=1)
    state[:, 8] = count[:, 0] / jobs.shape[1]
    state[:, 9] = (jobs[:, :, 1] * jobs[:, :, 2] * waiting[:, :, 0]).sum(axis=1) / 8.0
    state[:, 10] = (nodes[:, :, 0] * nodes[:, :, 1]).sum(axis=1) / nodes[:, :, 0].sum(axis=1)
    state[:, 11] = nodes[:, :, 1].max(axis=1)
    state[:, 12] = share_left
    return state


def _improve(
    actor: Network, critic: Network, played: _Played, scale: float, options: TrainingOptions,
    generator: np.random.Generator,
) -> None:  # fmt: skip
    """Improve both networks by the decisions of an epoch."""
    steps, copies = played.rewards.shape
    rewards = played.rewards * (steps / scale)  # about -1 a decision
    values = critic.outputs(played.states).astype(np.float64).reshape(steps, copies) * steps
    advantages, following, later = np.empty_like(rewards), np.zeros(copies), np.zeros(copies)
    for step in range(steps - 1, -1, -1):
        surprise = rewards[step] + following - values[step]
        later = surprise + options.trust * later
        advantages[step], following = later, values[step]
    targets = ((advantages + values) / steps).ravel()
    scores = ((advantages - advantages.mean()) / (advantages.std() + 1e-9)).ravel()
    for _ in range(options.passes):
        for batch in np.array_split(generator.permutation(steps * copies), options.batches):
            _improve_actor(actor, played, batch, scores[batch], options.clip)
            layers = critic.layers(played.states[batch])
            error = layers[-1][:, 0] - targets[batch]
            critic.learn(critic.gradient(layers, 2.0 * error / len(batch)))


def _improve_actor(actor: Network, played: _Played, batch: Array, scores: Array, clip: float) -> None:
    """Take one step of the actor.

    Args:
        actor: its network.
        played: the decisions.
        batch: numbers of some of them.
        scores: normalised advantages of these.
        clip: see TrainingOptions.
    """
    pairs, _ = played.pairs.taken(batch)
    chosen = played.chosen[batch] - played.pairs.first[batch] + pairs.first
    layers = actor.layers(pairs.rows)
    log_shares = pairs.log_shares(layers[-1][:, 0])
    ratio = np.exp(log_shares[chosen] - played.log_shares[batch])
    counts = np.where(scores > 0.0, ratio < 1.0 + clip, ratio > 1.0 - clip)
    weight = -scores * ratio * counts / len(batch)  # slope of the loss by the logarithm of the chosen share
    slopes = -np.exp(log_shares) * np.repeat(weight, pairs.counts)
    slopes[chosen] += weight
    actor.learn(actor.gradient(layers, slopes))
