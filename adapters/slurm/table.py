"""Tables as Slurm's commands print them, read so that nothing a user wrote can pass for a field or a line.

Rule: every field is followed by a mark that is drawn anew for each call. A comment may hold blanks, newlines, `|` or
`JobState=RUNNING`; it cannot hold the mark. What does not divide evenly into rows was cut off, and is an error.
Source: squeue(1) and sinfo(1), `--Format=type[:[.][size][suffix]]`; a size of 0 prints a field whole.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ..base import ParseError

Record = TypeVar("Record")


def draw_mark() -> str:
    """A word that nobody can foresee, of characters that mean nothing in a format."""
    return f"@{secrets.token_hex(8)}@"


def format_of(fields: Sequence[str], mark: str) -> str:
    """The `--Format` that prints these fields, each followed by the mark."""
    return ",".join(f"{field}:0{mark}" for field in fields)


def rows(text: str, fields: Sequence[str], mark: str, argv: Sequence[str] = ()) -> list[dict[str, str]]:
    """Each row as field -> value, blanks around values removed. O(length).

    Raises:
        ParseError: the text ends within a row, or says something else.
    """
    return [_row(fields, values) for values in _cells(text, len(fields), mark, argv)]


class Reader(Generic[Record]):
    """Reads one table again and again: of a row that is as it was, the record is, too, so that little is read anew.

    Args:
        read: one row into a record. Raises ParseError.
    """

    def __init__(self, fields: Sequence[str], read: Callable[[dict[str, str]], Record], argv: Sequence[str]) -> None:
        self._fields, self._read, self._argv = fields, read, argv
        self._last: dict[tuple[str, ...], Record] = {}

    def __call__(self, text: str, mark: str, *, whole: bool = True) -> list[Record]:
        """The records, in order. `whole`: what is not in this table is not kept any more. O(length). Raises
        ParseError."""
        found, kept = [], dict[tuple[str, ...], Record]()
        for values in _cells(text, len(self._fields), mark, self._argv):
            record = self._last.get(values)
            kept[values] = record = self._read(_row(self._fields, values)) if record is None else record
            found.append(record)
        if whole:
            self._last = kept
        return found


def _cells(text: str, width: int, mark: str, argv: Sequence[str]) -> list[tuple[str, ...]]:
    """The values of each row, as they are printed."""
    values = text.split(mark)
    rest = values.pop()
    if rest.strip() or len(values) % width:
        who, tail = argv[0] if argv else "Slurm", text[-200:].replace(mark, "|")
        raise ParseError(f"{who}: the table is cut off or garbled", argv=argv, stderr_tail=tail)
    return list(zip(*[iter(values)] * width, strict=True))


def _row(fields: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    return dict(zip(fields, map(str.strip, values), strict=True))
