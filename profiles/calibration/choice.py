"""Which contention model describes measured mixes best.

Rule: a model is judged by mixes that it was not fitted to, and the default gives way only to one that is clearly
better: by a tenth of its error at least, and by more than twice the standard error over the mixes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...simulate.platform import ContendingThreads, Contention
from .figures import Array
from .mixes import Fitted, Mix, Piecewise, Sharing, errors, fit_sharing, samples
from .piecewise import PiecewiseFit, fit_piecewise

_FOLDS = 6
_LEAST_GAIN, _ERRORS = 0.1, 2.0
_DEFAULT = (Contention.MAX_MIN, ContendingThreads.RUNNING)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model, fitted to all mixes.

    Args:
        error: mean of |log(speed as it says / as measured)| of mixes that it was not fitted to.
        memory_bandwidth: bytes/s of the cores of the mixes; None = the model has no such constant.
    """

    contention: Contention
    contending_threads: ContendingThreads
    error: float
    memory_bandwidth: float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The models, the best first, which of them to take, and how many mixes it rests on."""

    contention: Contention
    contending_threads: ContendingThreads
    candidates: tuple[Candidate, ...]
    mixes: int

    @property
    def default(self) -> bool:
        """Nothing was clearly better than the default."""
        return (self.contention, self.contending_threads) == _DEFAULT


def choose(mixes: Sequence[Mix], fitted: PiecewiseFit | None = None) -> Choice | None:
    """Return which model describes mixes best; None where there are fewer mixes than folds.

    Args:
        fitted: the piecewise-linear model of all mixes; None, or one that is not trusted, is no candidate.
    """
    if len(mixes) < _FOLDS:
        return None
    ways: list[Callable[[Sequence[Mix]], Fitted]] = [
        partial(fit_sharing, contention=contention, contending=contending)
        for contention, contending in (
            (Contention.NONE, ContendingThreads.RUNNING),
            *((each, who) for each in (Contention.EQUAL_SHARE, Contention.MAX_MIN) for who in ContendingThreads),
        )
    ]
    if fitted is not None and fitted.trusted:
        ways.append(partial(_piecewise, whole=fitted))
    found: list[tuple[Candidate, Array]] = []
    for way in ways:
        error, model = _unseen(way, mixes), way(mixes)
        bandwidth = model.bandwidth * 1e6 if isinstance(model, Sharing) and np.isfinite(model.bandwidth) else None
        found.append((Candidate(model.contention, model.contending, float(error.mean()), bandwidth), error))
    (default,) = (error for each, error in found if (each.contention, each.contending_threads) == _DEFAULT)
    found.sort(key=lambda each: each[0].error)
    best = next((each for each, error in found if _clearly_better(error, default)), None)
    chosen = _DEFAULT if best is None else (best.contention, best.contending_threads)
    return Choice(*chosen, tuple(each for each, _ in found), len(mixes))


def _unseen(way: Callable[[Sequence[Mix]], Fitted], mixes: Sequence[Mix]) -> Array:
    """The errors of all mixes, each by a fit to the others of its fold."""
    found = np.empty(len(mixes))
    for fold in range(_FOLDS):
        model = way([mix for i, mix in enumerate(mixes) if i % _FOLDS != fold])
        found[fold::_FOLDS] = errors(model, mixes[fold::_FOLDS])
    return found


def _clearly_better(error: Array, default: Array) -> bool:
    gain = default - error
    noise = float(gain.std(ddof=1)) / len(gain) ** 0.5
    return bool(gain.mean() > max(_LEAST_GAIN * default.mean(), _ERRORS * noise))


def _piecewise(mixes: Sequence[Mix], whole: PiecewiseFit) -> Piecewise:
    fitted = fit_piecewise(samples(mixes), near=whole.constants)
    return Piecewise((fitted or whole).constants)
