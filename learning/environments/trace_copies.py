"""Copies of a world that play episodes of traces in the memory of a compiled kernel: how they begin and go on.

Rule: what a copy plays depends on the seed, its number and its actions, and not on the number of copies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import PolicyError
from ...simulate.kernels.block import Block
from ...simulate.kernels.object_cache import load
from ...simulate.kernels.orders.tables import RESET, STEP
from .episodes import Episodes
from .faces import Faces


class TraceCopies(Faces):
    """Copies of a world; each step carries out one action in each of them.

    Args:
        kernel: name of the compiled kernel.
        world: its memory; the arrays of an environment are views of it.
        episodes: what the copies play.

    Attributes:
        copies: number of copies.
        mask, reward, done, last_return: see `interface.Environment`.
    """

    def __init__(self, kernel: str, world: Block, episodes: Episodes) -> None:
        self._call, self._world, self._episodes, self.copies = load(kernel), world, episodes, len(world.copies)
        self.mask, self.done = world.mask.view(bool), world.done.view(bool)
        self.reward, self.last_return = world.reward, world.last_total

    def seed(self, seed: int) -> None:
        """Draw all that follows from a seed, and begin an episode in each copy."""
        self._episodes.seed(seed, self.copies)
        self.reset()

    def reset(self, starts: Array | Sequence[int] | None = None) -> None:
        """Begin an episode in each copy.

        Args:
            starts: first job of each [copies], counted through all traces; None: they are drawn.

        Raises:
            ConfigError: an episode does not fit into the traces, or none has a decision.
        """
        upcoming = self._world.upcoming
        if starts is None:
            self._episodes.draw(upcoming, range(self.copies))
        else:
            upcoming[:] = self._episodes.checked(starts)
        self._draw()
        self._call(self._world.address, RESET)
        self._episodes.draw(upcoming, range(self.copies))
        self._pass_over()

    def step(self, actions: Array | Sequence[int]) -> None:
        """Carry out an action in each copy, and go on to its next decision.

        Args:
            actions: numbers of actions, places in the mask [copies].

        Raises:
            PolicyError: the mask forbids an action; nothing has changed.
        """
        world = self._world
        world.action[:] = actions
        self._draw()
        if wrong := self._call(world.address, STEP):
            raise PolicyError("", f"copy {wrong - 1}", f"the mask forbids action {world.action[wrong - 1]}")
        if world.done.any():
            self._episodes.draw(world.upcoming, np.flatnonzero(world.done).tolist())
            self._pass_over()

    def _draw(self) -> None:
        """Draw what the kernel needs for a call; nothing here."""

    def _pass_over(self) -> None:
        """Begin other episodes where one has no decision; each has one here. Raises ConfigError: none has any."""
