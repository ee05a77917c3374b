"""Power of the processors, by their energy counters (RAPL, powercap).

Rule: a counter that cannot be read is no counter; one that came round once between two readings is put right.
Source: Documentation/power/powercap/powercap.rst of the Linux kernel: energy_uj, max_energy_range_uj.
"""

from __future__ import annotations

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


def read_counters(powercap: Path = POWERCAP) -> dict[str, tuple[int, int]]:
    """Return zone -> (energy, range), microjoules, of the processor packages that can be read; {} = none."""
    found = {}
    for zone in sorted(powercap.glob("intel-rapl:[0-9]*")):
        try:
            if zone.name.count(":") == 1 and (zone / "name").read_text().startswith("package"):
                values = [int((zone / name).read_text()) for name in ("energy_uj", "max_energy_range_uj")]
                found[zone.name] = (values[0], values[1])
        except (OSError, ValueError):
            continue
    return found


def joules(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> float | None:
    """Return the energy between two readings, J; None where they are not of the same packages."""
    if not before or before.keys() != after.keys():
        return None
    used = 0
    for zone, (begin, span) in before.items():
        grown = after[zone][0] - begin
        used += grown if grown >= 0 else grown + span
    return used / 1e6
