"""An environment of one copy as a `gymnasium.Env`; needs the extra `rl`.

Rule: an action that the mask forbids is a PolicyError. `action_space.sample()` draws what the mask allows, so that
programs that know no masks run.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError, PolicyError
from .interface import Environment


class MaskedActions(spaces.Discrete):
    """The actions of an environment; what is drawn without a mask is allowed at that moment.

    An action that is drawn before the first decision of an episode is allowed at that of any other, too: some programs
    draw, and then reset.

    Args:
        world: the environment.
        seed: of what is drawn.
    """

    def __init__(self, world: Environment, seed: int | None = None) -> None:
        super().__init__(world.mask.shape[1], seed=seed)
        self._world, self.is_first = world, True

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Draw an action.

        Args:
            mask: int8 [actions], 1: allowed; None: what the environment allows.
            probability: of each action [actions], in place of a mask.
        """
        if mask is None and probability is None:
            mask = self._world.mask[0].astype(np.int8)
            if self.is_first:
                mask[:] = 0
                mask[self._world.first_actions] = 1
        return super().sample(mask, probability)

    def __reduce__(self) -> Any:
        return spaces.Discrete, (int(self.n),)  # a copy has no environment


class GymnasiumFace(gymnasium.Env):
    """An environment for programs that use gymnasium.

    The mask of a decision is `action_masks()`, bool [actions], and `info["action_mask"]`, int8.

    Args:
        world: an environment of one copy.

    Raises:
        ConfigError: it has several copies.
    """

    metadata = {"render_modes": []}

    def __init__(self, world: Environment) -> None:
        if world.copies != 1:
            raise ConfigError("environment", "copies", repr(world.copies), "1, for gymnasium")
        self.world, self._ended = world, False
        self.observation_space = observation_space(world)
        self.action_space = self._actions = MaskedActions(world)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: draws it, and those that follow; None: the next one.
            options: `start`: its first job, or its workload.

        Returns:
            The observation, and `action_mask`.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.world.seed(seed)
        if options and "start" in options:
            self.world.reset([options["start"]])
        elif seed is None:
            self.world.reset()
        self._ended, self._actions.is_first = False, True
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Carry out an action.

        Returns:
            The observation, the reward, whether the episode is over, False, and `action_mask`.

        Raises:
            PolicyError: the mask forbids the action, or the episode is over.
        """
        if self._ended:
            raise PolicyError("", "step", "the episode is over", "reset")
        self.world.step([int(action)])
        self._ended, self._actions.is_first = bool(self.world.done[0]), False
        return self._observation(), float(self.world.reward[0]), self._ended, False, self._info()

    def action_masks(self) -> Array:
        """Return whether each action is allowed, bool [actions]; after the end of an episode none is."""
        mask: Array = self.world.mask[0] & (not self._ended)
        return mask

    def _observation(self) -> dict[str, Array]:
        parts = self.world.last_observations if self._ended else self.world.observations
        return {name: part[0].copy() for name, part in parts.items()}

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks().astype(np.int8)}


def observation_space(world: Environment) -> spaces.Dict:
    """Return the space of the observations of one copy."""
    return spaces.Dict({
        name: spaces.Box(0.0, 1.0, part.shape[1:], np.float32) for name, part in world.observations.items()
    })  # fmt: skip
