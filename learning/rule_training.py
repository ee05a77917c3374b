"""The training of an agent that chooses pairs of rules, on windows of a trace, update by update.

Rule: windows lie in the jobs that are given, begin on an empty machine, and are drawn once, whatever the seed of an
agent. An agent is judged by its most probable actions in windows that it does not play, though these may overlap; the
weights that cost least there are the result. What an update does depends on the seed, its number and the state before
it, so a training that is resumed where it was judged goes on to the bit.
Source: IRMaSim (Herrera et al., CCGrid 2021), IV-A and VII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..simulate.arrays import Array
from ..simulate.errors import ConfigError
from ..simulate.model.cluster import Cluster
from ..simulate.model.workload import Workload
from ..simulate.wording import count
from ..simulate.world.rule_options import RuleOptions
from .agents.network import plain_layers
from .agents.rule_agents import RuleAgent, RuleTraining, update
from .environments.rule_choice import RuleChoiceEnvironment

#: Windows that a training plays and that judge it, episodes of an update, and updates between verdicts.
PLAYED, JUDGED, COPIES, JUDGED_EACH = 100, 20, 30, 10
#: Seeds of the windows, of what rules draw in verdicts, and seeds of updates for each seed of an agent.
_WINDOW_SEED, _VERDICT_SEED, _UPDATE_SEEDS = 0, 1, 1_000_000


def windows(jobs: Workload, episode: int, numbers: int, seed: int) -> list[Workload]:
    """Return windows that begin anywhere, each with its first submission at 0.

    Args:
        jobs: in the order of submission.
        episode: jobs of a window.
        numbers: how many windows.
        seed: of the draws.

    Raises:
        ConfigError: there are fewer jobs than two windows have.
    """
    if len(jobs) < 2 * episode:
        raise ConfigError(jobs.name, "", count(len(jobs), "job"), f"at least {2 * episode}, two episodes")
    starts = np.random.default_rng(seed).integers(0, len(jobs) - episode + 1, numbers)
    return [window_at(jobs, int(start), episode) for start in starts]


def window_at(jobs: Workload, start: int, episode: int) -> Workload:
    """Return a window with its first submission at 0; `start`: its first job, `episode`: how many it has."""
    rows = np.arange(len(jobs))
    window = jobs.take((rows >= start) & (rows < start + episode))
    return replace(window, submit_time=window.submit_time - window.submit_time[0])


def training_worlds(
    jobs: Workload, cluster: Cluster, options: RuleOptions, episode: int
) -> tuple[RuleChoiceEnvironment, RuleChoiceEnvironment]:
    """Return the environment that a training plays, and the one that judges it.

    Args:
        jobs: those of the training.
        cluster: the nodes.
        options: of the decisions.
        episode: jobs of a window.

    Raises:
        ConfigError: there are too few jobs, or see `RuleChoiceEnvironment`.
    """
    drawn = windows(jobs, episode, PLAYED + JUDGED, _WINDOW_SEED)
    world = RuleChoiceEnvironment(drawn[:PLAYED], cluster, options, copies=COPIES)
    return world, RuleChoiceEnvironment(drawn[PLAYED:], cluster, options, copies=JUDGED, seed=_VERDICT_SEED)


def pair_costs(jobs: Sequence[Workload], cluster: Cluster, options: RuleOptions) -> dict[tuple[str, str], Array]:
    """Return what each pair of rules costs alone, in the measure of the objective [workloads]. Raises ConfigError.

    Args:
        jobs: the workloads.
        cluster: the nodes.
        options: of the decisions; its pairs are those that are played.
    """
    costs, numbers = dict[tuple[str, str], Array](), range(len(jobs))
    for pair in options.pairs:
        alone = replace(options, observation="minimal", actions=(pair,))
        world = RuleChoiceEnvironment(jobs, cluster, alone, copies=len(jobs), seed=_VERDICT_SEED)
        world.reset(numbers)
        costs[pair] = np.full(len(jobs), np.nan)
        while np.isnan(costs[pair]).any():
            world.step([0] * len(jobs))
            ends = world.done & np.isnan(costs[pair])
            costs[pair][ends] = -world.last_return[ends]
    return costs


class RuleLearning:
    """A training.

    Args:
        world: each copy plays one episode an update.
        judging: plays the windows of the verdicts, one in each copy.
        options: of the training.
        seed: of weights, windows and draws.
    """

    def __init__(
        self, world: RuleChoiceEnvironment, judging: RuleChoiceEnvironment, options: RuleTraining, seed: int
    ) -> None:  # fmt: skip
        self._world, self._judging, self._options, self._seed = world, judging, options, seed
        self._agent = RuleAgent(world.state.shape[1], world.mask.shape[1], options, seed)
        #: What the episodes of each update so far cost on average.
        self.course = list[float]()
        #: The least mean cost in the windows of the verdicts, and the layers that had it.
        self.value, self.layers = np.inf, self._agent.layers

    def run(self, until: int) -> None:
        """Train up to an update, and judge the agent."""
        for number in range(len(self.course), until):
            self._world.seed(self._seed * _UPDATE_SEEDS + number)
            generator = np.random.default_rng([self._seed, 1, number])
            mean_return, _ = update(self._agent, self._world, generator, self._options)
            self.course.append(-mean_return)
        self._judging.seed(_VERDICT_SEED)
        returns, _ = self._agent.play(self._judging, range(self._judging.copies))
        value = float(np.exp(np.log(-returns).mean()))
        if value < self.value:
            self.value, self.layers = value, self._agent.layers

    def state(self) -> dict[str, Any]:
        """Return all that the rest of the training depends on, as plain values."""
        return {
            "epochs": len(self.course), "course": [*self.course], "value": self.value, "layers": self.layers,
            "agent": self._agent.state(),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of a training with the same options and seed."""
        self.course, self.value = [*state["course"]], state["value"]
        self.layers = plain_layers(state["layers"])
        self._agent.restore(state["agent"])
