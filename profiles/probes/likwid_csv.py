"""What `likwid-perfctr -O` prints, as tables.

Rule: the heading lines (`Event,` and `Metric,`) say what follows, as all generations have them; a value that is no
number (nan, inf, -) is none, and a table with fewer rows than it promises makes the whole incomplete.

Source: LIKWID's wiki, "likwid-perfctr", output as CSV; LIKWID 3 (core 0), 4 (Core 0), 5 (HWThread 0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tables:
    """Name -> one value for each hardware thread that has one; regions one after the other.

    Args:
        complete: no table was cut short.
    """

    events: dict[str, list[float]] = field(default_factory=dict)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    complete: bool = True

    def total(self, names: Sequence[str], *, events: bool = False) -> float | None:
        """Return the sum over hardware threads of the first of these that is there, None if none is."""
        values = self.events if events else self.metrics
        return next((sum(values[name]) for name in names if values.get(name)), None)


def parse(text: str) -> Tables:
    """Return the tables of events and metrics; their statistics (sum, min, max) are left out."""
    tables, rows, skip = Tables(), None, 1
    due = 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] in ("TABLE", "STRUCT"):
            tables.complete &= due <= 0
            rows = None
            due = next((int(cell) for cell in reversed(cells) if cell.isdecimal()), 0) if cells[0] == "TABLE" else 0
        elif cells[0] in ("Event", "Metric") and len(cells) > 1:
            kind = tables.events if cells[0] == "Event" else tables.metrics
            skip = 2 if cells[1] == "Counter" else 1
            first = cells[skip].lower() if len(cells) > skip else ""
            rows = kind if first.startswith(("core", "hwthread")) else {}
        elif rows is not None and len(cells) > skip and cells[0]:
            due -= 1
            rows.setdefault(cells[0], []).extend(v for cell in cells[skip:] if (v := _value(cell)) is not None)
    tables.complete &= due <= 0
    return tables


def _value(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
