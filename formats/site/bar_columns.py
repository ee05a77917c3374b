"""The columns of a large table of `sacct -P`, piece by piece.

Rule: the same records as those of `bar_table`, in the same order. Most lines are a record each and are divided all at
once; lines that need a second look go through `Header.fields`. Memory holds two pieces of the file.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from ...simulate.arrays import Array
from ..documents.unpack import unpacked_pieces
from .bar_fields import BarFields, DividedLines, text_of
from .bar_table import Header, table_header

#: Largest dump of sacct, bytes: about 20,000,000 jobs.
LARGEST_DUMP = 2**33
PIECE_BYTES = 2**22


@dataclass(slots=True)
class BarColumns:
    """A table that is read once, from its first line to its last one.

    Args:
        source: the file.
        header: its columns.
        batches: the lines after the header, each with a line end, several at a time.
        left_out: why a record was left out -> how many.
    """

    source: str
    header: Header
    batches: Iterator[bytes]
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns, without blanks, in lower case."""
        return self.header.columns

    def has(self, *names: str) -> bool:
        """Return whether one of the columns is there."""
        return any(name in self.columns for name in names)

    def pieces(self) -> Iterator[BarFields]:
        """Yield the fields of the next records."""
        pending = list[str]()
        for data in self.batches:
            lines = DividedLines(data)
            starts = self._starts(lines)
            first = int(starts[0]) if len(starts) else len(lines)
            before = lines.texts(0, first)
            blank = 0 if pending else next((place for place, line in enumerate(before) if line), first)
            pending += before[blank:]
            if len(starts):
                yield self._divided(lines, starts, self._fields(pending))
                pending = lines.texts(int(starts[-1]), len(lines))
        yield BarFields.of(self.columns, self._fields(pending))

    def _starts(self, lines: DividedLines) -> Array:
        """Return which lines begin a record."""
        bars = lines.bars()
        begins = bars >= self.header.bars
        if self.header.form is not None:
            for place in np.flatnonzero(~begins & (bars > 0)).tolist():
                begins[place] = self.header.begins(lines.texts(place, place + 1)[0])
        return np.flatnonzero(begins)

    def _divided(self, lines: DividedLines, starts: Array, others: list[Sequence[str]]) -> BarFields:
        """Return the fields of a record before, and of those that begin at these lines, without the last one."""
        ends_with_bar, begins = self.header.ends_with_bar, starts[:-1]
        is_odd = (np.diff(starts) > 1) | (lines.bars()[begins] != len(self.columns) - 1 + ends_with_bar)
        if ends_with_bar:
            is_odd |= ~lines.end_with_bar(begins)
        places = [0] * len(others)
        for skipped, place in enumerate(np.flatnonzero(is_odd).tolist()):
            records = self._fields(lines.texts(int(starts[place]), int(starts[place + 1])))
            places += [place + len(places) - skipped] * len(records)
            others += records
        plain = BarFields(self.columns, lines.bytes, lines.cuts, lines.first_cuts(begins[~is_odd]))
        return plain.then(BarFields.of(self.columns, others), np.array(places, np.int64))

    def _fields(self, lines: Sequence[str]) -> list[Sequence[str]]:
        """Return a record; [] if the lines hold none, or it cannot be read."""
        text = "\n".join(lines).rstrip("\n")
        fields = self.header.fields(text, self.left_out) if text.strip() else None
        return [] if fields is None else [fields]


def read_bar_columns(path: Path, required: Sequence[str] = (), size: int = PIECE_BYTES) -> BarColumns:
    """Return the table in a file; only its header is read now.

    Args:
        path: the file, which may be packed by gzip; bytes that are no UTF-8 become question marks.
        required: columns that must be there, in lower case without blanks.
        size: bytes that are read at once.

    Raises:
        ConfigError: the file cannot be read, or a column is missing; also while the pieces are read.
    """
    batches, number = _batches(path, size), 0
    for data in batches:
        lines = data.split(b"\n")
        place = next((place for place, line in enumerate(lines) if b"|" in line), len(lines))
        number += min(place, len(lines) - 1)
        if place < len(lines):
            header = table_header(text_of(lines[place]), number + 1, str(path), required)
            rest = data[sum(map(len, lines[: place + 1])) + place + 1 :]
            return BarColumns(str(path), header, chain([rest] if rest else [], batches))
    return BarColumns(str(path), table_header("", 0, str(path), required), batches)


def _batches(path: Path, size: int) -> Iterator[bytes]:
    """Yield the lines of a file, each with a line end, several at a time."""
    rest, is_begin = list[bytes](), True
    pieces = unpacked_pieces(path, LARGEST_DUMP, size)
    for piece in chain(_ahead(pieces) if size >= PIECE_BYTES else pieces, [b"\n"]):
        end = piece.rfind(b"\n") + 1
        if not end:
            rest.append(piece)
            continue
        data = b"".join((*rest, piece[:end]))
        rest = [piece[end:]]
        if is_begin:
            data, is_begin = data.removeprefix(BOM_UTF8), False
        yield data.replace(b"\r\n", b"\n")


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces; from the second on, a thread unpacks the next one meanwhile."""
    first = next(pieces, b"")
    yield first
    if len(first) < PIECE_BYTES:
        yield from pieces
        return
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, pieces, b"")
        while piece := coming.result():
            coming = thread.submit(next, pieces, b"")
            yield piece
