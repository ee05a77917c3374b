"""The rows of a sweep as results.csv, while it runs and afterwards.

Rule: a row is added as its run ends; when the sweep ends the file is written anew, whole, by run, so that it says
nothing of when each ended: two sweeps of the same runs differ in nothing but `simulation_time`, the last column. What
is not known is an empty field.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...simulate.formats.writing import write_whole

Row = Mapping[str, Any]


class Table:
    """The rows, and the file they are in. Raises OSError: it cannot be written.

    Args:
        columns: what a row holds, in order.
        rows: those that are there from an earlier start.
    """

    def __init__(self, path: Path, columns: Sequence[str], rows: Iterable[Row] = ()) -> None:
        self._path, self._columns = path, columns
        self._rows = {row["run"]: row for row in rows}
        self.write()

    @property
    def rows(self) -> list[Row]:
        """By run."""
        return [self._rows[number] for number in sorted(self._rows)]

    def add(self, rows: Sequence[Row]) -> None:
        """Append rows, to be seen at once."""
        self._rows |= {row["run"]: row for row in rows}
        with open(self._path, "a", encoding="utf-8", newline="") as file:
            file.write(self._text(rows))

    def write(self) -> None:
        """Write the file anew."""
        heading = dict(zip(self._columns, self._columns, strict=True))
        write_whole(self._path, self._text([heading, *self.rows]))

    def _text(self, rows: Iterable[Row]) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows(["" if row[name] is None else row[name] for name in self._columns] for row in rows)
        return out.getvalue()
