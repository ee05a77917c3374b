"""The constants of the piecewise-linear model, from a grid of tasks that ran beside others.

Rule: constants that the grid does not determine are not handed to a simulation (`trusted`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.platform import PiecewiseLinear
from .figures import Array, Constant, Quality, intervals, quality
from .least_squares import Model, jacobian, least_squares

NAMES = ("b", "c", "da", "db", "dc", "dd", "d_weight")
#: Bounds of (b, c, da * db, db, dc, dd, d_weight), all made numbers of order 1 by the largest rate of the grid.
_LOW = np.array([-50.0, 1e-3, -5.0, 1e-4, 1e-3, 0.0, 0.05])
_HIGH = np.array([-1e-3, 2.0, 5.0, 5.0, 20.0, 5.0, 5.0])
#: Places where the search begins; the best of them are followed.
_STARTS, _FOLLOWED = 4000, 12
_LEAST_R2 = 0.8


@dataclass(frozen=True, slots=True)
class Sample:
    """One task in company.

    Args:
        rate: its bandwidth alone, MB/s; total: the sum of all tasks' rates alone, its own included, MB/s.
        others: how many other tasks, >= 0.
        speed: isolated time / time in company, (0, 1] but for noise.
    """

    rate: float
    total: float
    others: int
    speed: float


@dataclass(frozen=True, slots=True)
class PiecewiseFit:
    """The constants (rates in MB/s), each with its interval by name, and how well they describe the grid's speeds:
    those measured, those fitted."""

    constants: PiecewiseLinear
    intervals: dict[str, Constant]
    quality: Quality
    measured: tuple[float, ...]
    fitted: tuple[float, ...]

    @property
    def trusted(self) -> bool:
        """All constants are determined, and the model describes the grid."""
        r2 = self.quality.r2
        return r2 is not None and r2 >= _LEAST_R2 and all(c.low is not None for c in self.intervals.values())


def speeds(constants: PiecewiseLinear, rate: Array, total: Array, others: Array) -> Array:
    """Return the model's speeds.

    Source: IRMaSim (Herrera et al., CCGrid 2021), IV; the smooth step as in the authors' code.
    """
    n = np.minimum(others, constants.n_max)
    x = (rate - (constants.da - n) * constants.db) / (constants.dc - n * constants.dd)
    x = np.clip(x, 0.0, 1.0)
    smooth = 1.0 - x**3 * (x * (6.0 * x - 15.0) + 10.0)
    n = n * constants.d_weight
    lowest = (smooth * n + 1.0) / (n + 1.0)
    linear = 1.0 + constants.b * (total - constants.c)
    return np.where(total < constants.c, 1.0, np.maximum(lowest, linear))


def fit_piecewise(samples: Sequence[Sample], near: PiecewiseLinear | None = None) -> PiecewiseFit | None:
    """Return the least-squares fit of all constants to the logarithms of the speeds, as times err in per cent;
    None where the grid has fewer than two numbers of others.

    Args:
        samples: with at least two different numbers of others above 0 (db and dd say what one more of them does),
            and more samples than constants. n_max becomes the most others of the grid.
        near: constants to begin at; None = anywhere.
    """
    rate, total, speed = (np.array([getattr(s, key) for s in samples], float) for key in ("rate", "total", "speed"))
    others = np.array([s.others for s in samples], float)
    if len(samples) <= len(NAMES) or len(np.unique(others[others > 0])) < 2:
        return None
    unit, most = float(total.max()), int(others.max())

    def meant(at: Array) -> PiecewiseLinear:
        b, c, edge, db, dc, dd, weight = (float(value) for value in at)
        dd = min(dd, 0.95 * dc / most)  # the step keeps a width, also beside the most
        return PiecewiseLinear(b / unit, c * unit, edge / db, db * unit, dc * unit, dd * unit, most, weight)

    def model(at: Array) -> Array:
        return np.log(speeds(meant(at), rate, total, others))

    seen = np.log(speed)
    starts = _starts(model, seen) if near is None else [_place(near, unit)]
    best = min(
        (least_squares(model, seen, start, _LOW, _HIGH) for start in starts),
        key=lambda end: end[1],
    )[0]
    constants = meant(best)

    def named(at: Array) -> PiecewiseLinear:
        b, c, da, db, dc, dd, weight = (float(value) for value in at)
        return PiecewiseLinear(b, c, da, db, dc, dd, most, weight)

    def by_name(at: Array) -> Array:
        return np.log(speeds(named(at * scale), rate, total, others))

    values = np.array([getattr(constants, name) for name in NAMES])
    scale = np.where(values == 0, 1.0, np.abs(values))
    slopes = jacobian(by_name, values / scale, np.full(len(NAMES), -np.inf), np.full(len(NAMES), np.inf)) / scale
    known = dict(zip(NAMES, intervals(values, slopes, seen - model(best)), strict=True))
    fitted = np.exp(model(best))
    return PiecewiseFit(constants, known, quality(speed, fitted), tuple(speed.tolist()), tuple(fitted.tolist()))


def _place(constants: PiecewiseLinear, unit: float) -> Array:
    """Where constants are in the search."""
    b, c, da, db, dc, dd, weight = (getattr(constants, name) for name in NAMES)
    place: Array = np.array([b * unit, c / unit, da * db / unit, db / unit, dc / unit, dd / unit, weight])
    return place.clip(_LOW, _HIGH)


def _starts(model: Model, seen: Array) -> Iterator[Array]:
    """The best of many places spread over where constants usually are."""
    low, high = np.array([-4.0, 0.05, -0.2, 0.005, 0.1, 0.0, 0.4]), np.array([-0.2, 1.0, 0.3, 0.2, 1.0, 0.3, 1.2])
    places = low + (high - low) * np.random.default_rng(1).random((_STARTS, len(NAMES)))
    squares = [float(((seen - model(place)) ** 2).sum()) for place in places]
    yield from places[np.argsort(squares, kind="stable")[:_FOLLOWED]]
