"""Results of a sweep: results.csv and results.parquet, from the journal of finished runs.

Rule: a run is in the journal before it is in a row, and in a row before it is counted. A failed run stops no other run
and is not in the journal, so that the same command tries it again. results.csv is rewritten in the order of the runs at
the end: two sweeps of the same runs differ only in the column `simulation_time`. An unknown value is an empty field.
pyarrow is an optional package.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import IO, Any

from ...formats.documents.atomic_write import write_whole
from ...simulate.errors import PilotfishError
from ...simulate.replay.metrics import Summary
from ...simulate.sweep import SweepRun
from ...trust import open_own_file
from .prepare import Prepared
from .run_journal import RunJournal
from .tasks import Failure, carry_out
from .workers import WorkerPool

Row = Mapping[str, Any]


class ResultsTable:
    """The rows of the results and their file. Raises OSError: it cannot be written.

    Args:
        path: the file.
        columns: names of the columns, in order.
        rows: rows of earlier runs.
    """

    def __init__(self, path: Path, columns: Sequence[str], rows: Iterable[Row] = ()) -> None:
        self._path, self._columns = path, columns
        self._rows = {row["run"]: row for row in rows}
        self.write()

    @property
    def rows(self) -> list[Row]:
        """Return the rows in the order of the runs."""
        return [self._rows[number] for number in sorted(self._rows)]

    def add(self, rows: Sequence[Row]) -> None:
        """Append rows to the file."""
        self._rows |= {row["run"]: row for row in rows}
        fd = open_own_file(self._path, os.O_WRONLY | os.O_APPEND)
        with os.fdopen(fd, "a", encoding="utf-8", newline="") as file:
            self._writer(file).writerows(rows)

    def write(self) -> None:
        """Rewrite the file, in the order of the runs."""
        out = io.StringIO()
        self._writer(out).writeheader()
        self._writer(out).writerows(self.rows)
        write_whole(self._path, out.getvalue())

    def _writer(self, file: IO[str]) -> csv.DictWriter[str]:
        return csv.DictWriter(file, self._columns, lineterminator="\n")


#: Called with the rows of ended runs.
Watch = Callable[[list[dict[str, Any]]], None]


def known_rows(prepared: Prepared, done: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of runs that are done already."""
    return [prepared.row(run, done[task.identity]) for run, task in prepared.pairs if task.identity in done]


def conduct(prepared: Prepared, pool: WorkerPool, journal: RunJournal, table: ResultsTable, watch: Watch) -> None:
    """Carry out the runs that are not in the journal. Raises OSError.

    Args:
        prepared: the sweep.
        pool: the workers.
        journal: gets the numbers of successful runs.
        table: gets all rows.
        watch: called with each batch of rows.
    """
    runs: dict[str, list[SweepRun]] = {}
    for run, task in prepared.pairs:
        runs.setdefault(task.identity, []).append(run)
    for ended in pool.each(carry_out, prepared.todo(journal.done)):
        good = {task.identity: answer for task, answer in ended if not isinstance(answer, Failure)}
        if good:
            journal.add(good)
        rows = [prepared.row(run, answer) for task, answer in ended for run in runs[task.identity]]
        if rows:
            table.add(rows)
            watch(rows)


#: Columns of numbers, in addition to those of Summary; the others are text.
_NUMBERS = {"run": "int64", "seed": "int64", "load": "float64", "from": "float64", "until": "float64",
            "min_size": "int64", "max_size": "int64"}  # fmt: skip
_NUMBERS |= {each.name: "int64" if each.type == "int" else "float64" for each in fields(Summary)}


def demand_pyarrow() -> None:
    """Raise PilotfishError if pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise PilotfishError("--parquet needs pyarrow: pip install 'pilotfish[parquet]', or do without: CSV is written")


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write the rows into a Parquet file, whole or not at all. Raises PilotfishError: no pyarrow; OSError."""
    demand_pyarrow()
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(name, getattr(pyarrow, _NUMBERS.get(name, "string"))()) for name in columns])
    values = [
        {name: row[name] if row[name] is None or name in _NUMBERS else str(row[name]) for name in columns}
        for row in rows
    ]
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(values, schema), buffer)
    write_whole(path, buffer.getvalue())
