"""A calibration as a person reads it.

Rule: what is unknown says so; what changed is said after the numbers, and that nothing did as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...simulate.formats.units import format_size
from .text import clean, count

if TYPE_CHECKING:
    from ...profiles.calibration.changes import Change
    from ...profiles.calibration.result import Calibration
    from ...profiles.calibration.switching import Switching
    from ...profiles.calibration.words import Row
    from .screen import Screen


def show(found: Calibration) -> None:
    """Print all that was found, and what limits it."""
    from ...profiles.calibration.words import rows

    size = f"{count(len(found.cpus), 'core')}, {count(found.sockets, 'socket')}"
    screen = _table(f"{clean(found.host)}: {size}, {clean(found.model)}", rows(found))
    if found.notes:
        screen.put("", *(f"note: {clean(text)}" for text in found.notes))


def show_switching(found: Switching) -> None:
    """Print what switching a node off and on has shown, as a table and as a cluster file has it."""
    from ...profiles.calibration.file import power_text
    from ...profiles.calibration.words import switching_rows

    screen = _table(f"{clean(found.node)}, switched off and on", switching_rows(found))
    lines = [line for line in power_text(found).splitlines() if not line.startswith("#")]
    screen.put("", *(lines or ["note: what it draws is not known: there was no --power-command that tells"]))


def _table(title: str, rows: Iterable[Row]) -> Screen:
    from .screen import Screen
    from .tables import Column, grid

    screen = Screen()
    screen.title(title)
    table = [(row.key, row.value, row.known, row.rests_on) for row in rows]
    columns = [Column(heading) for heading in ("NODE TYPE", "VALUE", "KNOWN TO", "RESTS ON")]
    screen.put(grid(columns, table, screen.cells, ascii_only=screen.ascii_only))
    return screen


def show_changes(changes: Sequence[Change], new: str, old: str, bound: float) -> None:
    """Print what of something new is no longer as it was in something old."""
    from .screen import Screen

    screen, differs = Screen(), "differs" if changes else "does not differ"
    screen.put("", f"{clean(new)} {differs} from {clean(old)} by more than {bound:.0%}{':' if changes else ''}")
    for change in changes:
        by = f" ({change.ratio - 1:+.0%}{_doubt(change)})" if change.ratio is not None else ""
        screen.put(f"  {change.key}: {_value(change.key, change.old)} -> {_value(change.key, change.new)}{by}")


def _doubt(change: Change) -> str:
    return "" if change.sure or change.noise is None else f", perhaps by chance: known to {change.noise:.0%}"


def _value(key: str, value: float | str | None) -> str:
    """A value of a node type's key, with its unit where a cluster file has one."""
    if value is None or isinstance(value, str):
        return "not given" if value is None else clean(value)
    if key == "memory":
        return format_size(value)
    return format_size(float(f"{value:.3g}"), rate=True) if key == "memory_bandwidth" else f"{value:.4g}"
