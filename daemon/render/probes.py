"""The probes of a machine, for a terminal.

Rule: what is missing comes last and says why; 80 columns, and nothing is cut off.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.text import Text

from ...profiles.probes.catalogue import BOTH, DAEMON, RUN, Finding
from .screen import Screen
from .text import clean

_HEADINGS = ("PROBE", "OF", "A LOOK", "BEGIN+END", "USED BY", "GIVES")
_WIDTHS = (10, 5, 8, 11, 8)
#: Who uses a probe, in a narrow column.
_SHORT = {(): "nobody", (RUN,): "run", (DAEMON,): "daemon", BOTH: "both"}
_WHO = (
    "run: `pilotfish profile run`. daemon: for jobs on this node (`counters` in its configuration), by turns, so that"
    " all looks at the node take 0.5 % of a core at the most."
)


def show(found: Sequence[Finding]) -> None:
    """Print those that are there with their costs, and then the others with the reasons."""
    screen = Screen()
    there = [finding for finding in found if finding.missing is None]
    screen.put(Text(_row(_HEADINGS[:-1]) + _HEADINGS[-1], style="bold"))
    for finding in there:
        costs = (cost(finding.look_s), cost(finding.begin_s))
        head = _row((finding.name, finding.of, *costs, _SHORT[finding.used_by]))
        screen.put(*_wrapped(head, finding.gives, screen))
    if len(there) < len(found):
        screen.put("", Text("MISSING   WOULD GIVE, AND WHY IT DOES NOT", style="bold"))
    for finding in found:
        if finding.missing is not None:
            screen.put(*_wrapped(f"{finding.name:<{_WIDTHS[0]}}", f"{finding.gives}: {finding.missing}", screen))
    screen.put("", *_wrapped("USED BY   ", _WHO, screen))


def cost(seconds: float | None) -> str:
    """CPU time for a person: microseconds, or milliseconds from ten on."""
    if seconds is None:
        return "unknown"
    return f"{seconds * 1e6:.0f} us" if seconds < 0.01 else f"{seconds * 1e3:.0f} ms"


def _row(cells: Sequence[str]) -> str:
    sides = ("<", "<", ">", ">", "<")
    return "".join(
        f"{cell:{side}{size - (side == '>')}}" + " " * (side == ">")
        for cell, side, size in zip(cells, sides, _WIDTHS, strict=True)
    )


def _wrapped(head: str, text: str, screen: Screen) -> list[str]:
    says = clean(text, ascii_only=screen.ascii_only)
    lines = textwrap.wrap(says, max(30, screen.cells - len(head)), break_on_hyphens=False)
    return [(head if i == 0 else " " * len(head)) + line for i, line in enumerate(lines)]
