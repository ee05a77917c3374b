"""Rules for environment A: an order of the jobs, then an order of the nodes; the rivals of every learned policy.

Rule: a rule chooses among the pairs that the mask allows. With an environment whose `due` chooses the job it is a
blocking rule, which waits until its job fits. Jobs that are equal go by submission, nodes that are equal by position;
the fastest of equal nodes is the one with fewest processors.
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), section 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...simulate.arrays import Array
from .pairs import PairEnvironment

#: Keys of jobs by what is seen of them [copies, rows, 4], the smallest first; None: random.
JOB_ORDERS: dict[str, Callable[[Array], Array] | None] = {
    "random": None,
    "first": lambda jobs: np.zeros(jobs.shape[:2]),
    "shortest": lambda jobs: jobs[:, :, 1],
    "smallest": lambda jobs: jobs[:, :, 2],
    "least area": lambda jobs: jobs[:, :, 1] * jobs[:, :, 2],
}
#: Keys of nodes by what is seen of them [copies, nodes, 3], the smallest first; None: random.
NODE_ORDERS: dict[str, Callable[[Array], Array] | None] = {
    "random": None,
    "biggest": lambda nodes: -nodes[:, :, 0],
    "fastest": lambda nodes: nodes[:, :, 0] - 1e3 * nodes[:, :, 2],
    "best fit": lambda nodes: nodes[:, :, 0] * nodes[:, :, 1],
}
#: Orders of jobs that block.
BLOCKING = ("random", "first", "shortest", "smallest")


@dataclass(frozen=True, slots=True)
class PairRule:
    """A rule.

    Args:
        job: a key of JOB_ORDERS.
        node: a key of NODE_ORDERS.
    """

    job: str
    node: str

    @property
    def name(self) -> str:
        """The name for people."""
        return f"{self.job} job, {self.node} node"

    def actions(self, world: PairEnvironment, generator: np.random.Generator) -> Array:
        """Return an allowed action for each copy of an environment [copies]; see `chosen`."""
        return self.chosen(world.mask, world.jobs, world.nodes, generator)

    def chosen(self, mask: Array, jobs: Array, nodes: Array, generator: np.random.Generator) -> Array:
        """Return an allowed action for each decision [decisions].

        Args:
            mask: bool [decisions, jobs x nodes], with a pair for each decision.
            jobs: what is seen of each job [decisions, jobs, columns].
            nodes: what is seen of each node [decisions, nodes, columns].
            generator: of random choices.
        """
        each, width = np.arange(len(mask)), nodes.shape[1]
        allowed: Array = mask.reshape(len(mask), -1, width)
        fits = np.zeros(allowed.shape[:2], bool)
        fits.reshape(-1)[np.flatnonzero(mask) // width] = True  # few pairs are allowed: faster than `any` over all
        job = _first(JOB_ORDERS[self.job], jobs, fits, generator)
        has_room: Array = allowed[each, job]
        node = _first(NODE_ORDERS[self.node], nodes, has_room, generator)
        actions: Array = job * width + node
        return actions

    def returns(self, world: PairEnvironment, seed: int = 0) -> Array:
        """Play the present episodes to their ends, and return the sum of the rewards of each [copies].

        Args:
            world: at the beginning of an episode.
            seed: of random choices.
        """
        generator = np.random.default_rng(seed)
        for _ in range(world.options.episode):
            world.step(self.actions(world, generator))
        returns: Array = world.last_return.copy()
        return returns


class RuleChooser:
    """A rule as what chooses in a `PairQueue`.

    Args:
        rule: the rule.
        seed: of random choices.
    """

    def __init__(self, rule: PairRule, seed: int = 0) -> None:
        self._rule, self._generator = rule, np.random.default_rng(seed)

    def actions(self, mask: Array, jobs: Array, nodes: Array) -> Array:
        """Return the action of each decision; see `PairRule.chosen`."""
        return self._rule.chosen(mask, jobs, nodes, self._generator)


def _first(
    order: Callable[[Array], Array] | None, seen: Array, allowed: Array, generator: np.random.Generator
) -> Array:
    """Return the first allowed row of each copy [copies].

    Args:
        order: keys of the rows, None: random.
        seen: what is seen of them [copies, rows, columns].
        allowed: bool [copies, rows], at least one row of each copy.
        generator: of random choices.
    """
    keys = generator.random(allowed.shape) if order is None else order(seen)
    row: Array = np.where(allowed, keys, np.inf).argmin(axis=1)
    return row


def masked_rules() -> Iterator[PairRule]:
    """Yield all rules that choose among the pairs that are allowed."""
    for job in JOB_ORDERS:
        for node in NODE_ORDERS:
            yield PairRule(job, node)
