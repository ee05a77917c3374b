"""The columns of a large table of `sacct -P`, piece by piece.

Rule: the same records as those of `bar_table`, in the same order. Most lines are a record each and are divided all at
once; lines that need a second look go through `Header.fields`. Memory holds one piece of the file and its fields.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path

import numpy as np

from ...simulate.arrays import Array
from ..documents.unpack import unpacked_pieces
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
        batches: the lines after the header, without line ends, several at a time.
        left_out: why a record was left out -> how many.
    """

    source: str
    header: Header
    batches: Iterator[list[str]]
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns, without blanks, in lower case."""
        return self.header.columns

    def has(self, *names: str) -> bool:
        """Return whether one of the columns is there."""
        return any(name in self.columns for name in names)

    def pieces(self) -> Iterator[dict[str, list[str]]]:
        """Yield the texts of the next records by column."""
        columns, pending = self.header.columns, list[str]()
        for lines in self.batches:
            bars, starts = self._starts(lines)
            first = int(starts[0]) if len(starts) else len(lines)
            blank = 0 if pending else next((place for place in range(first) if lines[place]), first)
            pending += lines[blank:first]
            if len(starts):
                fields = self._fields(pending) + self._divided(lines, bars, starts)
                pending = lines[starts[-1] :]
                yield {name: fields[place :: len(columns)] for place, name in enumerate(columns)}
        fields = self._fields(pending)
        yield {name: fields[place :: len(columns)] for place, name in enumerate(columns)}

    def _starts(self, lines: list[str]) -> tuple[Array, Array]:
        """Return the number of bars of each line, and which lines begin a record."""
        bars = np.fromiter(map(str.count, lines, repeat("|")), np.int64, len(lines))
        begins = bars >= self.header.bars
        if self.header.form is not None:
            for place in np.flatnonzero(~begins & (bars > 0)).tolist():
                begins[place] = self.header.begins(lines[place])
        return bars, np.flatnonzero(begins)

    def _divided(self, lines: list[str], bars: Array, starts: Array) -> list[str]:
        """Return the fields of the records that begin at these lines, without the last one, one after another."""
        more = int(self.header.ends_with_bar)
        is_odd = (np.diff(starts) > 1) | (bars[starts[:-1]] != len(self.header.columns) - 1 + more)
        if more:
            is_odd |= ~np.fromiter((lines[start].endswith("|") for start in starts[:-1]), bool, len(is_odd))
        fields, plain = list[str](), 0
        for place in [*np.flatnonzero(is_odd).tolist(), len(is_odd)]:
            if place > plain:
                part = lines[starts[plain] : starts[place]]
                fields += "|".join([line.removesuffix("|") for line in part] if more else part).split("|")
            if place < len(is_odd):
                fields += self._fields(lines[starts[place] : starts[place + 1]])
            plain = place + 1
        return fields

    def _fields(self, lines: Sequence[str]) -> list[str]:
        """Return the fields of a record; [] if it has none, or cannot be read."""
        text = "\n".join(lines).rstrip("\n")
        return list(self.header.fields(text, self.left_out) or ()) if text.strip() else []


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
    for lines in batches:
        place = next((place for place, line in enumerate(lines) if "|" in line), len(lines))
        number += place
        if place < len(lines):
            header = table_header(lines[place], number + 1, str(path), required)
            return BarColumns(str(path), header, chain([lines[place + 1 :]], batches))
    return BarColumns(str(path), table_header("", 0, str(path), required), batches)


def _batches(path: Path, size: int) -> Iterator[list[str]]:
    """Yield the lines of a file, without line ends, several at a time."""
    decoder, rest, has_returns = getincrementaldecoder("utf-8-sig")("replace"), list[str](), False
    for piece in chain(unpacked_pieces(path, LARGEST_DUMP, size), [b""]):
        text = decoder.decode(piece, final=not piece).replace("\0", "?")
        has_returns = has_returns or "\r" in text
        first, *lines = text.split("\n")
        rest.append(first)
        if piece and not lines:
            continue
        lines.insert(0, "".join(rest))
        rest = [lines.pop()] if piece else []
        yield [line.removesuffix("\r") for line in lines] if has_returns else lines
