"""Measured figures, fitted constants with intervals, and nonlinear least squares with bounds.

Rule: every number has its runs or its interval; an undetermined one is None. The search is deterministic, and its
result never worse than its start.
Source: D. Marquardt, J. SIAM 11 (1963): Gauss-Newton, damped by the diagonal; steps are cut at the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..measurement import median_spread

Array = npt.NDArray[np.float64]
Model = Callable[[Array], Array]
_STEP = 1e-6
_ITERATIONS = 200


@dataclass(frozen=True, slots=True)
class MeasuredNumber:
    """A measured number: the median of its runs and their robust spread (1.4826 x MAD), in the number's unit."""

    value: float
    spread: float
    runs: int


def figure(samples: Sequence[float]) -> MeasuredNumber:
    """Return the figure of samples, at least one."""
    return MeasuredNumber(*median_spread(samples), len(samples))


@dataclass(frozen=True, slots=True)
class Constant:
    """A fitted constant and its 95 % interval; None if the data do not determine it."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of a fit: R2 (None if the data do not vary), and residuals in the data's unit."""

    r2: float | None
    rms: float
    worst: float
    samples: int


def quality(measured: Array, fitted: Array) -> Quality:
    """Return how well `fitted` describes `measured`."""
    residual = measured - fitted
    variation = float(((measured - measured.mean()) ** 2).sum())
    squares = float((residual**2).sum())
    r2 = 1.0 - squares / variation if variation > 1e-12 * float((measured**2).sum()) else None
    return Quality(r2, (squares / len(residual)) ** 0.5, float(abs(residual).max()), len(residual))


def intervals(values: Array, jacobian: Array, residual: Array) -> tuple[Constant, ...]:
    """Return constants with 95 % intervals, by linearisation of the fit.

    Args:
        values: P fitted constants.
        jacobian: N x P, of the fitted data.
        residual: N.

    Source: G. Seber, C. Wild, "Nonlinear Regression" (1989), 2.1; quantile of Student's t by Cornish-Fisher.
    """
    samples, constants = jacobian.shape
    scale = np.linalg.norm(jacobian, axis=0)
    if samples <= constants or (scale == 0).any() or np.linalg.cond(jacobian / scale) > 1e8:
        return tuple(Constant(float(value), None, None) for value in values)
    free = samples - constants
    inverse = np.linalg.inv((jacobian / scale).T @ (jacobian / scale))
    errors = np.sqrt(np.diag(inverse) * float(residual @ residual) / free) / scale * student(free)
    return tuple(
        Constant(float(value), float(value - error), float(value + error))
        for value, error in zip(values, errors, strict=True)
    )


def half_width(known: Constant | MeasuredNumber) -> float | None:
    """Return half of the 95 % interval, in the number's unit; None = unknown.

    For a figure it is that of the median, whose deviation is sqrt(pi / 2) of the mean's.
    """
    if isinstance(known, MeasuredNumber):
        return student(known.runs - 1) * 1.2533 * known.spread / known.runs**0.5 if known.runs > 1 else None
    return None if known.low is None or known.high is None else (known.high - known.low) / 2


def student(free: int) -> float:
    """Return the 97.5 % quantile of Student's t with `free` >= 1 degrees of freedom (exact for 1 and 2).

    Source: M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions" (1964), 26.7.5.
    """
    if free <= 2:
        return (12.706204736, 4.302652730)[free - 1]
    z = 1.959963985
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return float(sum(term / free**power for power, term in enumerate(terms)))


def least_squares(model: Model, measured: Array, start: Array, low: Array, high: Array) -> tuple[Array, float]:
    """Return the constants at a local minimum, and the sum of squares there.

    Args:
        model: P constants, each of order 1, to N values; piecewise smooth.
        measured: N values.
        start: P constants inside the bounds.
        low: lower bounds, P values.
        high: upper bounds, P values.
    """
    at, damping = start.copy(), 1e-3
    residual = measured - model(at)
    squares = float(residual @ residual)
    slopes = jacobian(model, at, low, high)
    for _ in range(_ITERATIONS):
        normal, gradient = slopes.T @ slopes, slopes.T @ residual
        diagonal = np.maximum(np.diag(normal), 1e-12 * max(1.0, float(np.diag(normal).max())))
        moved = np.clip(at + np.linalg.solve(normal + damping * np.diag(diagonal), gradient), low, high)
        rest = measured - model(moved)
        less = float(rest @ rest)
        if less < squares:
            converged = squares - less <= 1e-13 * squares
            at, residual, squares, damping = moved, rest, less, max(1e-9, damping / 5)
            if converged:
                break
            slopes = jacobian(model, at, low, high)
        else:
            damping *= 4
            if damping > 1e9:
                break
    return at, squares


def jacobian(model: Model, at: Array, low: Array | float = -np.inf, high: Array | float = np.inf) -> Array:
    """Return the N x P slopes of the model, by central differences inside the bounds."""
    columns = []
    for step in _STEP * np.eye(len(at)):
        below, above = np.maximum(low, at - step), np.minimum(high, at + step)
        columns.append((model(above) - model(below)) / (above - below).sum())
    return np.column_stack(columns)
