"""A learned policy that chooses a pair of rules at each decision: one for the next job, one for the cores of its tasks.

Rule: it sees what it saw in training, in worlds in which one-core tasks contend for memory. Sums have a fixed order
and no library of linear algebra; scores are rounded to 40 bits (Veltkamp's splitting), and the first of equal ones is
taken. Nothing is drawn but by the rules that draw.
Source: IRMaSim (Herrera et al., CCGrid 2021), IV-A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..arrays import Array
from ..queue_policies.policy_facts import PolicySpec
from ..world.rule_options import RuleOptions
from .pair_network import Layer

#: Slope of a layer's output below 0, but of the last one.
LEAK = 0.01
_ROUND = 8193.0


class RuleNetwork:
    """Dense layers with leaky ReLU between them; the output is a number for each action.

    Args:
        layers: the first has an input for each number of an observation, the last an output for each action.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = [(np.array(weights), np.array(biases)) for weights, biases in layers]

    def scores(self, state: Array) -> Array:
        """Return the score of each action [actions]; `state`: an observation [numbers]. O(weights)."""
        values = state.astype(np.float64)
        for number, (weights, biases) in enumerate(self._layers, 1):
            sums = biases + (weights * values[:, None]).sum(axis=0)
            values = np.where(sums > 0.0, sums, LEAK * sums) if number < len(self._layers) else sums
        large = values * _ROUND
        scores: Array = large - (large - values)
        return scores


@dataclass(frozen=True, slots=True)
class RuleChooser(PolicySpec):
    """The policy.

    Args:
        name: its SPEC, for errors.
        layers: of its network.
        options: of its decisions; those of its training.
        cores: of the machine of the training, of each processor; empty: it does not see the machine.
    """

    family: ClassVar[str] = "rule-choice"
    compares_nodes: ClassVar[bool] = True
    needs_nodes: ClassVar[bool] = True

    name: str
    layers: tuple[Layer, ...]
    options: RuleOptions
    cores: tuple[int, ...] = ()
    network: RuleNetwork = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", RuleNetwork(self.layers))

    @property
    def parts(self) -> tuple[PolicySpec, ...]:
        """Return no parts: its SPEC names its file."""
        return ()

    def __str__(self) -> str:
        return self.name

    def action(self, state: Array, mask: Array) -> int:
        """Return the allowed action with the largest score; the first of equal ones.

        Args:
            state: what it sees [numbers].
            mask: whether each action is allowed, 0 or 1 [actions]; at least one is.
        """
        return int(np.where(mask, self.network.scores(state), -np.inf).argmax())
