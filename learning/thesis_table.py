"""The table of the thesis: rules and agents on the same windows of jobs, one objective at a time.

Rule: rules that block are those of the thesis; masked rules choose among what fits, as the agents do. An agent is some
training seeds of one recipe, and none is left out. Ratios are paired by windows. Those of waits count a second more
on both sides, because a window can be without any.
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), figures 5.1 to 5.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..simulate.arrays import Array
from ..simulate.learned.pair_heads import PairChooser
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
class Ratio:
    """An agent against a rival.

    Args:
        ratio: geometric mean of its objective over the rival's; below 1 is better for the agent.
        low, high: interval of 95 %, over seeds and windows.
        won: share of seeds and windows with a ratio below 1.
    """

    ratio: float
    low: float
    high: float
    won: float

    @classmethod
    def of(cls, agent: Array, rival: Array, more: float) -> Ratio:
        """Return the ratio.

        Args:
            agent: mean objective of each seed in each window [seeds, windows].
            rival: that of the rival [windows].
            more: what is added to both sides.
        """
        logs = np.log(agent + more) - np.log(rival + more)
        ratio, low, high, _ = interval(logs)
        return cls(ratio, low, high, float((logs < 0.0).mean()))


@dataclass(frozen=True, slots=True)
class Contest:
    """The agents against one rule.

    Args:
        rule: the rule.
        blocks: it waits until the job that it chose fits.
        costs: its mean objective in each window [windows].
        published: its mean in the thesis; nan: none.
        ratios: of each agent.
    """

    rule: PairRule
    blocks: bool
    costs: Array
    published: float
    ratios: Mapping[str, Ratio]


@dataclass(frozen=True, slots=True)
class ThesisTable:
    """The results for one objective.

    Args:
        objective: its name.
        agents: mean objective of each seed of each agent in each window [seeds, windows].
        contests: against each rule.
    """

    objective: str
    agents: Mapping[str, Array]
    contests: tuple[Contest, ...]

    @property
    def windows(self) -> int:
        """Number of windows."""
        return len(self.contests[0].costs)

    def best(self, *, blocks: bool) -> Contest:
        """Return the contest against the rule with the smallest mean, of those that block or of the others."""
        return min((one for one in self.contests if one.blocks == blocks), key=lambda one: float(one.costs.mean()))

    def beaten(self, agent: str, *, blocks: bool) -> tuple[int, int]:
        """Return how many rules an agent beats, the whole interval below 1, and how many there are."""
        kind = [one for one in self.contests if one.blocks == blocks]
        return sum(one.ratios[agent].high < 1.0 for one in kind), len(kind)

    def against(self, agent: str, rival: str) -> Ratio:
        """Return how an agent compares with the geometric mean of another one's seeds."""
        more = _more(self.objective)
        mean = np.exp(np.log(self.agents[rival] + more).mean(axis=0)) - more
        return Ratio.of(self.agents[agent], mean, more)


def thesis_table(
    trace: Workload, objective: str, agents: Mapping[str, Sequence[PairChooser]],
    starts: Sequence[int] = thesis.WINDOWS, progress: Callable[[], None] = lambda: None,
) -> ThesisTable:  # fmt: skip
    """Return the results for one objective.

    Args:
        trace: its jobs are used as the thesis uses them.
        objective: as of PairOptions.
        agents: training seeds of each agent, one or more.
        starts: first jobs of the windows.
        progress: called after each rule and each seed of an agent.

    Raises:
        ConfigError: the windows do not fit into the jobs.
    """
    played = dict[str, Array]()
    for name, choosers in agents.items():
        costs = list[Array]()
        for chooser in choosers:
            costs.append(-PairPlayer(chooser).returns(thesis.windows(trace, objective, "largest", starts)))
            progress()
        played[name] = np.array(costs)
    contests = list[Contest]()
    for rule, blocks in RULES:
        results = _rule_costs(trace, objective, rule.job if blocks else "largest", rule, starts)
        published = thesis.PUBLISHED[objective, rule.job][list(NODE_ORDERS).index(rule.node)] if blocks else np.nan
        ratios = {name: Ratio.of(costs, results, _more(objective)) for name, costs in played.items()}
        contests.append(Contest(rule, blocks, results, published, ratios))
        progress()
    return ThesisTable(objective, played, tuple(contests))


def _more(objective: str) -> float:
    """Return what is added to both sides of a ratio."""
    return float(objective == "wait")


def _rule_costs(trace: Workload, objective: str, due: str, rule: PairRule, starts: Sequence[int]) -> Array:
    """Return the mean objective of a rule in each window; of one that draws, the mean over some seeds."""
    costs = list[Array]()
    for seed in range(_DRAWN_SEEDS if "random" in (rule.job, rule.node) else 1):
        costs.append(-rule.returns(thesis.windows(trace, objective, due, starts, seed), seed))
    mean: Array = np.mean(costs, axis=0)
    return mean
