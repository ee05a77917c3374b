"""The layers of a network in a model's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...simulate.errors import ConfigError
from ...simulate.learned.pair_network import Layer
from ...simulate.wording import count
from .fields import ALLOWED, finite_numbers

#: Layers, and outputs of a layer, at most; a weight is closer to 0 than the last of these.
_MOST_LAYERS, _MOST_OUTPUTS, _MOST_WEIGHT = 8, 256, 1e6


def plain_layers(layers: Sequence[Layer]) -> list[dict[str, Any]]:
    """Return layers as a file holds them."""
    return [{"weights": [list(row) for row in weights], "biases": list(biases)} for weights, biases in layers]


def checked_layers(value: Any, source: str, name: str, inputs: int, outputs: int = 1) -> tuple[Layer, ...]:
    """Return the layers under a name.

    Args:
        value: what the file holds.
        source: the file, for errors.
        name: their key, for errors.
        inputs: numbers that the first layer gets.
        outputs: numbers that the last layer gives.

    Raises:
        ConfigError: they do not fit each other, or are no numbers.
    """
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_LAYERS:
        raise ConfigError(source, name, "no layers, or too many", f"1 to {_MOST_LAYERS} layers")
    layers = list[Layer]()
    for place, layer in enumerate(value):
        key = f"{name}[{place}]"
        if not isinstance(layer, dict) or not isinstance(layer.get("weights"), list):
            raise ConfigError(source, key, "no weights and biases", ALLOWED)
        biases = finite_numbers(layer.get("biases"), source, f"{key}.biases", most=_MOST_WEIGHT)
        width, is_last = len(biases), place == len(value) - 1
        if not (width == outputs if is_last else 1 <= width <= _MOST_OUTPUTS):
            allowed = count(outputs, "output") if is_last else f"1 to {_MOST_OUTPUTS} outputs"
            raise ConfigError(source, f"{key}.biases", f"{width:,} outputs", allowed)
        if len(layer["weights"]) != inputs:
            problem = f"weights of {len(layer['weights']):,} inputs"
            raise ConfigError(source, f"{key}.weights", problem, f"{inputs}, the outputs of the layer before")
        weights = tuple(
            finite_numbers(row, source, f"{key}.weights", width, most=_MOST_WEIGHT) for row in layer["weights"]
        )
        layers.append((weights, biases))
        inputs = width
    return tuple(layers)
