"""Distributions of the sizes and run times of jobs.

Rule: a distribution draws positive numbers from the generator that it is given, and knows nothing of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from .models import Generator


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A lognormal distribution: its median, and the standard deviation of the logarithm."""

    median: float
    deviation: float

    def draw(self, generator: Generator, count: int) -> Array:
        """Return `count` numbers."""
        return np.asarray(np.exp(np.log(self.median) + generator.normal(0.0, self.deviation, count)))

    def within(self, values: Array) -> Array:
        """Return the values: all positive numbers are possible."""
        return values


@dataclass(frozen=True, slots=True)
class PowerOfTwo(LogNormal):
    """A lognormal distribution, rounded to powers of two."""

    def draw(self, generator: Generator, count: int) -> Array:
        """Return `count` powers of two."""
        return np.asarray(np.exp2(np.rint(np.log2(LogNormal.draw(self, generator, count)))))


@dataclass(frozen=True, slots=True)
class Between:
    """Numbers between two bounds with a known mean: `least + (most - least) * u ** k`, `u` uniform in [0, 1).

    The mean of `u ** k` is 1 / (k + 1), which gives k. A mean near a bound puts most numbers there.

    Attributes:
        least: smallest number.
        most: largest number.
        mean: above `least` and at most `most`; or all three are the same.
    """

    least: float
    most: float
    mean: float

    def draw(self, generator: Generator, count: int) -> Array:
        """Return `count` numbers."""
        uniform = generator.random(count)
        if self.mean <= self.least:
            return np.full(count, float(self.least))
        exponent = (self.most - self.mean) / (self.mean - self.least)
        return np.asarray(self.least + (self.most - self.least) * uniform**exponent)

    def within(self, values: Array) -> Array:
        """Return the values, cut to the bounds."""
        return np.clip(values, self.least, self.most)
