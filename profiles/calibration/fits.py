"""Contention models fitted to measured mixes of tasks, and the choice of the best one.

Rule: the formulas are the engine's for tasks of one thread that never sleep, each a job of its own; a test compares
them. Constants that the mixes do not determine are not used (`trusted`). A model is scored on mixes that it was not
fitted to, and replaces the default only if it is clearly better: by at least a tenth of its error, and by more than
twice the standard error over the mixes. Rates are MB/s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...simulate.model.cluster import ContendingThreads, Contention, PiecewiseLinear
from .statistics import Array, Constant, Model, Quality, intervals, jacobian, least_squares, quality

NAMES = ("b", "c", "da", "db", "dc", "dd", "d_weight")
#: Bounds of (b, c, da * db, db, dc, dd, d_weight), scaled to order 1 by the largest rate.
_LOW = np.array([-50.0, 1e-3, -5.0, 1e-4, 1e-3, 0.0, 0.05])
_HIGH = np.array([-1e-3, 2.0, 5.0, 5.0, 20.0, 5.0, 5.0])
#: Random starting points of the search; the best of them are refined.
_STARTS, _FOLLOWED_STARTS = 4000, 12
_LEAST_R2 = 0.8
#: Starting points of `fit_sharing` that are refined.
_FOLLOWED = 2
_FOLDS = 6
_LEAST_GAIN, _ERRORS = 0.1, 2.0
_DEFAULT = (Contention.MAX_MIN, ContendingThreads.RUNNING)


@dataclass(frozen=True, slots=True)
class Sample:
    """One task next to others: its MB/s alone, that of all tasks together, and isolated time / time with them."""

    rate: float
    total: float
    others: int
    speed: float


@dataclass(frozen=True, slots=True)
class PiecewiseFit:
    """The piecewise-linear model's constants (rates in MB/s), and the speeds of the samples."""

    constants: PiecewiseLinear
    intervals: dict[str, Constant]
    quality: Quality
    measured: tuple[float, ...]
    fitted: tuple[float, ...]

    @property
    def trusted(self) -> bool:
        """All constants are determined, and the model describes the samples."""
        r2 = self.quality.r2
        return r2 is not None and r2 >= _LEAST_R2 and all(c.low is not None for c in self.intervals.values())


