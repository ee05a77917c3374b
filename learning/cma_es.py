"""CMA-ES: a search for the least value of a function of a few real numbers, which sees nothing but values.

Rule: the same seed draws the same points. What it returns is the mean of the final distribution, never the best point
that was tried: where values are noisy, the best one was lucky.
Source: N. Hansen, "The CMA Evolution Strategy: A Tutorial" (arXiv:1604.00772, 2016), appendix A; positive weights only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..simulate.arrays import Array

#: The arrays that a search changes.
_ARRAYS = ("mean", "_covariance", "_path", "_step_path")


class CmaEs:
    """The distribution of the search.

    Args:
        start: its first mean [dimensions].
        sigma: its first step size in each dimension, above 0.
        seed: of the draws.
        population: points of a generation, 4 or more.
    """

    def __init__(self, start: Array, sigma: float, seed: int, population: int) -> None:
        size, parents = len(start), population // 2
        self.mean, self.sigma, self.generation = np.array(start, float), sigma, 0
        self._generator, self.population = np.random.default_rng(seed), population
        self._weights = math.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
        self._weights /= self._weights.sum()
        effective = 1.0 / float((self._weights**2).sum())
        self._effective = effective
        self._path_rate = (4 + effective / size) / (size + 4 + 2 * effective / size)
        self._step_rate = (effective + 2) / (size + effective + 5)
        self._rank_one = 2 / ((size + 1.3) ** 2 + effective)
        rank_mu = 2 * (effective - 2 + 1 / effective) / ((size + 2) ** 2 + effective)
        self._rank_mu = min(1 - self._rank_one, rank_mu)
        self._damping = 1 + 2 * max(0.0, math.sqrt((effective - 1) / (size + 1)) - 1) + self._step_rate
        self._length = math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))  # of a normal vector, expected
        self._covariance = np.eye(size)
        self._path, self._step_path = np.zeros(size), np.zeros(size)

    def points(self) -> Array:
        """Draw the points of a generation [population, dimensions]."""
        scales, axes = self._axes()
        normal = self._generator.standard_normal((self.population, len(self.mean)))
        return self.mean + self.sigma * (normal * scales) @ axes.T

    def learn(self, points: Array, values: Array) -> None:
        """Move the distribution towards the points with the least values.

        Args:
            points: those that were drawn [population, dimensions].
            values: theirs [population]; infinite where a point is of no use.
        """
        size, scales, axes = len(self.mean), *self._axes()
        chosen = points[np.argsort(values, kind="stable")[: len(self._weights)]]
        steps = (chosen - self.mean) / self.sigma
        step = self._weights @ steps
        self.mean = self.mean + self.sigma * step
        self.generation += 1
        whitened = axes @ ((axes.T @ step) / scales)
        rate = self._step_rate
        self._step_path = (1 - rate) * self._step_path + math.sqrt(rate * (2 - rate) * self._effective) * whitened
        length = float(np.linalg.norm(self._step_path))
        settled = math.sqrt(1 - (1 - rate) ** (2 * self.generation))
        moves = length / settled < (1.4 + 2 / (size + 1)) * self._length
        rate = self._path_rate
        self._path = (1 - rate) * self._path + moves * math.sqrt(rate * (2 - rate) * self._effective) * step
        stalled = (1 - moves) * rate * (2 - rate)
        memory = 1 - self._rank_one - self._rank_mu + self._rank_one * stalled
        self._covariance = (
            memory * self._covariance
            + self._rank_one * np.outer(self._path, self._path)
            + self._rank_mu * (steps.T * self._weights) @ steps
        )
        self.sigma *= math.exp(self._step_rate / self._damping * (length / self._length - 1))

    def state(self) -> dict[str, Any]:
        """Return what `restore` goes on from, as plain numbers."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return arrays | {
            "sigma": self.sigma, "generation": self.generation, "generator": self._generator.bit_generator.state
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of a search with the same dimensions and population, to the bit."""
        for name in _ARRAYS:
            setattr(self, name, np.array(state[name], float))
        self.sigma, self.generation = float(state["sigma"]), int(state["generation"])
        self._generator.bit_generator.state = dict(state["generator"])

    def _axes(self) -> tuple[Array, Array]:
        """Return the lengths of the axes of the covariance, and the axes as columns."""
        values, axes = np.linalg.eigh((self._covariance + self._covariance.T) / 2)
        return np.sqrt(np.maximum(values, 1e-20)), axes
