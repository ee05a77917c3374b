"""Power as a function of busy cores, P = pb + pa * n, and the energy counters (RAPL) that it is measured with.

Rule: pa and pb are fitted to one busy core or more; the idle power is a figure of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...simulate.model.cluster import Power
from ..probes.power import EnergyCounter, read_energy, step, zones
from .statistics import Constant, Quality, intervals, quality

POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, slots=True)
class PowerFit:
    """Constants of a node's processors, W: pa, pb of all sockets together, and with no core busy (None = unknown)."""

    per_core: Constant
    base: Constant
    idle: float | None
    quality: Quality

    def power(self, sockets: int) -> Power:
        """Return it as in a node type; `idle` is 0, because the counters cover only the processors."""
        base = max(0.0, self.base.value)
        uncore = 1.0 if self.idle is None or base == 0.0 else min(1.0, max(0.0, self.idle / base))
        per_core, per_socket, uncore = (float(f"{x:.4g}") for x in (self.per_core.value, base / sockets, uncore))
        return Power(0.0, max(0.0, per_core), per_socket, idle_uncore=uncore)


def fit_power(cores: Sequence[int], watts: Sequence[float]) -> PowerFit | None:
    """Return the least-squares fit, None with fewer than two numbers of busy cores.

    Args:
        cores: busy cores of each sample, >= 0.
        watts: power of all processors together.

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


def package_energy(powercap: Path = POWERCAP) -> dict[EnergyCounter, float]:
    """Return counter -> energy, joules, of the processor packages that can be read; {} = none."""
    packages = [zone for zone in zones(powercap) if zone.name.startswith("package") and zone.path.name.count(":") == 1]
    return {zone: energy for zone in packages if (energy := read_energy(zone)) is not None}


def joules(before: dict[EnergyCounter, float], after: dict[EnergyCounter, float]) -> float | None:
    """Return the energy between two readings, J; None if they are not of the same packages."""
    if not before or before.keys() != after.keys():
        return None
    return sum(step(energy, after[zone], zone.range_j) for zone, energy in before.items())
