"""The protocol of environments: what faces, rules and agents need of one.

Rule: the arrays are views of the engine's memory, and each step changes them. After the step that ends an episode they
show the next one, which has begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...simulate.arrays import Array


class Environment(Protocol):
    """Copies of a world; each step carries out one action in each of them."""

    @property
    def copies(self) -> int:
        """The number of copies."""
        ...

    @property
    def observations(self) -> Mapping[str, Array]:
        """Parts of the observation by name, float32 in [0, 1] [copies, ...]."""
        ...

    @property
    def last_observations(self) -> Mapping[str, Array]:
        """The same at the end of each copy's last episode."""
        ...

    @property
    def mask(self) -> Array:
        """Actions that are allowed, bool [copies, actions]; at least one."""
        ...

    @property
    def reward(self) -> Array:
        """Rewards of the last step, float64 [copies]."""
        ...

    @property
    def done(self) -> Array:
        """Copies in which the last step ended an episode, bool [copies]."""
        ...

    @property
    def last_return(self) -> Array:
        """Sums of the rewards of the last episodes, float64 [copies]."""
        ...

    @property
    def first_actions(self) -> Array:
        """Actions that the mask allows at the first decision of every episode."""
        ...

    def seed(self, seed: int) -> None:
        """Draw all that follows from a seed, and begin an episode in each copy."""
        ...

    def reset(self, starts: Sequence[int] | None = None) -> None:
        """Begin an episode in each copy.

        Args:
            starts: first job of each, or its workload [copies]; None: they are drawn.
        """
        ...

    def step(self, actions: Array | Sequence[int]) -> None:
        """Carry out an action in each copy.

        Args:
            actions: integers [copies].

        Raises:
            PolicyError: the mask forbids an action; nothing has changed.
        """
        ...
