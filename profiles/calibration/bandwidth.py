"""The bandwidth curve, and the cost of remote memory under contention.

Rule: the fit is to the total bandwidth of the streaming threads; a plateau (BW_max) that was not reached is a lower
bound, and the fit says so. Remote memory is fitted with the curve of the same threads bound to their own memory; every
fourth unbound thread streams the memory of another node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .statistics import Array, Constant, Quality, intervals, jacobian, least_squares, quality

#: One of so many threads has its memory on another node.
EVERY = 4
_LOW, _HIGH = np.array([0.2, 0.2, 1.0]), np.array([5.0, 5.0, 50.0])
Sample = tuple[int, float]


@dataclass(frozen=True, slots=True)
class CurveFit:
    """min(n * per_thread, most), bytes/s.

    Args:
        most: bandwidth of the node (BW_max of max-min and of equal-share alike: the threads are equal).
        saturated: the plateau was reached; else `most` is the widest run's, a lower bound.
    """

    per_thread: Constant
    most: Constant
    saturated: bool
    quality: Quality


def fit_curve(threads: Sequence[int], bandwidths: Sequence[float]) -> CurveFit:
    """Return the exact least-squares fit of min(n * b, B), piece by piece between thread counts.

    Args:
        threads: >= 1, of each sample.
        bandwidths: bytes/s of all threads together, > 0.

    Source: DESiDE (Chahal et al., ICPE 2019), 4.3: BW_max is shared by the threads that stream.
    """
    n, y = np.asarray(threads, float), np.asarray(bandwidths, float)
    _, slope, plateau = min((float(((y - np.minimum(n * b, top)) ** 2).sum()), b, top) for b, top in _candidates(n, y))
    saturated = plateau < 0.95 * slope * float(n.max())
    fitted = np.minimum(n * slope, plateau)
    rising = n * slope <= plateau * (1 + 1e-9) if saturated else np.ones_like(n, bool)
    if saturated:
        jacobian = np.column_stack([np.where(rising, n, 0.0), np.where(rising, 0.0, 1.0)])
        per_thread, most = intervals(np.array([slope, plateau]), jacobian, y - fitted)
    else:
        (per_thread,) = intervals(np.array([slope]), n[:, None], y - fitted)
        widest = float(np.median(y[n == n.max()]))
        most = Constant(widest, widest, None)
    return CurveFit(per_thread, most, saturated, quality(y, fitted))


def _candidates(n: Array, y: Array) -> Iterator[tuple[float, float]]:
    """Yield the best slope and plateau with the bend between two thread counts, or at one."""
    counts = np.unique(n)
    for count, after in zip(counts, [*counts[1:], np.inf], strict=True):
        rising = n <= count
        slope = float((n[rising] * y[rising]).sum() / (n[rising] ** 2).sum())
        if rising.all():
            yield slope, slope * float(count)
        else:
            plateau = float(y[~rising].mean())
            if count * slope <= plateau <= after * slope:
                yield slope, plateau
        bent = np.minimum(n, count)
        slope = float((bent * y).sum() / (bent**2).sum())
        yield slope, slope * float(count)


@dataclass(frozen=True, slots=True)
class RemoteFit:
    """`remote_access_penalty`, and how well it describes the bandwidths of unbound threads (bytes/s)."""

    penalty: Constant
    quality: Quality


def fit_remote(curve: CurveFit, bound: Sequence[Sample], unbound: Sequence[Sample]) -> RemoteFit | None:
    """Return the penalty, None if the memory was not saturated and shows none.

    Args:
        curve: fit to `bound`, the start of the search.
        bound: (threads, bytes/s together) of threads bound to their own memory.
        unbound: (threads, bytes/s together) of threads, some of them on the memory of another node.

    Source: DESiDE (Chahal et al., ICPE 2019), eq. 13-14: m = 1 + sigma_bw * (0.75 + 0.25 * delta_rl).
    """
    n, rates = np.array([*bound, *unbound], float).T
    away = np.arange(len(n)) >= len(bound)
    if not (curve.saturated and (n[away] * curve.per_thread.value > curve.most.value).any()):
        return None

    def model(at: Array) -> Array:
        alone, most = at[0] * curve.per_thread.value, at[1] * curve.most.value
        dilation = 1.0 + np.maximum(0.0, n * alone / most - 1.0) * np.where(away, 0.75 + 0.25 * at[2], 1.0)
        return np.asarray(np.log(n * alone / dilation))

    log_rates = np.log(rates)
    best, _ = least_squares(model, log_rates, np.array([1.0, 1.0, 1.5]), _LOW, _HIGH)
    estimates = intervals(best, jacobian(model, best, _LOW, _HIGH), log_rates - model(best))
    return RemoteFit(estimates[2], quality(rates[away], np.exp(model(best))[away]))
