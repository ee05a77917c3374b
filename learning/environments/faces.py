"""An environment's faces for gymnasium and for stable-baselines3, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...simulate.errors import ConfigError

if TYPE_CHECKING:
    from .gymnasium_face import GymnasiumFace
    from .vec_env_face import VecEnvFace


class Faces:
    """An environment that has faces."""

    def as_gymnasium(self) -> GymnasiumFace:
        """Return a `gymnasium.Env`. Raises ConfigError: there are several copies, or gymnasium is not installed."""
        face: GymnasiumFace = _imported("gymnasium_face", "gymnasium").GymnasiumFace(self)
        return face

    def as_vec_env(self) -> VecEnvFace:
        """Return a `VecEnv` of stable-baselines3. Raises ConfigError: stable-baselines3 is not installed."""
        face: VecEnvFace = _imported("vec_env_face", "stable_baselines3").VecEnvFace(self)
        return face


def _imported(module: str, needs: str) -> Any:
    """Import a face. Raises ConfigError: a package that it needs is not installed."""
    try:
        return import_module(f".{module}", __package__)
    except ModuleNotFoundError as error:
        if error.name != needs:
            raise
        raise ConfigError("environment", "", f"{needs} is not installed", "pip install 'pilotfish[rl]'") from None
