"""A sweep from where it is to its end.

Rule: a run is in the journal before it is in a row, and in a row before it is counted; a run that fails stops no other
and is not kept, so that the next start tries it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...simulate.sweep.grid import Run
from .crew import Crew
from .journal import Journal
from .prepared import Prepared
from .table import Table
from .task import Failure, carry_out

#: Called with the rows of runs that have ended.
Watch = Callable[[list[dict[str, Any]]], None]


def known_rows(prepared: Prepared, done: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the runs that are done already."""
    pairs = zip(prepared.runs, prepared.tasks, strict=True)
    return [prepared.row(run, done[task.identity]) for run, task in pairs if task.identity in done]


def conduct(prepared: Prepared, crew: Crew, journal: Journal, table: Table, watch: Watch) -> None:
    """Carry out the runs that are not in the journal; their rows go to the table. Raises OSError."""
    runs: dict[str, list[Run]] = {}
    for run, task in zip(prepared.runs, prepared.tasks, strict=True):
        runs.setdefault(task.identity, []).append(run)
    for ended in crew.each(carry_out, prepared.todo(journal.done)):
        good = {task.identity: answer for task, answer in ended if not isinstance(answer, Failure)}
        if good:
            journal.add(good)
        rows = [prepared.row(run, answer) for task, answer in ended for run in runs[task.identity]]
        if rows:
            table.add(rows)
            watch(rows)
