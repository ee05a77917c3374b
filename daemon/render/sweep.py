"""What a sweep looks like: its runs before they begin, how far it has come, and which of them are worth having.

Rule: runs are compared within the same jobs at the same load only; a bar where a person looks, else a line at each
tenth.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from ...simulate.sweep.best import OBJECTIVES, Objective, Worth, cases, worth
from ..streams import tell
from .screen import Screen
from .tables import Column, grid, with_gap
from .text import clean, count, decimals, duration, fit, joules

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]
MOST_CASES = 8


def _seconds(value: float) -> str:
    return f"{value:,.{decimals(value)}f}"


#: Heading of each objective's column, and how its numbers are written.
_LOOKS: dict[str, tuple[str, Callable[[float], str]]] = {
    "mean_waiting_time": ("WAITING s", _seconds),
    "mean_bounded_slowdown": ("SLOWDOWN", lambda value: f"{value:,.2f}"),
    "makespan": ("MAKESPAN s", _seconds),
    "utilisation": ("UTILISED", lambda value: f"{100 * value:.1f} %"),
    "consumed_joules": ("ENERGY", joules),
}


def show(screen: Screen, rows: Sequence[Row], same: Sequence[str]) -> None:
    """Print the runs of each case that are worth having.

    Args:
        same: the columns that make a case: workload, what is taken of it, load.
    """
    found = cases([row for row in rows if row["status"] == "done"], same)
    vary = [name for name in ("machine", "seed") if len({row[name] for row in rows}) > 1]
    told = [name for name in same[1:] if len({row[name] for row in rows}) > 1]
    for case in found[:MOST_CASES]:
        words = [f"{name} {case[0][name]}" for name in told if case[0][name] is not None]
        title = ", ".join([str(case[0]["workload"]), *words])
        judged = worth(case)
        screen.title(f"{fit(clean(title), screen.cells - 20)}: {count(len(case), 'run')}")
        screen.put(_table(case, judged, vary, screen), "")
        names = " and ".join(objective.name for objective in judged.two)
    if found:
        screen.put(f"> no other run beats it in both {names}    * the best of all")
    if len(found) > MOST_CASES:
        screen.put(f"{count(len(found) - MOST_CASES, 'more case')} in the results; --json is for programs")


def _table(case: Sequence[Row], judged: Worth, vary: Sequence[str], screen: Screen) -> Table:
    """The front and the best, by the second of the two objectives; runs whose numbers are alike are one line."""
    shown = [objective for objective in OBJECTIVES if objective in judged.best]
    keys = [tuple(row[objective.column] for objective in shown) for row in case]
    alike, chosen = Counter(keys), dict[tuple[Any, ...], int]()
    for place in (*judged.front, *judged.best.values()):
        chosen.setdefault(keys[place], place)
    lines = []
    for place in sorted(chosen.values(), key=lambda place: (judged.two[1].cost(case[place]) or 0.0, place)):
        row, mark = case[place], ">" if place in judged.front else " "
        numbers = [_number(objective, row, case[judged.best[objective]]) for objective in shown]
        lines.append((f"{mark} {row['policy']}", *(str(row[name]) for name in vary), str(alike[keys[place]]), *numbers))
    columns = (
        Column("  POLICY"), *(Column(name.upper(), right=name == "seed", most=20) for name in vary),
        Column("ALIKE", right=True), *(Column(_LOOKS[objective.column][0] + " ", right=True) for objective in shown),
    )  # fmt: skip
    return grid(columns, lines, screen.cells, ascii_only=screen.ascii_only)


def _number(objective: Objective, row: Row, best: Row) -> str:
    value = row[objective.column]
    if value is None:
        return "unknown "
    return _LOOKS[objective.column][1](value) + ("*" if value == best[objective.column] else " ")


def show_runs(screen: Screen, rows: Sequence[Row]) -> None:
    """Print what would be run: the workload, the policy, and what else varies from run to run."""
    rest = [name for name in rows[0] if name not in ("run", "workload", "policy") and not name.startswith("policy_")]
    names = ["workload", "policy", *(name for name in rest if len({row[name] for row in rows}) > 1)]

    def line(row: Row) -> tuple[str, ...]:
        return tuple("" if row[name] is None else str(row[name]) for name in names)

    columns = [Column(name.upper(), right=name in ("load", "seed"), most=30) for name in names]
    screen.put(grid(columns, with_gap(rows, line, everything=False), screen.cells, ascii_only=screen.ascii_only))


class Progress:
    """How far a sweep has come, on stderr.

    Args:
        runs: how many there are to do.
    """

    def __init__(self, runs: int) -> None:
        self._runs, self._ended, self._failed, self._told = runs, 0, 0, 0
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        from rich.console import Console

        console = Console(stderr=True)
        if self._runs and console.is_terminal and not console.is_dumb_terminal:
            self._start(console)
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._ended and error is None:
            spent = time.monotonic() - self._began
            rate = f", {self._ended / spent:,.0f} runs/s" if spent > 0 else ""
            tell(f"pilotfish: {count(self._ended, 'run')} in {duration(spent)}{rate}{self._failures}")

    def ended(self, rows: Sequence[Row]) -> None:
        """These runs have ended."""
        self._ended += len(rows)
        self._failed += sum(row["status"] != "done" for row in rows)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._ended, failed=self._failures)
        elif self._told < (tenths := 10 * self._ended // self._runs) < 10:
            self._told = tenths
            spent = duration(time.monotonic() - self._began)
            tell(f"pilotfish: {self._ended:,} of {count(self._runs, 'run')} in {spent}{self._failures}")

    @property
    def _failures(self) -> str:
        return f", {self._failed:,} failed" if self._failed else ""

    def _start(self, console: Any) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs{task.fields[failed]}"), TimeRemainingColumn())
        self._bar = Bar(*columns, console=console, transient=True)
        self._task = self._bar.add_task("", total=self._runs, failed="")
        self._bar.start()
