"""Nonlinear least squares with bounds, for a handful of constants.

Rule: deterministic, and never worse than where it began.
Source: D. Marquardt, J. SIAM 11 (1963): Gauss-Newton, damped by the diagonal; steps are cut at the bounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .figures import Array

Model = Callable[[Array], Array]
_STEP = 1e-6
_TURNS = 200


def least_squares(model: Model, measured: Array, start: Array, low: Array, high: Array) -> tuple[Array, float]:
    """Return the constants at a local minimum, and the sum of squares there.

    Args:
        model: P constants, each of order 1, to N values; piecewise smooth.
        measured: N; start: P, inside the bounds; low, high: P.
    """
    at, damping = start.copy(), 1e-3
    residual = measured - model(at)
    squares = float(residual @ residual)
    for _ in range(_TURNS):
        slopes = jacobian(model, at, low, high)
        normal, gradient = slopes.T @ slopes, slopes.T @ residual
        diagonal = np.maximum(np.diag(normal), 1e-12 * max(1.0, float(np.diag(normal).max())))
        moved = np.clip(at + np.linalg.solve(normal + damping * np.diag(diagonal), gradient), low, high)
        rest = measured - model(moved)
        less = float(rest @ rest)
        if less < squares:
            settled = squares - less <= 1e-13 * squares
            at, residual, squares, damping = moved, rest, less, max(1e-9, damping / 5)
            if settled:
                break
        else:
            damping *= 4
            if damping > 1e9:
                break
    return at, squares


def jacobian(model: Model, at: Array, low: Array, high: Array) -> Array:
    """N x P slopes of the model, by central differences inside the bounds."""
    columns = []
    for i in range(len(at)):
        below, above = at.copy(), at.copy()
        below[i] = max(low[i], at[i] - _STEP)
        above[i] = min(high[i], at[i] + _STEP)
        columns.append((model(above) - model(below)) / (above[i] - below[i]))
    return np.column_stack(columns)
