"""The squared agent: a small network scores each allowed pair of job and node; trained by proximal policy optimisation.

Rule: in training actions are drawn, later the pair with the largest score is taken. A future reward counts in full.
Rewards are divided by the mean objective of the epoch before, so that one set of options serves all objectives. The
critic sees sums over the queue; it is of no use after training, and not kept.
Sources: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), sections 4.3, 4.4;
J. Schulman et al., "Proximal policy optimization algorithms" (2017), and "High-dimensional continuous control using
generalized advantage estimation" (2016).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulate.arrays import Array
from ...simulate.learned.pair_network import PAIR_COLUMNS, Layer
from ..environments.pairs import PairEnvironment
from .network import Network
from .packed_pairs import PackedPairs
from .pair_player import PairPlayer

#: Hidden layers of the actor and of the critic.
ACTOR_WIDTHS, CRITIC_WIDTHS = (32, 16, 8), (64, 32)
#: Numbers that the critic sees: see `_state`.
_STATE_COLUMNS = 13
#: Epochs between two sets of weights that are judged, and the seed of the episodes that judge.
JUDGED_EACH, _JUDGING_SEED = 5, 10**9
#: Seeds of episodes that each training has for its epochs.
_EPOCH_SEEDS = 100_000


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


class SquaredTraining:
    """A training, epoch by epoch. What an epoch does depends on the seed, its number and the state before it.

    Args:
        world: each copy plays one episode an epoch.
        judging: plays the same episodes each few epochs of the second half, without drawing; the weights that are best
            in them are the result.
        options: of the training.
        seed: of weights, episodes, draws and batches.
    """

    def __init__(
        self, world: PairEnvironment, judging: PairEnvironment, options: TrainingOptions, seed: int
    ) -> None:  # fmt: skip
        self._world, self._judging, self._options, self._seed = world, judging, options, seed
        generator = np.random.default_rng([seed, 0])
        self._actor = Network((len(PAIR_COLUMNS), *ACTOR_WIDTHS), generator, options.actor_rate, last_scale=0.1)
        self._critic = Network((_STATE_COLUMNS, *CRITIC_WIDTHS), generator, options.critic_rate, last_scale=0.1)
        #: Epochs so far, and the mean objective of the episodes of the last one.
        self.epochs, self.objective = 0, 0.0
        #: The best mean objective of the judged episodes; inf: none was judged. Its layers, or the last ones.
        self.value, self.layers = np.inf, self._actor.plain_layers

    def run(self, epochs: int) -> None:
        """Train for some more epochs, at most to the end of the training."""
        options = self._options
        for epoch in range(self.epochs, min(self.epochs + epochs, options.epochs)):
            falling = 1.0 - 0.9 * epoch / options.epochs
            self._actor.rate, self._critic.rate = options.actor_rate * falling, options.critic_rate * falling
            self._world.seed(self._seed * _EPOCH_SEEDS + epoch)
            generator = np.random.default_rng([self._seed, 1, epoch])
            played = _play(self._world, self._actor, generator)
            objective = float(-self._world.last_return.mean())
            scale = max(self.objective or objective, 1e-9)
            _improve(self._actor, self._critic, played, scale, options, generator)
            self.epochs, self.objective = epoch + 1, objective
            if (options.epochs - self.epochs) % JUDGED_EACH == 0 and 2 * epoch >= options.epochs:
                self._judge()
        if not np.isfinite(self.value):
            self.layers = self._actor.plain_layers

    def _judge(self) -> None:
        self._judging.seed(_JUDGING_SEED)
        value = float(-PairPlayer(self._actor.outputs).returns(self._judging).mean())
        if value < self.value:
            self.value, self.layers = value, self._actor.plain_layers

    def state(self) -> dict[str, Any]:
        """Return all that the rest of the training depends on, as plain values."""
        return {
            "epochs": self.epochs, "objective": self.objective,
            "value": self.value if np.isfinite(self.value) else None, "layers": self.layers,
            "actor": _text_of(self._actor.state()), "critic": _text_of(self._critic.state()),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of a training with the same options and seed."""
        self.epochs, self.objective = state["epochs"], state["objective"]
        self.value = np.inf if state["value"] is None else state["value"]
        self.layers = plain_layers(state["layers"])
        self._actor.restore(_numbers_of(state["actor"]))
        self._critic.restore(_numbers_of(state["critic"]))


def plain_layers(layers: Any) -> tuple[Layer, ...]:
    """Return layers that went through JSON."""
    return tuple((tuple(map(tuple, weights)), tuple(biases)) for weights, biases in layers)


def _text_of(numbers: Array) -> str:
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode()


def _numbers_of(text: str) -> Array:
    return np.frombuffer(base64.b64decode(text), "<f4")


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


def _play(world: PairEnvironment, actor: Network, generator: np.random.Generator) -> _Played:
    """Play one episode in each copy; actions are drawn."""
    parts, chosen, shares, states, rewards = list[PackedPairs](), list[Array](), list[Array](), list[Array](), []
    shift, steps = 0, world.options.episode
    for step in range(steps):
        pairs = PackedPairs.of(world)
        log_shares = pairs.log_shares(actor.outputs(pairs.rows))
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
