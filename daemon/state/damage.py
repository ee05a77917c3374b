"""Rows of the journal that cannot be read: bytes that are not UTF-8, JSON that is cut off, values of another type.

Rule: a row that only explains or teaches is left out, logged and counted, as an unreadable job of Slurm's is. A row by
which the daemon decides is an error with a remedy (`journal_db.unusable`).
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from ...simulate.errors import InvalidJobError
from .divided_work import Steps, in_parts

Value = TypeVar("Value")
log = logging.getLogger("pilotfish.journal")
#: What reading a damaged value raises.
UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    InvalidJobError,
)
#: Tables whose rows may be left out: all of them, or those of what has ended.
EXPLAINING = (
    "accounting", "changes", "errors", "intents", "jobs", "members", "queued", "story", "workflows", "would_be",
)  # fmt: skip
#: Rows of a table that are named in the log; the others are only counted.
_NAMED = 5
#: Rows that are read in one step.
ROWS_AT_ONCE = 1000
TEXT, REAL, WHOLE = (str,), (float, int), (int,)
Kinds = tuple[type, ...]


def text_of(data: bytes) -> str:
    """Return the text of a column; bytes that are not UTF-8 become surrogates, which `checked` refuses."""
    return data.decode(errors="surrogateescape")


def optional(kinds: Kinds) -> Kinds:
    """Return these types, or None."""
    return (*kinds, type(None))


def checked(row: Sequence[Any], kinds: Iterable[Kinds]) -> Sequence[Any]:
    """Return a row whose values have the types of their columns. Raises ValueError.

    Args:
        row: the values.
        kinds: types allowed in each column.
    """
    for column, (value, allowed) in enumerate(zip(row, kinds, strict=True), 1):
        if not isinstance(value, allowed):
            raise ValueError(f"column {column} has {type(value).__name__}")
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"column {column} is not text in UTF-8") from None
    return row


def kinds_of(record: type) -> tuple[Kinds, ...]:
    """Return the types allowed in the columns of a table whose rows are the fields of a dataclass."""
    columns = []
    for hint in get_type_hints(record).values():
        kinds = getattr(hint, "__args__", (hint,))
        columns.append(tuple({stored for kind in kinds for stored in _STORED.get(kind, (kind,))}))
    return tuple(columns)


_STORED: dict[type, Kinds] = {float: REAL, bool: WHOLE}


def json_object(text: str | None) -> dict[str, Any]:
    """Return the object in a text, {} without one. Raises ValueError."""
    value = json.loads(text or "{}")
    if not isinstance(value, dict):
        raise ValueError(f"found {type(value).__name__} in place of an object")
    return value


class Damage:
    """Leaves out rows that cannot be read, and counts them.

    Args:
        path: the journal's file.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._damaged = path, dict[str, set[object]]()
        self._metric: Any = None

    def count_in(self, metric: Any) -> None:
        """Count what is found from now on in a metric with the label `table`; every table begins with 0."""
        for table in EXPLAINING:
            metric.labels(table)
        self._metric = metric

    def number(self) -> Counter[str]:
        """Return the number of damaged rows that were found, by table."""
        return Counter({table: len(rows) for table, rows in self._damaged.items()})

    def readable(
        self, table: str, rows: Iterable[tuple[Any, ...]], make: Callable[[tuple[Any, ...]], Value]
    ) -> list[Value]:
        """Return what is made of the rows that can be read.

        Args:
            table: its name.
            rows: their first value tells them apart.
            make: makes a value of a row; raises one of UNREADABLE for a damaged one.
        """
        values = []
        for row in rows:
            try:
                values.append(make(row))
            except UNREADABLE as error:
                self.note(table, row[0], error)
        return values

    def readable_steps(
        self, table: str, rows: Sequence[tuple[Any, ...]], make: Callable[[tuple[Any, ...]], Value]
    ) -> Steps[list[Value]]:
        """Return what `readable` returns, in steps."""
        return in_parts(rows, lambda part: self.readable(table, part, make), ROWS_AT_ONCE)

    def note(self, table: str, row: object, error: Exception) -> None:
        """Count a damaged row, and log it, once.

        Args:
            table: its name.
            row: what tells it from others.
            error: why it cannot be read.
        """
        damaged = self._damaged.setdefault(table, set())
        if row in damaged:
            return
        damaged.add(row)
        if self._metric is not None:
            self._metric.labels(table).inc()
        if len(damaged) <= _NAMED:
            more = "; further ones are only counted" if len(damaged) == _NAMED else ""
            words = "%s: row %.80r of the table %s cannot be read and is left out: %.200s%s"
            log.warning(words, self._path, row, table, error, more)
