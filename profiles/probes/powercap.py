"""What the processors' packages and the memory took, by RAPL.

Rule: packages and DRAM are added, their parts are not, as a package holds them; psys holds all and is left out. It is
the whole node's energy, that of idling and of others' jobs included.

Source: Documentation/power/powercap/powercap.rst of Linux; energy_uj is root's alone since 5.10 (CVE-2020-8694).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .base import ROOT, read_number, read_text
from .tree import ProcessTree

#: Packages and their parts; the same packages show once more as intel-rapl-mmio.
_ZONE = re.compile(r"intel-rapl:\d+(:\d+)?")
_UJ = 1e-6


@dataclass(frozen=True, slots=True)
class Zone:
    """One counter of energy: where it is, what it counts (package-0, dram), at how many joules it comes round."""

    path: Path
    name: str
    range_j: float


class Powercap:
    """Energy of packages and DRAM, joules, from start to the last sample."""

    def __init__(self, root: Path = ROOT) -> None:
        self._folder = root / "sys/class/powercap"
        self._zones: list[Zone] = []
        self._before: dict[Zone, float] = {}
        self._taken: dict[str, float] = {}

    def available(self) -> str | None:
        """Return why energy cannot be read here, or None."""
        found = zones(self._folder)
        if not found:
            return "there is no RAPL under /sys/class/powercap (a virtual machine, or no intel_rapl driver)"
        if all(_energy(zone) is None for zone in found):
            return f"{found[0].path}/energy_uj may not be read: root's alone unless an administrator allows it"
        return None

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin; it is the whole node's, whatever the tree."""
        self._zones = zones(self._folder)
        self._before = {zone: energy for zone in self._zones if (energy := _energy(zone)) is not None}
        self._taken = {zone.name: 0.0 for zone in self._before}

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read every counter once; more often than they come round. O(packages)."""
        for zone, before in self._before.items():
            energy = _energy(zone)
            if energy is not None:
                self._taken[zone.name] += step(before, energy, zone.range_j)
                self._before[zone] = energy

    def stop(self) -> dict[str, float]:
        """Return zone -> joules; empty where none may be read."""
        return dict(self._taken)


def zones(folder: Path) -> list[Zone]:
    """Return the counters that add up to the packages and the memory, by name."""
    found = []
    for path in sorted(folder.glob("intel-rapl:*")):
        name, most = read_text(path / "name") or "", read_number(path / "max_energy_range_uj")
        shape = _ZONE.fullmatch(path.name)
        wanted = name.startswith("package") or (name == "dram" and shape and shape[1])
        if shape and wanted and most:
            parent = read_text(path.parent / path.name.rpartition(":")[0] / "name") if shape[1] else None
            found.append(Zone(path, f"{parent} {name}" if parent else name, most * _UJ))
    return found


def step(before: float, now: float, range_j: float) -> float:
    """Return what was added to a counter between two readings, joules.

    Args:
        before, now: the readings.
        range_j: where it comes round; between two readings once at most, as that takes a minute at the very least.
    """
    return now - before if now >= before else now - before + range_j


def _energy(zone: Zone) -> float | None:
    value = read_number(zone.path / "energy_uj")
    return None if value is None else value * _UJ