def speeds(constants: PiecewiseLinear, rate: Array, total: Array, others: Array) -> Array:
    """Return the model's speeds.

    Args:
        constants: of the model.
        rate: bandwidth of each task alone, MB/s, N values.
        total: sum of the rates of all tasks alone, MB/s, N values.
        others: number of other tasks, >= 0, N values.

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
    """Return the least-squares fit to the logarithms of the speeds (relative errors), None with too few samples.

    Args:
        samples: more than constants, with at least two numbers of others above 0 (db and dd are the effect of one
            more). n_max becomes the most others.
        near: constants to start from; None = a global search.
    """
    columns = ("rate", "total", "others", "speed")
    rate, total, others, speed = (np.array([getattr(one, key) for one in samples], float) for key in columns)
    if len(samples) <= len(NAMES) or len(np.unique(others[others > 0])) < 2:
        return None
    unit, most = float(total.max()), int(others.max())

    def constants_at(at: Array) -> PiecewiseLinear:
        b, c, edge, db, dc, dd, weight = (float(value) for value in at)
        dd = min(dd, 0.95 * dc / most)  # the step keeps a width with the most others, too
        return PiecewiseLinear(b / unit, c * unit, edge / db, db * unit, dc * unit, dd * unit, most, weight)

    def model(at: Array) -> Array:
        return np.log(speeds(constants_at(at), rate, total, others))

    log_speeds = np.log(speed)
    starts = _starts(model, log_speeds) if near is None else [_place(near, unit)]
    best = min((least_squares(model, log_speeds, start, _LOW, _HIGH) for start in starts), key=lambda end: end[1])[0]
    constants = constants_at(best)

    def by_name(at: Array) -> Array:
        named: dict[str, Any] = dict(zip(NAMES, (at * scale).tolist(), strict=True))
        return np.log(speeds(PiecewiseLinear(**named, n_max=most), rate, total, others))

    values = np.array([getattr(constants, name) for name in NAMES])
    scale = np.where(values == 0, 1.0, np.abs(values))
    slopes = jacobian(by_name, values / scale) / scale
    estimates = dict(zip(NAMES, intervals(values, slopes, log_speeds - model(best)), strict=True))
    fitted = np.exp(model(best))
    return PiecewiseFit(constants, estimates, quality(speed, fitted), tuple(speed.tolist()), tuple(fitted.tolist()))


def _place(constants: PiecewiseLinear, unit: float) -> Array:
    b, c, da, db, dc, dd, weight = (getattr(constants, name) for name in NAMES)
    place: Array = np.array([b * unit, c / unit, da * db / unit, db / unit, dc / unit, dd / unit, weight])
    return place.clip(_LOW, _HIGH)


def _starts(model: Model, logs: Array) -> Iterator[Array]:
    """Yield the best of many points spread over the usual range of the constants."""
    low, high = np.array([-4.0, 0.05, -0.2, 0.005, 0.1, 0.0, 0.4]), np.array([-0.2, 1.0, 0.3, 0.2, 1.0, 0.3, 1.2])
    places = low + (high - low) * np.random.default_rng(1).random((_STARTS, len(NAMES)))
    squares = [float(((logs - model(place)) ** 2).sum()) for place in places]
    yield from places[np.argsort(squares, kind="stable")[:_FOLLOWED_STARTS]]


@dataclass(frozen=True, slots=True)
class Mix:
    """Tasks on cores of their own, in turns if they are more: MB/s of each alone, isolated time / time together."""

    cores: int
    rates: tuple[float, ...]
    speeds: tuple[float, ...]

    @property
    def share(self) -> float:
        """Share of a core that each task gets."""
        return min(1.0, self.cores / len(self.rates))


class MixTable:
    """The tasks of M mixes as arrays of M rows and as many columns as the largest mix has tasks.

    Args:
        mixes: at least one.
    """

    def __init__(self, mixes: Sequence[Mix]) -> None:
        count = np.array([len(mix.rates) for mix in mixes])
        self.share = np.array([[mix.share] for mix in mixes])
        self.exists = np.arange(count.max()) < count[:, None]  # else the row is over
        self.rates = np.zeros(self.exists.shape)
        self.rates[self.exists] = [rate for mix in mixes for rate in mix.rates]
        self.count = count[:, None]
        self.rising = np.sort(np.where(self.exists, self.rates, np.inf), axis=1)
        lower = np.cumsum(np.where(self.exists, self.rising, 0.0), axis=1)
        self.total = lower[:, -1:]
        self.lower = np.hstack((np.zeros_like(self.total), lower[:, :-1]))
        self.rest = np.maximum(self.count - np.arange(count.max()), 1)


@dataclass(frozen=True, slots=True)
class SharedBandwidth:
    """A model that shares a bandwidth, MB/s, between all tasks; inf = unlimited (`none`)."""

    contention: Contention
    contending: ContendingThreads
    bandwidth: float = np.inf

    def speeds(self, mix: Mix) -> Array:
        """Return the model's speed of each task of a mix."""
        return self.speeds_of(MixTable((mix,)))

    def speeds_of(self, mixes: MixTable) -> Array:
        """Return the model's speed of each task, one mix after the other. O(tasks).

        Source: DESiDE (Chahal et al., ICPE 2019), 4.3; max-min by water-filling.
        """
        everyone = self.contending is ContendingThreads.ALL
        level = self._levels(mixes, self.bandwidth if everyone else self.bandwidth / mixes.share)
        task_speeds: Array = (mixes.share / np.maximum(1.0, mixes.rates / level))[mixes.exists]
        return task_speeds

    def _levels(self, mixes: MixTable, bandwidth: Array | float) -> Array | float:
        """Return the most that a task of each mix gets, MB/s."""
        if self.contention is Contention.EQUAL_SHARE:
            return bandwidth / mixes.count
        if self.contention is Contention.NONE:
            return np.inf
        levels = (bandwidth - mixes.lower) / mixes.rest
        first = np.argmax(mixes.rising >= levels, axis=1)[:, None]
        return np.where(mixes.total <= bandwidth, np.inf, np.take_along_axis(levels, first, axis=1))


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The piecewise-linear model."""

    constants: PiecewiseLinear
    contention: Contention = Contention.PIECEWISE_LINEAR
    contending: ContendingThreads = ContendingThreads.RUNNING

    def speeds(self, mix: Mix) -> Array:
        """Return the model's speed of each task."""
        rates = np.asarray(mix.rates, float)
        total, others = np.full(len(rates), rates.sum()), np.full(len(rates), len(rates) - 1.0)
        return mix.share * speeds(self.constants, rates, total, others)


Fitted = SharedBandwidth | Piecewise


def samples(mixes: Sequence[Mix]) -> list[Sample]:
    """Return the tasks of mixes with a core per task, as samples for the piecewise-linear model."""
    return [
        Sample(rate, sum(mix.rates), len(mix.rates) - 1, speed)
        for mix in mixes
        if mix.share == 1.0
        for rate, speed in zip(mix.rates, mix.speeds, strict=True)
    ]


