"""Tables of `sacct -P`, `sacctmgr -P` and `sshare -P`: a header, then one record a line, fields divided by `|`.

Rule: fields are found by the names in the header, in any order; `-p`, which ends every line with a bar, is read, too.
A name or a command may hold bars and line ends: surplus fields and short lines are put together again where only one
reading makes sense. A record that cannot be read is left out, and counted by reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...simulate.errors import ConfigError
from ..documents.files import read_bytes
from ..documents.unpack import unpacked
from .bar_fields import BarFields

#: Largest table that is read as a whole, bytes.
LARGEST_TABLE = 2**30
#: Columns with text of users, in the order in which surplus fields are tried in them.
_TEXTS = ("submitline", "comment", "workdir", "reason", "jobname", "admincomment", "systemcomment", "wckey")
_JOB = re.compile(r"\d+(?:_(?:\d+|\[[^\]]*\]?))?(?:\+\d+)?(?:\.\w+)?", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d{1,11}|Unknown|None|", re.ASCII)
_NUMBER = re.compile(r"-?\d*(?:\.\d+)?[KMGT]?", re.ASCII)
#: Columns whose form is sure: a reading of a record that breaks it is wrong.
#: Characters of the names of columns that a message shows.
_SHOWN = 400
_FORMS = {
    **dict.fromkeys(("jobid", "jobidraw"), _JOB),
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys(("elapsedraw", "reqcpus", "alloccpus", "allocnodes", "reqnodes", "priority", "associd"), _NUMBER),
}


@dataclass(slots=True)
class BarTable:
    """A table.

    Args:
        source: the file.
        columns: names of the columns, without blanks, in lower case.
        rows: number of the line, and the fields by column.
        left_out: why a record was left out -> how many.
    """

    source: str
    columns: tuple[str, ...]
    rows: list[tuple[int, dict[str, str]]]
    left_out: Counter[str] = field(default_factory=Counter)

    def has(self, *names: str) -> bool:
        """Return whether one of the columns is there."""
        return any(name in self.columns for name in names)

    def pieces(self) -> Iterator[BarFields]:
        """Yield the fields of all records."""
        yield BarFields.of(self.columns, [[fields[name] for name in self.columns] for _, fields in self.rows])

    def records(self) -> Iterator[Record]:
        """Yield the records."""
        for line, fields in self.rows:
            yield Record(self.source, line, fields)


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a table; `fields`: text by column name in lower case."""

    source: str
    line: int
    fields: Mapping[str, str]

    def text(self, *names: str) -> str:
        """Return the text of the first of these columns that is there, without blanks around it; else ""."""
        for name in names:
            if (text := self.fields.get(name)) is not None:
                return text.strip()
        return ""


def read_text(path: Path) -> str:
    """Return the text of a file, which may be packed by gzip; bytes that are no UTF-8 become question marks.

    Raises:
        ConfigError: it cannot be read, or is too large.
    """
    data = unpacked(read_bytes(path, LARGEST_TABLE), str(path), LARGEST_TABLE)
    return data.decode("utf-8-sig", "replace").replace("\0", "?")


def read_bar_table(path: Path, required: Sequence[str] = ()) -> BarTable:
    """Return the table in a file. O(bytes).

    Args:
        path: the file, which may be packed by gzip.
        required: columns that must be there, in lower case without blanks.

    Raises:
        ConfigError: the file cannot be read, or a column is missing.
    """
    return bar_table(read_text(path), str(path), required)


def bar_table(text: str, source: str, required: Sequence[str] = ()) -> BarTable:
    """Return the table in a text; see `read_bar_table`."""
    lines = text.split("\n")
    place = next((i for i, line in enumerate(lines) if "|" in line), len(lines))
    header = table_header(lines[place] if place < len(lines) else "", place + 1, source, required)
    table = BarTable(source, header.columns, [])
    pending, first = list[str](), place + 1
    for number in range(place + 1, len(lines)):
        line, lines[number] = lines[number].removesuffix("\r"), ""
        if pending and not header.begins(line):
            pending.append(line)
            continue
        _add(table, first, pending, header)
        pending, first = [line] if line else [], number + 1
    _add(table, first, pending, header)
    return table


@dataclass(frozen=True, slots=True)
class Header:
    """The columns; `bars`: least bars of a line that begins a record; `form`: of the first field, if sure."""

    columns: tuple[str, ...]
    ends_with_bar: bool
    bars: int
    form: re.Pattern[str] | None

    def begins(self, line: str) -> bool:
        """Return whether a line begins a record."""
        if line.count("|") >= self.bars:
            return True
        return self.form is not None and "|" in line and self.form.fullmatch(line.partition("|")[0]) is not None

    def fields(self, text: str, left_out: Counter[str]) -> Sequence[str] | None:
        """Return the fields of a record; None, and it is counted, if it has too few, or they cannot be separated."""
        fields = text.removesuffix("|").split("|") if self.ends_with_bar else text.split("|")
        columns = self.columns
        if len(fields) < len(columns):
            left_out["records that were cut off"] += 1
            return None
        if len(fields) == len(columns):
            return fields
        for reading in _readings(columns, fields):
            if all(form.fullmatch(reading[name].strip()) for name, form in _FORMS.items() if name in reading):
                return [reading[name] for name in columns]
        left_out["records whose fields cannot be separated"] += 1
        return None


def table_header(line: str, number: int, source: str, required: Sequence[str]) -> Header:
    """Return the header of a table.

    Args:
        line: its text; "" without any.
        number: of the line.
        source: the file.
        required: columns that must be there.

    Raises:
        ConfigError: the line is empty, or a column is missing or there twice.
    """
    if not line:
        raise ConfigError(source, "line 1", "no header", "column names, divided by `|` (option -P)")
    names = [name.replace(" ", "").lower() for name in line.rstrip("\r").split("|")]
    columns = tuple(names[:-1] if names[-1] == "" else names)
    for name in required:
        if name not in columns:
            shown = ", ".join(columns)[:_SHOWN] + (" ..." if sum(map(len, columns)) > _SHOWN else "")
            raise ConfigError(source, f"line {number}", f"column {name} is missing", f"among {shown}")
    if len(set(columns)) != len(columns):
        raise ConfigError(source, f"line {number}", "a column is there twice", "each column once")
    form = _FORMS[columns[0]] if columns and columns[0] in ("jobid", "jobidraw") else None
    return Header(columns, names[-1] == "", max(1, len(columns) - 1) if form else 1, form)


def _add(table: BarTable, line: int, lines: Sequence[str], header: Header) -> None:
    text = "\n".join(lines).rstrip("\n")
    if text.strip() and (fields := header.fields(text, table.left_out)) is not None:
        table.rows.append((line, dict(zip(header.columns, fields, strict=True))))


def _readings(columns: Sequence[str], fields: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the records that these fields can be if bars stand inside one or two texts."""
    surplus = len(fields) - len(columns)
    places = sorted(columns.index(name) for name in _TEXTS if name in columns)
    if surplus > 1000:
        places = places[-1:]
    for place in reversed(places):
        yield _joined(columns, fields, {place: surplus})
    if surplus <= 100:
        for last in reversed(places):
            for before in (place for place in places if place < last):
                for bars in range(1, surplus):
                    yield _joined(columns, fields, {before: bars, last: surplus - bars})


def _joined(columns: Sequence[str], fields: Sequence[str], bars: Mapping[int, int]) -> dict[str, str]:
    record, place = dict[str, str](), 0
    for i, name in enumerate(columns):
        width = 1 + bars.get(i, 0)
        record[name] = "|".join(fields[place : place + width])
        place += width
    return record
