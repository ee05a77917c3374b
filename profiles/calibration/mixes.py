"""Tasks in company against the models that share bandwidth: what each says of a mix, its constant fitted.

Rule: the formulas are the engine's for tasks of one thread that never sleep, each a job of its own; a test holds one
against the other. Here all rates are MB/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.platform import ContendingThreads, Contention, PiecewiseLinear
from . import piecewise
from .figures import Array
from .least_squares import least_squares

#: Of the places where a search may begin, those that are followed.
_FOLLOWED = 2


@dataclass(frozen=True, slots=True)
class Mix:
    """Tasks that ran together.

    Args:
        cores: that they had for themselves; more tasks than cores take turns.
        rates: what each moves alone, MB/s; speeds: isolated time / time in company of each.
    """

    cores: int
    rates: tuple[float, ...]
    speeds: tuple[float, ...]

    @property
    def share(self) -> float:
        """Of a core, that each task gets."""
        return min(1.0, self.cores / len(self.rates))


@dataclass(frozen=True, slots=True)
class Sharing:
    """A model that shares bandwidth, MB/s between all; inf = there is always enough (`none`)."""

    contention: Contention
    contending: ContendingThreads
    bandwidth: float = np.inf

    def speeds(self, mix: Mix) -> Array:
        """Return what the model says of each task.

        Source: DESiDE (Chahal et al., ICPE 2019), 4.3; max-min by water-filling.
        """
        rates, share = np.asarray(mix.rates, float), mix.share
        everyone = self.contending is ContendingThreads.ALL
        level = self._level(rates, self.bandwidth if everyone else self.bandwidth / share)
        return share / np.maximum(1.0, rates / level)

    def _level(self, rates: Array, bandwidth: float) -> float:
        if self.contention is Contention.EQUAL_SHARE:
            return bandwidth / len(rates)
        if self.contention is Contention.NONE or rates.sum() <= bandwidth:
            return np.inf
        low = np.sort(rates)
        levels = (bandwidth - np.concatenate([[0.0], np.cumsum(low)[:-1]])) / np.arange(len(low), 0, -1)
        return float(levels[np.argmax(low >= levels)])


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The piecewise-linear model."""

    constants: PiecewiseLinear
    contention: Contention = Contention.PIECEWISE_LINEAR
    contending: ContendingThreads = ContendingThreads.RUNNING

    def speeds(self, mix: Mix) -> Array:
        """Return what the model says of each task."""
        rates = np.asarray(mix.rates, float)
        total, others = np.full(len(rates), rates.sum()), np.full(len(rates), len(rates) - 1.0)
        return mix.share * piecewise.speeds(self.constants, rates, total, others)


Fitted = Sharing | Piecewise


def samples(mixes: Sequence[Mix]) -> list[piecewise.Sample]:
    """Return the tasks of mixes as the fit of the piecewise-linear model takes them, where each had a core."""
    return [
        piecewise.Sample(rate, sum(mix.rates), len(mix.rates) - 1, speed)
        for mix in mixes
        if mix.share == 1.0
        for rate, speed in zip(mix.rates, mix.speeds, strict=True)
    ]


def fit_sharing(mixes: Sequence[Mix], contention: Contention, contending: ContendingThreads) -> Sharing:
    """Return a model with the bandwidth at which it is nearest to the logarithms of the speeds."""
    if contention is Contention.NONE:
        return Sharing(contention, contending)
    unit = max(sum(mix.rates) for mix in mixes)
    seen = np.concatenate([np.log(mix.speeds) for mix in mixes])

    def model(at: Array) -> Array:
        shared = Sharing(contention, contending, unit * float(np.exp(at[0])))
        return np.concatenate([np.log(shared.speeds(mix)) for mix in mixes])

    def squares(start: Array) -> float:
        return float(((seen - model(start)) ** 2).sum())

    low, high = np.array([-7.0]), np.array([1.0])
    starts = sorted((np.array([start]) for start in np.linspace(-3.0, 0.5, 15)), key=squares)[:_FOLLOWED]
    best = min((least_squares(model, seen, start, low, high) for start in starts), key=lambda end: end[1])[0]
    return Sharing(contention, contending, unit * float(np.exp(best[0])))


def errors(fitted: Fitted, mixes: Sequence[Mix]) -> Array:
    """Return for each mix the mean of |log(speed as the model says / as measured)| over its tasks."""
    return np.array([float(np.abs(np.log(fitted.speeds(mix) / mix.speeds)).mean()) for mix in mixes])
