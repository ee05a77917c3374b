"""The agents of the thesis: small networks score allowed pairs of job and node, or jobs; proximal policy optimisation.

Rule: in training rows are drawn, later those with the largest scores are taken. A future reward counts in full.
Rewards are divided by the mean objective of the epoch before, so that one set of options serves all objectives. The
critic sees sums over the queue; it is of no use after training, and not kept. Agents differ in their head, and double
agents in how the shares of their two choices make the share of the decision.
Sources: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), sections 4.3, 4.4;
J. Schulman et al., "Proximal policy optimization algorithms" (2017), and "High-dimensional continuous control using
generalized advantage estimation" (2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulate.arrays import Array
from ...simulate.learned.packed_pairs import PackedPairs
from ...simulate.learned.pair_heads import HEADS, PairChooser, PairHead
from ...simulate.learned.pair_network import Layer
from ..environments.pairs import PairEnvironment
from .network import Network, plain_layers
from .pair_player import PairPlayer

#: How one training step sees the choices of a decision, by the names of the thesis. ADD: as one choice, whose logarithm
#: of the share is the sum of theirs. MEAN: the same with their mean. SEP: each by itself. The thesis adds the losses of
#: two networks, or takes their mean: with Adam, which knows no scale, both would be SEP.
ADD, MEAN, SEP = "add", "mean", "sep"
#: The agents, by name: the name of the head, and how its choices are trained.
AGENTS = {
    "squared": ("squared", SEP), "double-add": ("double", ADD), "double-mean": ("double", MEAN),
    "double-sep": ("double", SEP), "clustered": ("clustered", SEP),
}  # fmt: skip
#: Hidden layers of each actor and of the critic.
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
        agent: a key of AGENTS.
    """

    epochs: int = 80
    passes: int = 6
    batches: int = 4
    actor_rate: float = 1e-3
    critic_rate: float = 1e-3
    clip: float = 0.2
    trust: float = 0.97
    agent: str = "squared"

    @property
    def head(self) -> PairHead:
        """Return the head of the agent."""
        return HEADS[AGENTS[self.agent][0]]


