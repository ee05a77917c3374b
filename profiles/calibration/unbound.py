"""What remote memory costs under contention: threads of which every fourth streams the memory of another node.

Rule: fitted together with the curve of the same threads bound to their own memory, from which bandwidths are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .curve import CurveFit
from .figures import Array, Constant, Quality, intervals, quality
from .least_squares import jacobian, least_squares

#: Share of the threads whose memory is on another node.
EVERY = 4
_LOW, _HIGH = np.array([0.2, 0.2, 1.0]), np.array([5.0, 5.0, 50.0])
Sample = tuple[int, float]


@dataclass(frozen=True, slots=True)
class RemoteFit:
    """`remote_access_penalty`, and how well it describes the bandwidths of unbound threads (bytes/s)."""

    penalty: Constant
    quality: Quality


def fit_remote(curve: CurveFit, bound: Sequence[Sample], unbound: Sequence[Sample]) -> RemoteFit | None:
    """Return the penalty; None where the memory was not saturated, so that it cannot be seen.

    Args:
        curve: fit to `bound`, where the search begins.
        bound, unbound: (threads, bytes/s that they got together).

    Source: DESiDE (Chahal et al., ICPE 2019), eq. 13-14: m = 1 + sigma_bw * (0.75 + 0.25 * delta_rl).
    """
    n = np.array([threads for threads, _ in (*bound, *unbound)], float)
    rates = np.array([rate for _, rate in (*bound, *unbound)])
    away = np.arange(len(n)) >= len(bound)
    if not (curve.saturated and (n[away] * curve.per_thread.value > curve.most.value).any()):
        return None

    def model(at: Array) -> Array:
        alone, most = at[0] * curve.per_thread.value, at[1] * curve.most.value
        dilation = 1.0 + np.maximum(0.0, n * alone / most - 1.0) * np.where(away, 0.75 + 0.25 * at[2], 1.0)
        together: Array = np.log(n * alone / dilation)
        return together

    seen = np.log(rates)
    best, _ = least_squares(model, seen, np.array([1.0, 1.0, 1.5]), _LOW, _HIGH)
    known = intervals(best, jacobian(model, best, _LOW, _HIGH), seen - model(best))
    return RemoteFit(known[2], quality(rates[away], np.exp(model(best))[away]))
