"""Growth of a command's need with the amounts in it: numbers among its words, and sizes of its input files.

Model: need = base + factor x product of amount ^ exponent, with base and factor 0 or more. The exponents are not chosen
but weighed: each combination of a grid counts by how well it explains the runs and by how common it is. So one run
gives a wide interval, and runs that differ in an amount narrow it. An amount that is the same in all runs and in the
command in question explains nothing.

Rule: an amount is left out unless it is known of each run and of the command in question; its effect then shows as
scatter.
Complexity: O(runs x combinations); 161 combinations for one amount, 289 for two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...simulate.arrays import Array

#: Most amounts that are weighed together; of more, those count that go best with the needs.
MOST = 2
#: Distance of the exponents of the grid, by the number of amounts.
_STEP = {1: 0.025, 2: 0.25}
_LEAST, _LARGEST = -1.0, 3.0
#: How common exponents are before a run is seen: the need does not depend on the amount, is proportional to it, shrinks
#: with it, or else grows by any power up to the largest. So with one run the interval from the tenth to the ninetieth
#: percent holds what is constant, linear and quadratic.
_CONSTANT, _LINEAR, _SHRINKS = 0.25, 0.35, 0.05
#: How common a base that does not depend on the amounts is, relative to none: every program takes time to start.
_WITH_BASE = 1.0
#: Scatter between runs of one command, as a standard deviation of the logarithm, and the runs that this stands for.
_SCATTER, _PRIOR_RUNS = 0.05, 1.0
LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9
#: Largest logarithm of a need: that of nearly the largest number.
_FARTHEST = 690.0
#: Nine equally likely values of a standard normal distribution.
_NORMAL = np.array([-1.5932, -0.9674, -0.5895, -0.2822, 0.0, 0.2822, 0.5895, 0.9674, 1.5932])


@dataclass(frozen=True, slots=True)
class Growth:
    """The predicted need, and how it depends on the amounts.

    Args:
        value: median, in the unit of the needs.
        low, high: the need is below `low` and above `high` with probability 0.1 each.
        exponents: low and high exponent of each amount in which runs or what is asked differ.
    """

    value: float
    low: float
    high: float
    exponents: Mapping[str, tuple[float, float]]


def grown(amounts: Sequence[Mapping[str, float]], needs: Sequence[float], asked: Mapping[str, float]) -> Growth:
    """Return the need with the asked amounts.

    Args:
        amounts: of each run, by name; at least one run.
        needs: of each run, > 0.
        asked: amounts of the command that is asked about.
    """
    needed = np.log(np.asarray(needs, float))
    names, ratios = _ratios(amounts, asked)
    if len(names) > MOST:
        names, ratios = _best(names, ratios, needed)
    exponents, weights = _grid(len(names))
    levels = np.exp(np.clip(ratios @ exponents.T, -60.0, 60.0))  # [runs, combinations], 1 as asked
    centres, spreads, freedom, shares = _fits(levels, needed, weights)
    # values of Student's distribution from those of the normal one (Cornish and Fisher, first order)
    values = centres[:, None] + spreads[:, None] * _NORMAL * (1.0 + (_NORMAL**2 + 1.0) / (4.0 * freedom[:, None]))
    logs = _quantiles(values.ravel(), np.repeat(shares, len(_NORMAL)), (LOW, MIDDLE, HIGH))
    low, value, high = np.exp(np.clip(logs, -_FARTHEST, _FARTHEST))
    by_combination = shares.reshape(2, -1).sum(axis=0)
    ranges = {
        name: tuple(float(exponent) for exponent in _quantiles(exponents[:, i], by_combination, (LOW, HIGH)))
        for i, name in enumerate(names)
    }
    return Growth(float(value), float(low), float(high), ranges)  # type: ignore[arg-type]


def _ratios(amounts: Sequence[Mapping[str, float]], target: Mapping[str, float]) -> tuple[list[str], Array]:
    """Return the amounts that differ, and the logarithm of their ratio to what is asked, float [runs, amounts]."""
    names, columns = [], []
    for name, amount in target.items():
        values = [one[name] for one in amounts if name in one]
        if len(values) < len(amounts) or all(value == amount for value in values):
            continue
        column = np.abs(np.array([*values, amount]))
        logs = np.log(column + (column.min() == 0.0))  # amounts from 0 on count from 1 on
        names.append(name)
        columns.append(logs[:-1] - logs[-1])
    return names, np.array(columns).reshape(len(names), len(amounts)).T


def _best(names: list[str], ratios: Array, needed: Array) -> tuple[list[str], Array]:
    """Return the `MOST` amounts that go best with the needs."""
    apart = ratios - ratios.mean(axis=0)
    size = np.sqrt((apart**2).sum(axis=0))
    together = np.abs(apart.T @ (needed - needed.mean())) / np.where(size > 0, size, 1.0)
    places = sorted(np.argsort(-together, kind="stable")[:MOST].tolist())
    return [names[i] for i in places], ratios[:, places]


@cache
def _grid(dimensions: int) -> tuple[Array, Array]:
    """Return all combinations of exponents, float [combinations, amounts], and how common each is."""
    if not dimensions:
        return np.zeros((1, 0)), np.ones(1)
    step = _STEP[dimensions]
    line = np.arange(round(_LEAST / step), round(_LARGEST / step) + 1) * step
    common = np.where(line < 0, _SHRINKS / (line < 0).sum(), 0.0)
    common[line > 0] = (1.0 - _CONSTANT - _LINEAR - _SHRINKS) / (line > 0).sum()
    common[line == 0.0] += _CONSTANT
    common[line == 1.0] += _LINEAR
    axes = np.meshgrid(*[line] * dimensions, indexing="ij")
    shares = np.meshgrid(*[common] * dimensions, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1), np.prod(shares, axis=0).ravel()


def _fits(levels: Array, needed: Array, common: Array) -> tuple[Array, Array, Array, Array]:
    """Fit each combination, without and with a base, by least squares of the relative errors.

    Returns:
        For all combinations without a base, then for all with one: logarithm of the predicted need; standard deviation
        of a need around it, with that of the fit; degrees of freedom of the deviation; share of the whole weight.
    """
    runs = len(needed)
    relative, ones = levels / np.exp(needed)[:, None], np.exp(-needed)[:, None]
    zz, zo = (relative**2).sum(axis=0), (relative * ones).sum(axis=0)
    oo, z, o = (ones**2).sum(axis=0), relative.sum(axis=0), ones.sum(axis=0)
    factor = z / zz
    nonsingular = zz * oo - zo**2 > 1e-9 * zz * oo
    determinants = np.where(nonsingular, zz * oo - zo**2, 1.0)
    base, slope = (o * zz - z * zo) / determinants, (z * oo - o * zo) / determinants
    proper = nonsingular & (base > 0) & (slope > 0)
    base, slope = np.where(proper, base, 0.0), np.where(proper, slope, factor)
    sums, centres, leverages = [], [], []
    for start, rise, scale in (
        (np.zeros_like(factor), factor, 1.0 / zz),
        (base, slope, np.where(proper, (zz - 2.0 * zo + oo) / determinants, 1.0 / zz)),
    ):
        errors = np.log(start + rise * levels) - needed[:, None]
        sums.append((errors**2).sum(axis=0))
        centres.append(np.log(start + rise))
        leverages.append(scale / (start + rise) ** 2)
    squares = np.concatenate(sums) + _PRIOR_RUNS * _SCATTER**2
    freedom = np.repeat([max(runs + _PRIOR_RUNS - fitted, 1.0) for fitted in (1, 2)], len(factor))
    weights = np.log(np.concatenate([common, np.where(proper, _WITH_BASE, 0.0) * common]) + 1e-300)
    weights -= freedom / 2 * np.log(squares)
    shares = np.exp(weights - weights.max())
    spreads = np.sqrt(squares / freedom * (1.0 + np.concatenate(leverages)))
    return np.concatenate(centres), spreads, freedom, shares / shares.sum()


def _quantiles(values: Array, weights: Array, levels: Sequence[float]) -> Array:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array(levels) * reached[-1])
    return np.asarray(values[order[np.minimum(places, len(order) - 1)]])