class PairTraining:
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
        self._actors = tuple(
            Network((inputs, *ACTOR_WIDTHS), generator, options.actor_rate, last_scale=0.1)
            for inputs in options.head.inputs
        )
        self._critic = Network((_STATE_COLUMNS, *CRITIC_WIDTHS), generator, options.critic_rate, last_scale=0.1)
        #: Mean objective of the episodes of each epoch so far.
        self.course = list[float]()
        #: The best mean objective of the judged episodes; inf: none was judged. Its networks, or the last.
        self.value, self.networks = np.inf, self._plain_networks()

    @property
    def epochs(self) -> int:
        """Their number so far."""
        return len(self.course)

    def run(self, epochs: int) -> None:
        """Train for some more epochs, at most to the end of the training."""
        options = self._options
        for epoch in range(self.epochs, min(self.epochs + epochs, options.epochs)):
            falling = 1.0 - 0.9 * epoch / options.epochs
            for network in self._actors:
                network.rate = options.actor_rate * falling
            self._critic.rate = options.critic_rate * falling
            self._world.seed(self._seed * _EPOCH_SEEDS + epoch)
            generator = np.random.default_rng([self._seed, 1, epoch])
            played = _play(self._world, options.head, self._actors, generator)
            objective = float(-self._world.last_return.mean())
            scale = max(self.course[-1] if self.course else objective, 1e-9)
            _improve(self._actors, self._critic, played, scale, options, generator)
            self.course.append(objective)
            if (options.epochs - self.epochs) % JUDGED_EACH == 0 and 2 * epoch >= options.epochs:
                self._judge()
        if not np.isfinite(self.value):
            self.networks = self._plain_networks()

    def _plain_networks(self) -> tuple[tuple[Layer, ...], ...]:
        return tuple(network.plain_layers for network in self._actors)

    def _judge(self) -> None:
        self._judging.seed(_JUDGING_SEED)
        chooser = PairChooser(self._options.head, [network.outputs for network in self._actors])
        value = float(-PairPlayer(chooser).returns(self._judging).mean())
        if value < self.value:
            self.value, self.networks = value, self._plain_networks()

    def state(self) -> dict[str, Any]:
        """Return all that the rest of the training depends on, as plain values."""
        return {
            "epochs": self.epochs, "course": [*self.course],
            "value": self.value if np.isfinite(self.value) else None, "networks": self.networks,
            "actors": [network.state() for network in self._actors],
            "critic": self._critic.state(),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of a training with the same options and seed."""
        self.course = [*state["course"]]
        self.value = np.inf if state["value"] is None else state["value"]
        self.networks = tuple(map(plain_layers, state["networks"]))
        for network, text in zip(self._actors, state["actors"], strict=True):
            network.restore(text)
        self._critic.restore(state["critic"])


@dataclass(frozen=True, slots=True)
class _Choices:
    """The choices of one network in some decisions.

    Args:
        pairs: the rows of all decisions.
        chosen: the row of each [decisions].
        log_shares: of the chosen rows [decisions].
    """

    pairs: PackedPairs
    chosen: Array
    log_shares: Array

    @classmethod
    def concatenated(cls, parts: Sequence[_Choices]) -> _Choices:
        """Return the choices of several sets of decisions, one set after the other."""
        shifts = np.cumsum([0, *(len(part.pairs.actions) for part in parts)])
        return cls(
            PackedPairs.concatenated([part.pairs for part in parts]),
            np.concatenate([part.chosen + shift for part, shift in zip(parts, shifts, strict=False)]),
            np.concatenate([part.log_shares for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class _Played:
    """The decisions of one epoch, those of a copy `copies` apart.

    Args:
        choices: of each network.
        states: what the critic sees [decisions, _STATE_COLUMNS].
        rewards: float64 [steps, copies].
    """

    choices: tuple[_Choices, ...]
    states: Array
    rewards: Array


def _play(
    world: PairEnvironment, head: PairHead, actors: Sequence[Network], generator: np.random.Generator
) -> _Played:  # fmt: skip
    """Play one episode in each copy; rows are drawn."""
    parts, states, rewards = [list[_Choices]() for _ in actors], list[Array](), list[Array]()

    def draw(number: int, pairs: PackedPairs) -> Array:
        log_shares = pairs.log_shares(actors[number].outputs(pairs.rows))
        drawn = pairs.drawn(log_shares, generator.random(world.copies))
        parts[number].append(_Choices(pairs, drawn, log_shares[drawn]))
        return drawn

    steps = world.options.episode
    for step in range(steps):
        states.append(_state(world, 1.0 - step / steps))
        world.step(head.actions(world.mask, world.jobs, world.nodes, draw))
        rewards.append(world.reward.copy())
    return _Played(tuple(map(_Choices.concatenated, parts)), np.concatenate(states), np.array(rewards))


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
    actors: Sequence[Network], critic: Network, played: _Played, scale: float, options: TrainingOptions,
    generator: np.random.Generator,
) -> None:  # fmt: skip
    """Improve all networks by the decisions of an epoch."""
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
            _improve_actors(actors, played.choices, batch, scores[batch], options)
            layers = critic.layers(played.states[batch])
            error = layers[-1][:, 0] - targets[batch]
            critic.learn(critic.gradient(layers, 2.0 * error / len(batch)))


def _improve_actors(
    actors: Sequence[Network], choices: Sequence[_Choices], batch: Array, scores: Array, options: TrainingOptions
) -> None:
    """Take one step of each actor.

    Args:
        actors: the networks.
        choices: of each of them.
        batch: numbers of some decisions.
        scores: normalised advantages of these.
        options: of the training.
    """
    parts, changes = list[tuple[PackedPairs, Array, list[Array], Array]](), list[Array]()
    for actor, played in zip(actors, choices, strict=True):
        pairs, _ = played.pairs.taken(batch)
        chosen = played.chosen[batch] - played.pairs.first[batch] + pairs.first
        layers = actor.layers(pairs.rows)
        log_shares = pairs.log_shares(layers[-1][:, 0])
        parts.append((pairs, chosen, layers, log_shares))
        changes.append(log_shares[chosen] - played.log_shares[batch])
    for place, (actor, (pairs, chosen, layers, log_shares)) in enumerate(zip(actors, parts, strict=True)):
        ratio = np.exp(_change(changes, place, AGENTS[options.agent][1]))
        counts = np.where(scores > 0.0, ratio < 1.0 + options.clip, ratio > 1.0 - options.clip)
        weight = -scores * ratio * counts / len(batch)  # slope of the loss by the logarithm of the chosen share
        slopes = -np.exp(log_shares) * np.repeat(weight, pairs.counts)
        slopes[chosen] += weight
        actor.learn(actor.gradient(layers, slopes))


def _change(changes: Sequence[Array], place: int, kind: str) -> Array:
    """Return the change of the logarithm of the share that a network is trained by [decisions]; see ADD, MEAN, SEP."""
    if kind == SEP:
        return changes[place]
    change: Array = np.sum(changes, axis=0)
    return change if kind == ADD else change / len(changes)