def fit_sharing(mixes: Sequence[Mix], contention: Contention, contending: ContendingThreads) -> SharedBandwidth:
    """Return a model with the bandwidth that best fits the logarithms of the speeds.

    Args:
        mixes: at least one.
        contention: how the tasks share the bandwidth; `none` needs no fit.
        contending: which threads take part in contention.
    """
    if contention is Contention.NONE:
        return SharedBandwidth(contention, contending)
    table = MixTable(mixes)
    unit = float(table.total.max())
    log_speeds = np.concatenate([np.log(mix.speeds) for mix in mixes])

    def model(at: Array) -> Array:
        return np.log(SharedBandwidth(contention, contending, unit * float(np.exp(at[0]))).speeds_of(table))

    def squares(start: Array) -> float:
        return float(((log_speeds - model(start)) ** 2).sum())

    low, high = np.array([-7.0]), np.array([1.0])
    starts = sorted((np.array([start]) for start in np.linspace(-3.0, 0.5, 15)), key=squares)[:_FOLLOWED]
    best = min((least_squares(model, log_speeds, start, low, high) for start in starts), key=lambda end: end[1])[0]
    return SharedBandwidth(contention, contending, unit * float(np.exp(best[0])))


def errors(fitted: Fitted, mixes: Sequence[Mix]) -> Array:
    """Return for each mix the mean of |log(modelled speed / measured speed)| over its tasks."""
    return np.array([float(np.abs(np.log(fitted.speeds(mix) / mix.speeds)).mean()) for mix in mixes])


@dataclass(frozen=True, slots=True)
class ModelFit:
    """A model fitted to all mixes.

    Args:
        error: mean of |log(modelled speed / measured speed)| of mixes that it was not fitted to.
        memory_bandwidth: bytes/s of the cores of the mixes; None = the model has no such constant.
    """

    contention: Contention
    contending_threads: ContendingThreads
    error: float
    memory_bandwidth: float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen model, all candidates (best first), and the number of mixes."""

    contention: Contention
    contending_threads: ContendingThreads
    candidates: tuple[ModelFit, ...]
    mixes: int

    @property
    def default(self) -> bool:
        """No model was clearly better than the default."""
        return (self.contention, self.contending_threads) == _DEFAULT


def choose(mixes: Sequence[Mix], fitted: PiecewiseFit | None = None) -> Choice | None:
    """Return the model that describes mixes best, None with fewer mixes than folds.

    Args:
        mixes: measured.
        fitted: the piecewise-linear model of all mixes; an untrusted one or None is not a candidate.
    """
    if len(mixes) < _FOLDS:
        return None
    models = [(kind, threads) for kind in (Contention.EQUAL_SHARE, Contention.MAX_MIN) for threads in ContendingThreads]
    fits: list[Callable[[Sequence[Mix]], Fitted]] = [
        partial(fit_sharing, contention=contention, contending=contending)
        for contention, contending in ((Contention.NONE, ContendingThreads.RUNNING), *models)
    ]
    if fitted is not None and fitted.trusted:
        fits.append(partial(_piecewise, whole=fitted))
    results: list[tuple[ModelFit, Array]] = []
    for fit in fits:
        error, model = _cross_validated(fit, mixes), fit(mixes)
        bandwidth = (
            model.bandwidth * 1e6 if isinstance(model, SharedBandwidth) and np.isfinite(model.bandwidth) else None
        )
        results.append((ModelFit(model.contention, model.contending, float(error.mean()), bandwidth), error))
    (default,) = (error for entry, error in results if (entry.contention, entry.contending_threads) == _DEFAULT)
    results.sort(key=lambda result: result[0].error)
    best = next((entry for entry, error in results if _clearly_better(error, default)), None)
    chosen = _DEFAULT if best is None else (best.contention, best.contending_threads)
    return Choice(*chosen, tuple(entry for entry, _ in results), len(mixes))


def _cross_validated(fit: Callable[[Sequence[Mix]], Fitted], mixes: Sequence[Mix]) -> Array:
    fold_errors = np.empty(len(mixes))
    for fold in range(_FOLDS):
        model = fit([mix for i, mix in enumerate(mixes) if i % _FOLDS != fold])
        fold_errors[fold::_FOLDS] = errors(model, mixes[fold::_FOLDS])
    return fold_errors


def _clearly_better(error: Array, default: Array) -> bool:
    gain = default - error
    noise = float(gain.std(ddof=1)) / len(gain) ** 0.5
    return bool(gain.mean() > max(_LEAST_GAIN * default.mean(), _ERRORS * noise))


def _piecewise(mixes: Sequence[Mix], whole: PiecewiseFit) -> Piecewise:
    fitted = fit_piecewise(samples(mixes), near=whole.constants)
    return Piecewise((fitted or whole).constants)
