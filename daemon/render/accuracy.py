"""How well jobs were foretold, as tables: by model, by source of profiles, by policy, by profile.

Rule: a list that is cut says what it leaves out; errors of twice and more are factors, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ...simulate.plan import LEVEL
from ..accuracy import KINDS, Accuracy, Foretold, accuracy, by, known
from .outcome import signed
from .screen import Screen
from .tables import Column, grid
from .text import count, percent, times

#: Profiles that are shown when not all are asked for.
_MOST = 20
_HEADS = ("JOBS", "MEDIAN", "90 %", "BIAS", "TREND", "INSIDE")


def show(jobs: Sequence[Foretold], *, everything: bool) -> None:
    """Print the tables."""
    screen, whole = Screen(), known(jobs)
    if not jobs:
        screen.put("No job has completed yet of which something was foretold.")
        return
    screen.title(f"{count(len(jobs), 'job')} foretold and completed, errors of run times")
    for kind in KINDS:
        groups = by(kind, jobs)
        shown = groups if everything else groups[:_MOST]
        if not groups:
            continue
        total = [accuracy("all", whole)] if kind == KINDS[0] and len(groups) > 1 else []
        columns = (Column(kind.upper()), *(Column(head, right=True) for head in _HEADS))
        rows = [_row(group) for group in (*shown, *total)]
        screen.put(grid(columns, rows, screen.cells, ascii_only=screen.ascii_only))
        if left := len(groups) - len(shown):
            screen.put(Text(f"{count(left, 'more profile')}: --all", style="dim"))
        screen.put("")
    if any(job.inside is not None for job in whole):
        screen.put(f"inside    of the interval foretold, of the jobs that had one; {percent(LEVEL)} should be")
    if assumed := len(jobs) - len(whole):
        screen.put(f"default   {count(assumed, 'job')} of which nothing was known, counted as a profile alone")


def _row(group: Accuracy) -> tuple[str, ...]:
    trend = "" if group.trend is None else f"{100 * group.trend:+.1f} points"
    inside = "" if group.inside is None else percent(group.inside)
    return (group.name, f"{group.jobs:,}", _size(group.median), _size(group.high), signed(group.bias), trend, inside)


def _size(error: float) -> str:
    return percent(error) if error < 1 else times(1 + error)
