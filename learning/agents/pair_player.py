"""An agent in the environment of pairs that takes the allowed pair that its networks score most."""

from __future__ import annotations

from ...simulate.arrays import Array
from ...simulate.learned.pair_heads import PairChooser
from ..environments.pairs import PairEnvironment


class PairPlayer:
    """The player; it draws nothing.

    Args:
        chooser: its head and the scores of its networks.
    """

    def __init__(self, chooser: PairChooser) -> None:
        self._chooser = chooser

    def actions(self, world: PairEnvironment) -> Array:
        """Return the allowed action that is scored most in each copy [copies]. O(allowed pairs)."""
        return self._chooser.actions(world.mask, world.jobs, world.nodes)

    def returns(self, world: PairEnvironment) -> Array:
        """Play the present episodes to their ends, and return the sum of the rewards of each [copies].

        Args:
            world: at the beginning of an episode.
        """
        for _ in range(world.options.episode):
            world.step(self.actions(world))
        returns: Array = world.last_return.copy()
        return returns
