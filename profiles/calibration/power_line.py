"""Power against busy cores: P = pb + pa * n.

Rule: pa and pb are fitted to one busy core or more; what an idle node draws is its own figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.platform import Power
from .figures import Constant, Quality, intervals, quality


@dataclass(frozen=True, slots=True)
class PowerFit:
    """Constants of a node's processors, W.

    Args:
        per_core: pa; base: pb of all sockets together; idle: with no core busy, None = not measured.
    """

    per_core: Constant
    base: Constant
    idle: float | None
    quality: Quality

    def power(self, sockets: int) -> Power:
        """As a node type has it; `idle` is 0, as the counters do not see the rest of the node."""
        base = max(0.0, self.base.value)
        uncore = 1.0 if self.idle is None or base == 0.0 else min(1.0, max(0.0, self.idle / base))
        per_core, per_socket, uncore = (float(f"{x:.4g}") for x in (self.per_core.value, base / sockets, uncore))
        return Power(0.0, max(0.0, per_core), per_socket, idle_uncore=uncore)


def fit_power(cores: Sequence[int], watts: Sequence[float]) -> PowerFit | None:
    """Return the least-squares fit, None where fewer than two numbers of busy cores were measured.

    Args:
        cores: busy cores of each sample, >= 0; watts: of all processors together.

    Source: IRMaSim (Herrera et al., CCGrid 2021), IV: P = pa * n + pb.
    """
    n, watt = np.asarray(cores, float), np.asarray(watts, float)
    busy = n > 0
    if len(np.unique(n[busy])) < 2:
        return None
    jacobian = np.column_stack([n[busy], np.ones(int(busy.sum()))])
    values = np.linalg.lstsq(jacobian, watt[busy], rcond=None)[0]
    fitted = jacobian @ values
    per_core, base = intervals(values, jacobian, watt[busy] - fitted)
    idle = None if busy.all() else float(np.median(watt[~busy]))
    return PowerFit(per_core, base, idle, quality(watt[busy], fitted))
