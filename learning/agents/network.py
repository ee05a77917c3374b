"""A small network of dense layers with ReLU, which may leak, between them, its gradient, and Adam.

Rule: all rows go through the same weights, in float32; the same seed gives the same weights to the bit on one machine.
Sources: K. He et al., "Delving deep into rectifiers" (2015), for the first weights; D. Kingma, J. Ba, "Adam: a method
for stochastic optimization" (2015), algorithm 1.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...simulate.arrays import Array
from ...simulate.learned.pair_network import Layer

#: Decay of the first and of the second moment, and what keeps a step finite.
_DECAY, _DECAY_SQUARED, _TINY = 0.9, 0.999, 1e-8


class Network:
    """The network; its output is one number a row, if not said otherwise.

    Args:
        widths: of the input and of each hidden layer.
        generator: draws the first weights.
        rate: step size of Adam.
        last_scale: factor on the first weights of the last layer.
        outputs: numbers a row.
        leak: slope of the layers between below 0.
    """

    def __init__(
        self, widths: Sequence[int], generator: np.random.Generator, rate: float, last_scale: float = 1.0, *,
        outputs: int = 1, leak: float = 0.0,
    ) -> None:  # fmt: skip
        self.rate, self.leak, self._steps = rate, np.float32(leak), 0
        self.weights = list[Array]()  # of each layer: [inputs, outputs], then [outputs]
        for inputs, width in zip(widths, (*widths[1:], outputs), strict=True):
            scale = np.sqrt(2.0 / inputs)
            self.weights.append((generator.standard_normal((inputs, width)) * scale).astype(np.float32))
            self.weights.append(np.zeros(width, np.float32))
        self.weights[-2] *= np.float32(last_scale)
        self._moments = [np.zeros_like(part) for part in self.weights]
        self._squares = [np.zeros_like(part) for part in self.weights]

    def outputs(self, rows: Array) -> Array:
        """Return the output of each row [rows, inputs] -> [rows]."""
        return self.layers(rows)[-1][:, 0]

    def layers(self, rows: Array) -> list[Array]:
        """Return the input and the output of each layer, [rows, width] each."""
        values = [rows]
        for layer in range(0, len(self.weights), 2):
            value = values[-1] @ self.weights[layer] + self.weights[layer + 1]
            values.append(self.bent(value) if layer + 2 < len(self.weights) else value)
        return values

    def bent(self, value: Array) -> Array:
        """Return what the next layer gets of the sums of one, in their memory."""
        bent: Array = np.maximum(value, value * self.leak if self.leak else 0.0, out=value)
        return bent

    def bends(self, bent: Array) -> Array:
        """Return by how much each of the numbers that `bent` returned grows with its sum."""
        above: Array = bent > 0.0
        return np.where(above, np.float32(1.0), self.leak) if self.leak else above

    def gradient(self, values: Sequence[Array], slopes: Array) -> list[Array]:
        """Return the gradient of a loss by each weight, in the order of `weights`.

        Args:
            values: what `layers` returned.
            slopes: of the loss by the output of each row [rows] or [rows, outputs].
        """
        gradient, slope = list[Array](), slopes.astype(np.float32).reshape(len(slopes), -1)
        for layer in range(len(self.weights) - 2, -1, -2):
            before = values[layer // 2]
            gradient += [slope.sum(axis=0), before.T @ slope]
            if layer:
                slope = (slope @ self.weights[layer].T) * self.bends(before)
        return gradient[::-1]

    @property
    def plain_layers(self) -> tuple[Layer, ...]:
        """Return the layers as plain numbers."""
        parts = [part.astype(np.float64).tolist() for part in self.weights]
        return tuple(
            (tuple(map(tuple, weights)), tuple(biases)) for weights, biases in zip(parts[::2], parts[1::2], strict=True)
        )

    def state(self) -> str:
        """Return all that training changes, as text: weights, moments, steps so far."""
        parts = [*self.weights, *self._moments, *self._squares, np.array([self._steps], np.float32)]
        return base64.b64encode(np.concatenate([part.ravel() for part in parts]).astype("<f4").tobytes()).decode()

    def restore(self, state: str) -> None:
        """Go on from a state of a network of the same widths."""
        numbers, first = np.frombuffer(base64.b64decode(state), "<f4"), 0
        for part in [*self.weights, *self._moments, *self._squares]:
            part[:] = numbers[first : first + part.size].reshape(part.shape)
            first += part.size
        self._steps = int(numbers[first])

    def learn(self, gradient: Sequence[Array]) -> None:
        """Take one step of Adam against a gradient."""
        self._steps += 1
        pace = self.rate * np.sqrt(1.0 - _DECAY_SQUARED**self._steps) / (1.0 - _DECAY**self._steps)
        for part, slope, moment, square in zip(self.weights, gradient, self._moments, self._squares, strict=True):
            moment += (1.0 - _DECAY) * (slope - moment)
            square += (1.0 - _DECAY_SQUARED) * (slope * slope - square)
            part -= (pace * moment / (np.sqrt(square) + _TINY)).astype(np.float32)


def plain_layers(layers: Any) -> tuple[Layer, ...]:
    """Return layers that went through JSON."""
    return tuple((tuple(map(tuple, weights)), tuple(biases)) for weights, biases in layers)
