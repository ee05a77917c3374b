"""A sweep for people: its runs before they start, its progress, and the best runs of each case.

Rule: only runs of the same jobs at the same load are compared. Progress is a bar on a terminal, else a line at each
tenth.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from rich.text import Text

from ...formats.documents.quantities import plain
from ...formats.text import broken, clean, count, decimals, duration, fit, joules, width
from ...simulate.sweep import OBJECTIVES, BestRuns, ResultColumn, cases, worth
from ..streams import note
from .tables import with_gap
from .text import Screen, TextColumn, grid, needed, numbers, progress_bar

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.table import Table

Row = Mapping[str, Any]
MOST_CASES = 8
#: Policies that are named for having the numbers of another one; more are counted.
MOST_EQUAL = 6
_WIDEST_NAME, _LEAST_POLICY = 30, 18


def _word(value: Any) -> str:
    return "" if value is None else str(plain(value) if isinstance(value, float) else value)


def _seconds(value: float) -> str:
    return f"{value:,.{decimals(value)}f}"


#: Objective -> heading of its column, and how its numbers are written.
_SHOWN: dict[str, tuple[str, Callable[[float], str]]] = {
    "mean_waiting_time": ("WAITING s", _seconds),
    "mean_bounded_slowdown": ("SLOWDOWN", lambda value: f"{value:,.2f}"),
    "makespan": ("MAKESPAN s", _seconds),
    "utilisation": ("UTILISED", lambda value: f"{100 * value:.1f} %"),
    "consumed_joules": ("ENERGY", joules),
}


def show_sweep(screen: Screen, rows: Sequence[Row], same: Sequence[str]) -> None:
    """Print the best runs of each case.

    Args:
        screen: where to print.
        rows: the results.
        same: the columns that define a case: workload, selection of jobs, load.
    """
    groups = cases([row for row in rows if row["status"] == "done"], same)
    vary = [name for name in ("machine", "runtimes", "seed") if len({row.get(name) for row in rows}) > 1]
    differing = [name for name in same[1:] if len({row[name] for row in rows}) > 1]
    for case in groups[:MOST_CASES]:
        words = [f"{name} {_word(case[0][name])}" for name in differing if case[0][name] is not None]
        title = ", ".join([str(case[0]["workload"]), *words])
        judged = worth(case)
        screen.title(f"{fit(clean(title), screen.cells - 20)}: {count(len(case), 'run')}")
        screen.put(*_lines(case, judged, vary, screen), "")
        names = " and ".join(objective.name for objective in judged.two)
    if groups:
        screen.put(f"> no other run beats it in both {names}    * best")
    if len(groups) > MOST_CASES:
        screen.put(f"{count(len(groups) - MOST_CASES, 'more case')} in the results; --json is for programs")


def _lines(case: Sequence[Row], judged: BestRuns, vary: Sequence[str], screen: Screen) -> list[Table | Text]:
    """Return a line for each run of the Pareto front and each best run, sorted by the second of the two objectives.

    Runs with equal numbers share a line; their other policies are named below. Lines that do not fit become two: the
    run, and its numbers.
    """
    shown = [objective for objective in OBJECTIVES if objective in judged.best]
    keys = [tuple(row[objective.column] for objective in shown) for row in case]
    alike, chosen = defaultdict[tuple[Any, ...], list[str]](list), dict[tuple[Any, ...], int]()
    for key, run_row in zip(keys, case, strict=True):
        alike[key].append(run_row["policy"])
    for place in (*judged.front, *judged.best.values()):
        chosen.setdefault(keys[place], place)
    places = sorted(chosen.values(), key=lambda place: (judged.two[1].cost(case[place]) or 0.0, place))
    marks = ["> " if place in judged.front else "  " for place in places]
    runs = [(case[place]["policy"], *(str(case[place][name]) for name in vary)) for place in places]
    counts = [len(alike[keys[place]]) for place in places]
    values = [[_number(goal, case[place], case[judged.best[goal]]) for goal in shown] for place in places]
    heads = [_SHOWN[objective.column][0] + " " for objective in shown]
    columns = [TextColumn("  POLICY"), *(TextColumn(name.upper(), right=name == "seed") for name in vary)]
    shared = max(counts) > 1
    columns += numbers(*["EQUAL RUNS"] * shared, *heads)
    every = list(zip(marks, runs, counts, values, strict=True))
    rows = [(mark + run[0], *run[1:], *[str(same)] * shared, *row) for mark, run, same, row in every]
    labels = [", ".join([run[0], *map(" ".join, zip(vary, run[1:], strict=True))]) for run in runs]
    below = list[Text]()
    for place, run, label in zip(places, runs, labels, strict=True):
        below += _equal(label, [name for name in dict.fromkeys(alike[keys[place]]) if name != run[0]], screen)
    if needed(columns, rows) <= screen.cells:
        return [grid(columns, rows, screen), *below]
    sizes = [max(map(width, column)) for column in zip(heads, *values, strict=True)]
    lines = [Text("    " + _right(heads, sizes), style="bold")]
    for label, (mark, _, same, row) in zip(labels, every, strict=True):
        text = clean(label + f", {count(same, 'equal run')}" * (same > 1), ascii_only=screen.ascii_only)
        first, *continuation = broken(text, screen.cells - 4, ascii_only=screen.ascii_only)
        lines += [
            Text(mark + first),
            *(Text(f"    {line}") for line in continuation),
            Text("    " + _right(row, sizes)),
        ]
    return [*lines, *below]


def _equal(run: str, policies: Sequence[str], screen: Screen) -> Iterator[Text]:
    """Yield the lines that name the other policies with the numbers of a run."""
    if policies:
        more = f", and {len(policies) - MOST_EQUAL} more" if len(policies) > MOST_EQUAL else ""
        text = clean(f"equal to {run}: {', '.join(policies[:MOST_EQUAL])}{more}", ascii_only=screen.ascii_only)
        first, *continuation = broken(text, screen.cells - 4, ascii_only=screen.ascii_only)
        yield Text(f"  {first}")
        yield from (Text(f"    {line}") for line in continuation)


def _right(words: Sequence[str], sizes: Sequence[int]) -> str:
    return "  ".join(word.rjust(size) for word, size in zip(words, sizes, strict=True))


def _number(objective: ResultColumn, row: Row, best: Row) -> str:
    value = row[objective.column]
    if value is None:
        return "unknown "
    return _SHOWN[objective.column][1](value) + ("*" if value == best[objective.column] else " ")


def show_runs(screen: Screen, rows: Sequence[Row]) -> None:
    """Print the runs of a sweep: workload, policy, and what else differs between runs."""
    column_names = [
        name for name in rows[0] if name not in ("run", "workload", "policy") and not name.startswith("policy_")
    ]
    names = ["workload", "policy", *(name for name in column_names if len({row[name] for row in rows}) > 1)]

    def line(row: Row) -> tuple[str, ...]:
        return tuple(_word(row[name]) for name in names)

    columns = [TextColumn(name.upper(), right=name in ("load", "seed"), most=_WIDEST_NAME) for name in names]
    lines = with_gap(rows, line, everything=False)
    fixed_columns = [columns[0], *columns[2:]]
    room = screen.cells - 2 - needed(fixed_columns, [(cells[0], *cells[2:]) for cells in lines])
    if room < _LEAST_POLICY:  # long names of workloads give way, and no number does
        columns[0] = TextColumn("WORKLOAD", most=_WIDEST_NAME - (_LEAST_POLICY - room))
        room = _LEAST_POLICY
    columns[1] = TextColumn("POLICY", most=room)
    parted = list[tuple[str, ...]]()
    for workload, policy, *more in lines:
        first, *continuation = broken(policy, room - 2, ascii_only=screen.ascii_only)
        parted += [(workload, first, *more), *(("", f"  {text}", *[""] * len(more)) for text in continuation)]
    screen.table(columns, parted)


class SweepProgress:
    """The progress of a sweep, on stderr.

    Args:
        runs: how many are to be replayed.
    """

    def __init__(self, runs: int) -> None:
        self._runs, self._ended, self._failed, self._tenths = runs, 0, 0, 0
        self._began = time.monotonic()
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        from rich.progress import MofNCompleteColumn

        if self._runs:
            self._bar = progress_bar(self._runs, MofNCompleteColumn(), "runs{task.fields[failed]}", failed="")
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._ended and error is None:
            spent = time.monotonic() - self._began
            rate = f", {count(round(self._ended / spent), 'run')}/s" if self._ended > spent > 0 else ""
            note(f"{count(self._ended, 'run')} in {duration(spent)}{rate}{self._failures}")

    def ended(self, rows: Sequence[Row]) -> None:
        """Count runs that have ended."""
        self._ended += len(rows)
        self._failed += sum(row["status"] != "done" for row in rows)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._ended, failed=self._failures)
        elif self._tenths < (tenths := 10 * self._ended // self._runs) < 10:
            self._tenths = tenths
            spent = duration(time.monotonic() - self._began)
            note(f"{self._ended:,} of {count(self._runs, 'run')} in {spent}{self._failures}")

    @property
    def _failures(self) -> str:
        return f", {self._failed:,} failed" if self._failed else ""
