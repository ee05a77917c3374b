"""What a sensor says that the node draws.

Rule: only a meter of the whole node counts (ACPI's power_meter); sensors of single chips and rails would add up to
something that has no name. It is asked at most once a second, as behind it may be a slow management controller.

Source: Documentation/hwmon/acpi_power_meter.rst and sysfs-interface.rst of Linux (microwatts).
"""

from __future__ import annotations

from pathlib import Path

from .base import ROOT, read_number, read_text
from .tree import ProcessTree

METERS = ("power_meter",)
SELDOM_S = 1.0


class Hwmon:
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
        found = meters(self._folder)
        if not found:
            return f"no meter of the whole node ({', '.join(METERS)}) among the sensors {', '.join(names)}"
        return None if _watts(found) is not None else f"{found[0]} shows no power"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin; it is the whole node's, whatever the tree."""
        self._meters = meters(self._folder)
        self._before, self._energy_j, self._span_s = None, 0.0, 0.0
        self.sample(now, last=True)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read the meters once if the last time was long ago. O(meters)."""
        if self._before is not None and not last and now - self._before[0] < SELDOM_S:
            return
        watts = _watts(self._meters)
        if watts is None:
            return
        if self._before is not None:
            then, drew = self._before
            self._energy_j += (now - then) * (drew + watts) / 2
            self._span_s += now - then
        self._before = now, watts

    def stop(self) -> float | None:
        """Return the mean over the time, watts; None if it could not be read twice."""
        return self._energy_j / self._span_s if self._span_s > 0 else None


def meters(folder: Path) -> list[Path]:
    """Return the files of the meters of the whole node: mean power where they have it, else what they draw now."""
    found = []
    for path in sorted(folder.glob("hwmon*")):
        if read_text(path / "name") in METERS:
            files = [path / name for name in ("power1_average", "power1_input")]
            found += [file for file in files if read_number(file) is not None][:1]
    return found


def _watts(files: list[Path]) -> float | None:
    values = [read_number(file) for file in files]
    known = [value * 1e-6 for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
