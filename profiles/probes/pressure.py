"""How much of the time work on this node stood still for want of CPU, memory or storage.

Rule: shares come from the kernel's running totals over the span watched, not from its moving averages.

Source: Documentation/accounting/psi.rst of Linux (pressure stall information, 4.20).
"""

from __future__ import annotations

from pathlib import Path

from .base import ROOT, read_text
from .tree import ProcessTree

RESOURCES = ("cpu", "memory", "io")


class Pressure:
    """The node's pressure: for each resource the share of the time in which some tasks, or all, waited for it."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root / "proc/pressure"
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._began = self._ended = 0.0

    def available(self) -> str | None:
        """Return why pressure cannot be read here, or None."""
        if not self._root.is_dir():
            return "this kernel has no /proc/pressure (Linux 4.20, CONFIG_PSI)"
        return None if self._totals() else "the kernel was started without pressure accounting (psi=1)"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin at `now`; it is the whole node's, whatever the tree."""
        self._first = self._last = self._totals()
        self._began = self._ended = now

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read the totals at the end; between there is nothing to see. O(1)."""
        if last:
            self._last, self._ended = self._totals() or self._last, now

    def stop(self) -> dict[str, float]:
        """Return cpu_some, cpu_full, memory_some ... -> share of the time, [0, 1], for what could be read."""
        span = self._ended - self._began
        both = self._first.keys() & self._last.keys() if span > 0 else ()
        return {name: min(1.0, max(0.0, self._last[name] - self._first[name]) / span) for name in sorted(both)}

    def _totals(self) -> dict[str, float]:
        found = {}
        for resource in RESOURCES:
            text = read_text(self._root / resource) or ""
            for kind in ("some", "full"):
                if (total := parse_total(text, kind)) is not None:
                    found[f"{resource}_{kind}"] = total
        return found


def parse_total(text: str, kind: str = "some") -> float | None:
    """Return the seconds stalled so far, of a line `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`; None without.

    Args:
        kind: some (at least one task waited) or full (all did).
    """
    for line in text.splitlines():
        name, *fields = line.split()
        total = next((field[6:] for field in fields if field.startswith("total=")), "")
        if name == kind and total.isdecimal():
            return int(total) * 1e-6
    return None
