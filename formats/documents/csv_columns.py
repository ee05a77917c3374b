"""Read CSV tables as columns, a million rows in seconds; a malformed row is an error with its file and line.

Rule: rows are converted in blocks; the rows of a file are checked one by one only after a block failed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...simulate.errors import ConfigError
from ..text import count
from .document_errors import found
from .quantities import LARGEST

Array = npt.NDArray[Any]
Convert = Callable[[Sequence[str]], Array]
#: Rows per block.
BLOCK = 1024
#: Longest field, characters: the allocation of a job can be long.
MAX_FIELD = 1 << 30
#: Largest machine, resources.
MAX_RESOURCES = 1 << 31
_SPACE, _DASH, _ZERO, _NINE = b" -09"


@dataclass(frozen=True, slots=True)
class CsvColumn:
    """A column to read.

    Args:
        names: accepted names in the header; the first one present is read.
        convert: converts texts to an array; raises ValueError.
        allowed: what is allowed, for the error.
        required: whether its absence is an error; otherwise the column is left out of the result.
    """

    names: tuple[str, ...]
    convert: Convert
    allowed: str
    required: bool = True


def read_columns(path: Path, wanted: Mapping[str, CsvColumn]) -> dict[str, Array]:
    """Return the wanted columns of a CSV file with a header; other columns are ignored. O(bytes).

    Args:
        path: the file.
        wanted: name in the result -> column.

    Raises:
        ConfigError: a column is missing, or a row is malformed.
        OSError: the file cannot be read.
    """
    blocks: dict[str, list[Array]] = {}
    with _rows(path) as (header, rows, _):
        places = _positions(path, header, wanted)
        while block := list(islice(rows, BLOCK)):
            if {*map(len, block)} != {len(header)}:
                _explain(path, wanted)
            try:
                for name, place in places.items():
                    blocks.setdefault(name, []).append(wanted[name].convert([row[place] for row in block]))
            except ValueError:
                _explain(path, wanted)
    return {name: np.concatenate(blocks[name]) if blocks else wanted[name].convert([]) for name in places}


@contextmanager
def _rows(path: Path) -> Iterator[tuple[list[str], Iterator[list[str]], Callable[[], str]]]:
    """Yield the header, an iterator over the non-empty rows, and what returns FILE:LINE of the last row."""
    before = csv.field_size_limit(MAX_FIELD)
    try:
        with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            reader = csv.reader(file)
            try:
                header = [name.strip() for name in next(reader, [])]
                if not header:
                    raise ConfigError(
                        f"{path}", "line 1", "the file is empty", "a header line with column names, then rows"
                    )
                yield header, filter(None, reader), lambda: f"{path}:{reader.line_num}"
            except csv.Error as error:
                raise ConfigError(f"{path}:{reader.line_num}", "", f"not CSV: {error}") from None
    finally:
        csv.field_size_limit(before)


def _positions(path: Path, header: Sequence[str], columns: Mapping[str, CsvColumn]) -> dict[str, int]:
    places = {}
    for name, column in columns.items():
        positions = [header.index(alias) for alias in column.names if alias in header]
        if positions:
            places[name] = positions[0]
        elif column.required:
            allowed = f"a column of that name: {column.allowed}"
            raise ConfigError(f"{path}:1", column.names[0], "column missing", allowed)
    return places


def _explain(path: Path, columns: Mapping[str, CsvColumn]) -> NoReturn:
    """Raise the error of the first malformed row."""
    with _rows(path) as (header, rows, position):
        places = _positions(path, header, columns)
        for row in rows:
            if len(row) != len(header):
                raise ConfigError(
                    position(), "", f"found {count(len(row), 'field')}", f"{len(header)}, as in the first line"
                )
            for name, place in places.items():
                try:
                    columns[name].convert([row[place]])
                except ValueError:
                    raise ConfigError(position(), header[place], found(row[place]), columns[name].allowed) from None
    raise ConfigError(f"{path}", "", "the file changed while it was read", "a file that does not change")


def at_row(path: Path, row: int) -> str:
    """Return FILE:LINE of a row; rows count from 0 in the order in which they are read. O(bytes)."""
    with _rows(path) as (_, rows, position):
        next(islice(rows, row, None))
        return position()


def texts(values: Sequence[str]) -> Array:
    """Return texts as an object array."""
    column = np.empty(len(values), object)
    column[:] = values
    return column


def numbers(values: Iterable[str]) -> Array:
    """Return numbers from -LARGEST to LARGEST. Raises ValueError."""
    column = np.array(list(map(float, values)), float)
    if not (np.abs(column) <= LARGEST).all():
        raise ValueError
    return column


def numbers_or_nothing(values: Sequence[str]) -> Array:
    """Return numbers as `numbers` does, NaN for an empty field. Raises ValueError."""
    column = np.array([float(text or "nan") for text in values], float)
    if np.count_nonzero(~(np.abs(column) <= LARGEST)) != sum(not text for text in values):
        raise ValueError
    return column


def amounts(values: Iterable[str]) -> Array:
    """Return whole numbers from 0 to MAX_RESOURCES, exact. Raises ValueError."""
    column = numbers(values)
    if ((column < 0) | (column != np.floor(column)) | (column > MAX_RESOURCES)).any():
        raise ValueError
    return column.astype(np.int64)


def interval_counts(values: Iterable[str]) -> Array:
    """Return the number of intervals in each set ("0-3 7": two)."""
    return np.array([text.count(" ") + 1 if text else 0 for text in values], np.int64)


def intervals(values: Iterable[str]) -> Array:
    """Return the first and last number of each interval of all sets, one row each: "0-3 7" gives (0, 3), (7, 7).

    O(characters). Raises ValueError.
    """
    text = " ".join(filter(None, values))
    if not text:
        return np.empty((0, 2), np.int64)
    raw = np.frombuffer(text.encode("ascii"), np.uint8)
    ends = np.flatnonzero((raw < _ZERO) | (raw > _NINE))
    marks = raw[ends]
    lengths = np.diff(ends, prepend=-1, append=len(raw)) - 1
    dashes = marks == _DASH
    if not (dashes | (marks == _SPACE)).all() or (dashes[1:] & dashes[:-1]).any():
        raise ValueError
    if lengths.min() < 1 or lengths.max() > 10:
        raise ValueError
    numbers = np.fromstring(text.replace("-", " "), np.int64, sep=" ")
    pairs = np.stack([numbers[np.append(True, ~dashes)], numbers[np.append(~dashes, True)]], axis=1)
    if (pairs[:, 0] > pairs[:, 1]).any() or pairs[:, 1].max() >= MAX_RESOURCES:
        raise ValueError
    return pairs
