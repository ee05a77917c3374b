"""The bandwidth curve: threads that all stream, against what they get together; its plateau is BW_max.

Rule: a plateau that was not reached is a lower bound, and the fit says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .figures import Array, Constant, Quality, intervals, quality


@dataclass(frozen=True, slots=True)
class CurveFit:
    """min(n * per_thread, most), bytes/s.

    Args:
        per_thread: what one thread gets that streams alone.
        most: what the node gives to all (BW_max of max-min and of equal-share alike: the threads are equal).
        saturated: the plateau was reached; else `most` is what the widest run got, a lower bound.
        quality: in bytes/s.
    """

    per_thread: Constant
    most: Constant
    saturated: bool
    quality: Quality


def fit_curve(threads: Sequence[int], bandwidths: Sequence[float]) -> CurveFit:
    """Return the least-squares fit of min(n * b, B), found exactly: piece by piece between thread counts.

    Args:
        threads: >= 1, of each sample.
        bandwidths: bytes/s that they got together, > 0.

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
    """Slope and plateau that are best where the bend is between two thread counts, or at one."""
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
