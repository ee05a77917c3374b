"""A network in the environment of pairs that takes the allowed pair with the largest score."""

from __future__ import annotations

from collections.abc import Callable

from ...simulate.arrays import Array
from ..environments.pairs import PairEnvironment
from .packed_pairs import PackedPairs


class PairPlayer:
    """The player; it draws nothing.

    Args:
        scores: returns the score of each pair, from PAIR_COLUMNS of each [pairs, columns].
    """

    def __init__(self, scores: Callable[[Array], Array]) -> None:
        self._scores = scores

    def actions(self, world: PairEnvironment) -> Array:
        """Return the allowed action with the largest score in each copy [copies]. O(allowed pairs)."""
        pairs = PackedPairs.of(world)
        actions: Array = pairs.actions[pairs.best(self._scores(pairs.rows))]
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
