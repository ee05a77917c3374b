"""Power of the node: energy counters of packages and memory (RAPL), and the node's own meter (hwmon).

Rule: packages and DRAM are added; their parts are in the package, and psys contains both. Only a meter of the whole
node counts (ACPI's power_meter), as sensors of single chips and rails do not add up to a defined quantity; it is read
at most once a second, because a slow management controller may serve it. Both cover the whole node, idling and other
jobs included.

Sources: Documentation/power/powercap/powercap.rst of Linux (energy_uj is readable by root only since 5.10,
CVE-2020-8694); Documentation/hwmon/acpi_power_meter.rst and sysfs-interface.rst (microwatts).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .probe import ROOT, Probe, read_number, read_text
from .process_tree import ProcessTree

#: Packages and their parts; the same packages appear again as intel-rapl-mmio.
_ZONE = re.compile(r"intel-rapl:\d+(:\d+)?")
_UJ = 1e-6
METERS = ("power_meter",)
METER_PERIOD_S = 1.0


@dataclass(frozen=True, slots=True)
class EnergyCounter:
    """An energy counter: its path, its name (package-0, dram), and the energy at which it wraps, joules."""

    path: Path
    name: str
    range_j: float


class Powercap(Probe):
    """Energy of packages and DRAM, joules, from start to the last sample."""

    def __init__(self, root: Path = ROOT) -> None:
        self._folder = root / "sys/class/powercap"
        self._before: dict[EnergyCounter, float] = {}
        self._joules: dict[str, float] = {}

    def available(self) -> str | None:
        """Return why energy cannot be read here, or None."""
        counters = zones(self._folder)
        if not counters:
            return "there is no RAPL under /sys/class/powercap (a virtual machine, or no intel_rapl driver)"
        if all(read_energy(zone) is None for zone in counters):
            return f"{counters[0].path}/energy_uj may not be read: only root may, unless an administrator allows it"
        return None

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on the whole node, whatever the tree."""
        self._before = {zone: energy for zone in zones(self._folder) if (energy := read_energy(zone)) is not None}
        self._joules = {zone.name: 0.0 for zone in self._before}

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read every counter once; must be called more often than they wrap. O(packages)."""
        for zone, before in self._before.items():
            if (energy := read_energy(zone)) is not None:
                self._joules[zone.name] += step(before, energy, zone.range_j)
                self._before[zone] = energy

    def stop(self) -> dict[str, float]:
        """Return zone -> joules; empty if none can be read."""
        return dict(self._joules)


def zones(folder: Path) -> list[EnergyCounter]:
    """Return the counters that add up to packages and memory, by name."""
    counters = []
    for path in sorted(folder.glob("intel-rapl:*")):
        name, most = read_text(path / "name") or "", read_number(path / "max_energy_range_uj")
        shape = _ZONE.fullmatch(path.name)
        is_counted = name.startswith("package") or (name == "dram" and shape and shape[1])
        if shape and is_counted and most:
            parent = read_text(path.parent / path.name.rpartition(":")[0] / "name") if shape[1] else None
            counters.append(EnergyCounter(path, f"{parent} {name}" if parent else name, most * _UJ))
    return counters


def step(before: float, now: float, range_j: float) -> float:
    """Return the energy between two readings of a counter, joules.

    Args:
        before: the earlier reading, joules.
        now: the later reading, joules.
        range_j: the energy at which it wraps; at most once between two readings, as that takes a minute at least.
    """
    return now - before if now >= before else now - before + range_j


def read_energy(zone: EnergyCounter) -> float | None:
    """Return the reading of a counter, joules; None if it cannot be read."""
    value = read_number(zone.path / "energy_uj")
    return None if value is None else value * _UJ


class Hwmon(Probe):
    """Mean power of the node, watts, by its own meter."""

    def __init__(self, root: Path = ROOT) -> None:
        self._folder = root / "sys/class/hwmon"
        self._meters: list[Path] = []
        self._before: tuple[float, float] | None = None
        self._energy_j = self._span_s = 0.0

    def available(self) -> str | None:
        """Return why power cannot be read here, or None."""
        names = sorted({read_text(path / "name") or "" for path in self._folder.glob("hwmon*")})
        if not names:
            return "there are no sensors under /sys/class/hwmon"
        files = meters(self._folder)
        if not files:
            return f"no meter of the whole node ({', '.join(METERS)}) among the sensors {', '.join(names)}"
        return None if _watts(files) is not None else f"{files[0]} shows no power"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on the whole node, whatever the tree."""
        self._meters = meters(self._folder)
        self._before, self._energy_j, self._span_s = None, 0.0, 0.0
        self.sample(now, last=True)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read the meters once, at most every `METER_PERIOD_S`. O(meters)."""
        if self._before is not None and not last and now - self._before[0] < METER_PERIOD_S:
            return
        if (watts := _watts(self._meters)) is None:
            return
        if self._before is not None:
            then, drew = self._before
            self._energy_j += (now - then) * (drew + watts) / 2
            self._span_s += now - then
        self._before = now, watts

    def stop(self) -> float | None:
        """Return the mean over time, watts; None with fewer than two readings."""
        return self._energy_j / self._span_s if self._span_s > 0 else None


def meters(folder: Path) -> list[Path]:
    """Return the files of the whole node's meters: mean power if available, else instantaneous power."""
    meter_files = []
    for path in sorted(folder.glob("hwmon*")):
        if read_text(path / "name") in METERS:
            files = [path / name for name in ("power1_average", "power1_input")]
            meter_files += [file for file in files if read_number(file) is not None][:1]
    return meter_files


def _watts(files: list[Path]) -> float | None:
    readings = [value * _UJ for file in files if (value := read_number(file)) is not None]
    return sum(readings) if readings and len(readings) == len(files) else None
