"""Simulated clusters with a virtual clock: the engine as a cluster of our own, and a resource manager with users.

Rule: a caller cannot distinguish them from real ones. `SimulatedAdapter` runs jobs of our own, under contention;
`manager` plays a resource manager whose users hand jobs over, and which may fail in every way that one can fail.
"""

from __future__ import annotations

import math

from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from .adapter import SimulatedAdapter

__all__ = ("SimulatedAdapter", "create")


def create(cluster: Cluster, start_time: float = 0.0) -> SimulatedAdapter:
    """Return a simulated cluster whose clock begins at `start_time`, epoch seconds. Raises ConfigError."""
    if type(start_time) not in (int, float) or not math.isfinite(start_time):
        raise ConfigError("simulated adapter", "start_time", f"found {start_time!r}", "epoch seconds")
    return SimulatedAdapter(cluster, start_time=float(start_time))
