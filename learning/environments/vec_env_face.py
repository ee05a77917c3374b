"""An environment as a `VecEnv` of stable-baselines3, all copies in one call a step; needs the extra `rl`.

Rule: `env_method("action_masks")` returns the masks of all copies as one array, which MaskablePPO of sb3-contrib asks
for before each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from ...simulate.arrays import Array
from .gymnasium_face import observation_space
from .interface import Environment


class VecEnvFace(VecEnv):
    """An environment for stable-baselines3 and sb3-contrib.

    At the end of an episode a copy's info has `terminal_observation`, and `episode` with the sum of the rewards `r` and
    the number of decisions `l`.

    Args:
        world: the environment.
    """

    def __init__(self, world: Environment) -> None:
        self.world, self.render_mode = world, None
        self._lengths, self._actions = np.zeros(world.copies, np.int64), np.zeros(world.copies, np.int64)
        super().__init__(world.copies, observation_space(world), spaces.Discrete(world.mask.shape[1]))

    def reset(self) -> dict[str, Array]:
        """Begin an episode in each copy, and return the observations [copies, ...]."""
        if self._seeds[0] is None:
            self.world.reset()
        else:
            self.world.seed(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self._lengths[:] = 0
        return self._observations()

    def step_async(self, actions: Array) -> None:
        """Note the actions of the next step [copies]."""
        self._actions = np.asarray(actions, np.int64)

    def step_wait(self) -> Any:
        """Carry out the actions; return observations, rewards, ends of episodes [copies], and infos."""
        world, infos = self.world, list[dict[str, Any]]({} for _ in range(self.num_envs))
        world.step(self._actions)
        self._lengths += 1
        for copy in np.flatnonzero(world.done).tolist():
            infos[copy] = {
                "terminal_observation": {name: part[copy].copy() for name, part in world.last_observations.items()},
                "episode": {"r": float(world.last_return[copy]), "l": int(self._lengths[copy])},
                "TimeLimit.truncated": False,
            }
            self._lengths[copy] = 0
        return self._observations(), world.reward.astype(np.float32), world.done.copy(), infos

    def action_masks(self) -> Array:
        """Return whether each action is allowed, bool [copies, actions]."""
        return self.world.mask

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the environment, or this face, has an attribute."""
        return hasattr(self, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute once for each copy. Raises AttributeError."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of this face."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **named: Any) -> Any:
        """Call a method of this face for all copies; the answer has one row for each of `indices`."""
        answer = getattr(self, method_name)(*arguments, **named)
        return answer if indices is None else answer[list(self._get_indices(indices))]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each copy."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Any]:
        """Return None for each copy: nothing is drawn."""
        return [None] * self.num_envs

    def _get_indices(self, indices: Any) -> Iterable[int]:
        return range(self.num_envs) if indices is None else [indices] if isinstance(indices, int) else indices

    def _observations(self) -> dict[str, Array]:
        return {name: part.copy() for name, part in self.world.observations.items()}
