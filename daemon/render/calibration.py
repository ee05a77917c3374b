"""A calibration as a person reads it.

Rule: what is unknown says so; what changed is said after the numbers, and that nothing did as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .text import clean, count

if TYPE_CHECKING:
    from ...profiles.calibration.changes import Change
    from ...profiles.calibration.result import Calibration


def show(found: Calibration) -> None:
    """Print all that was found, and what limits it."""
    from ...profiles.calibration.words import rows
    from .screen import Screen
    from .tables import Column, grid

    screen = Screen()
    screen.title(
        f"{clean(found.host)}: {count(len(found.cpus), 'core')}, {count(found.sockets, 'socket')}, {clean(found.model)}"
    )
    table = [(row.key, row.value, row.known, row.rests_on) for row in rows(found)]
    columns = [Column(heading) for heading in ("NODE TYPE", "VALUE", "KNOWN TO", "RESTS ON")]
    screen.put(grid(columns, table, screen.cells, ascii_only=screen.ascii_only))
    if found.notes:
        screen.put("", *(f"note: {clean(text)}" for text in found.notes))


def show_changes(changes: Sequence[Change], new: str, old: str, bound: float) -> None:
    """Print what of something new is no longer as it was in something old."""
    from .screen import Screen

    screen, differs = Screen(), "differs" if changes else "does not differ"
    screen.put("", f"{clean(new)} {differs} from {clean(old)} by more than {bound:.0%}{':' if changes else ''}")
    for change in changes:
        by = f" ({change.ratio - 1:+.0%}{_doubt(change)})" if change.ratio is not None else ""
        screen.put(f"  {change.key}: {_value(change.old)} -> {_value(change.new)}{by}")


def _doubt(change: Change) -> str:
    return "" if change.sure or change.noise is None else f", perhaps by chance: known to {change.noise:.0%}"


def _value(value: float | str | None) -> str:
    return "not given" if value is None else clean(value) if isinstance(value, str) else f"{value:.4g}"
