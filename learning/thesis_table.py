"""The table of the thesis: rules and agents on the same windows of jobs, one objective at a time.

Rule: rules that block are those of the thesis; masked rules choose among what fits, as the agents do. Each agent is one
training seed of the same recipe, and none is left out. Ratios are paired by windows. Those of waits count a second more
on both sides, because a window can be without any.
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), figures 5.1 to 5.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..simulate.arrays import Array
from ..simulate.learned.pair_network import PairNetwork
from ..simulate.model.workload import Workload
from .agents.pair_player import PairPlayer
from .environments import thesis
from .environments.pair_rules import BLOCKING, NODE_ORDERS, PairRule, masked_rules
from .evaluation import interval

#: Seeds of rules that draw.
_DRAWN_SEEDS = 5
#: The rules, and whether each blocks.
RULES = (
    *((PairRule(job, node), True) for job in BLOCKING for node in list(NODE_ORDERS)[:3]),
    *((rule, False) for rule in masked_rules()),
)


@dataclass(frozen=True, slots=True)
class Contest:
    """The agents against one rule.

    Args:
        rule: the rule.
        blocks: it waits until the job that it chose fits.
        costs: its mean objective in each window [windows].
        published: its mean in the thesis; nan: none.
        ratio: geometric mean of the agents' objective over the rule's, below 1 is better for them; nan: no agents.
        low, high: interval of 95 %, over agents and windows.
        won: share of windows and agents with a ratio below 1.
    """

    rule: PairRule
    blocks: bool
    costs: Array
    published: float
    ratio: float
    low: float
    high: float
    won: float


@dataclass(frozen=True, slots=True)
class ThesisTable:
    """The results for one objective.

    Args:
        objective: its name.
        agents: mean objective of each agent in each window [agents, windows].
        contests: against each rule.
    """

    objective: str
    agents: Array
    contests: tuple[Contest, ...]

    @property
    def windows(self) -> int:
        """Number of windows."""
        return len(self.contests[0].costs)

    def best(self, *, blocks: bool) -> Contest:
        """Return the contest against the rule with the smallest mean, of those that block or of the others."""
        return min((one for one in self.contests if one.blocks == blocks), key=lambda one: float(one.costs.mean()))

    def beaten(self, *, blocks: bool) -> tuple[int, int]:
        """Return how many rules the agents beat, the whole interval below 1, and how many there are."""
        kind = [one for one in self.contests if one.blocks == blocks]
        return sum(one.high < 1.0 for one in kind), len(kind)


def thesis_table(
    trace: Workload, objective: str, agents: Sequence[PairNetwork], starts: Sequence[int] = thesis.WINDOWS,
    progress: Callable[[], None] = lambda: None,
) -> ThesisTable:  # fmt: skip
    """Return the results for one objective.

    Args:
        trace: its jobs are used as the thesis uses them.
        objective: as of PairOptions.
        agents: none, or one for each training seed.
        starts: first jobs of the windows.
        progress: called after each rule and each agent.

    Raises:
        ConfigError: the windows do not fit into the jobs.
    """
    costs = list[Array]()
    for network in agents:
        costs.append(-PairPlayer(network.scores).returns(thesis.windows(trace, objective, "largest", starts)))
        progress()
    played = np.array(costs).reshape(len(agents), len(starts))
    contests = list[Contest]()
    for rule, blocks in RULES:
        results = _rule_costs(trace, objective, rule.job if blocks else "largest", rule, starts)
        published = thesis.PUBLISHED[objective, rule.job][list(NODE_ORDERS).index(rule.node)] if blocks else np.nan
        contests.append(_contest(rule, results, played, published, float(objective == "wait"), blocks=blocks))
        progress()
    return ThesisTable(objective, played, tuple(contests))


def _contest(rule: PairRule, costs: Array, agents: Array, published: float, more: float, *, blocks: bool) -> Contest:
    """Return a contest; `more`: what is added to both sides of a ratio."""
    if not len(agents):
        return Contest(rule, blocks, costs, published, np.nan, np.nan, np.nan, np.nan)
    ratios = np.log(agents + more) - np.log(costs + more)
    ratio, low, high, _ = interval(ratios)
    return Contest(rule, blocks, costs, published, ratio, low, high, float((ratios < 0.0).mean()))


def _rule_costs(trace: Workload, objective: str, due: str, rule: PairRule, starts: Sequence[int]) -> Array:
    """Return the mean objective of a rule in each window; of one that draws, the mean over some seeds."""
    costs = list[Array]()
    for seed in range(_DRAWN_SEEDS if "random" in (rule.job, rule.node) else 1):
        costs.append(-rule.returns(thesis.windows(trace, objective, due, starts, seed), seed))
    mean: Array = np.mean(costs, axis=0)
    return mean
