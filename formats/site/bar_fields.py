"""Fields of the records of a table as bytes: where each begins and ends, without an object for each.

Rule: bytes that are no UTF-8, and NUL, become question marks when a text is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from ...simulate.arrays import Array
from ...simulate.kernels.bars.tables import RecordLines

_BAR, _LINE_END = ord("|"), ord("\n")


def text_of(data: bytes) -> str:
    """Return the text of some bytes."""
    return data.decode("utf-8", "replace").replace("\0", "?")


class DividedLines:
    """Whole lines; the cuts are the places of their bars and ends, after one before the first line.

    Args:
        data: the lines, each with a line end.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.bytes = data, np.frombuffer(data, np.uint8)
        cuts = np.flatnonzero((self.bytes == _BAR) | (self.bytes == _LINE_END))
        self.cuts = np.concatenate([np.array([-1]), cuts])
        self._first = np.concatenate([np.array([0]), np.flatnonzero(self.bytes[cuts] == _LINE_END) + 1])

    def __len__(self) -> int:
        return len(self._first) - 1

    def bars(self) -> Array:
        """Return the number of bars of each line."""
        return np.diff(self._first) - 1

    def first_cuts(self, lines: Array) -> Array:
        """Return which cut stands before each of some lines."""
        return self._first[lines]

    def end_with_bar(self, lines: Array) -> Array:
        """Return which of some lines end with a bar."""
        last = self._first[lines + 1]
        ends: Array = self.cuts[last - 1] == self.cuts[last] - 1
        return ends

    def texts(self, first: int, last: int) -> list[str]:
        """Return the lines from `first` to the one before `last`, without line ends."""
        begin, end = int(self.cuts[self._first[first]]) + 1, int(self.cuts[self._first[last]])
        return text_of(self.data[begin:end]).split("\n") if first < last else []


class BarFields:
    """Fields of some records.

    Field c of record r is `text[cuts[first[r] + c] + 1 : cuts[first[r] + c + 1]]`.

    Args:
        columns: names of the columns.
        text: bytes [bytes].
        cuts: places of what separates fields [cuts].
        first: the cut before each record [records].
    """

    def __init__(self, columns: Sequence[str], text: Array, cuts: Array, first: Array) -> None:
        self.columns, self._text, self._cuts, self._first = columns, text, cuts, first
        shapes = {"code": first.shape, "number": first.shape}
        self.lines = RecordLines({"text": text, "cuts": cuts, "first": first}, shapes)

    @classmethod
    def of(cls, columns: Sequence[str], records: Iterable[Sequence[str]]) -> BarFields:
        """Return the fields of records that are texts."""
        records = list(records)
        data = [field.encode("utf-8", "replace") for field in chain.from_iterable(records)]
        ends = np.cumsum(np.fromiter((len(field) + 1 for field in data), np.int64, len(data)))
        cuts = np.concatenate([np.array([-1]), ends - 1])
        text = np.frombuffer(b"|".join((*data, b"")), np.uint8)
        return cls(columns, text, cuts, np.arange(len(records)) * len(columns))

    def __len__(self) -> int:
        return len(self._first)

    def has(self, name: str) -> bool:
        """Return whether a column is there."""
        return name in self.columns

    def place(self, name: str) -> int:
        """Return the place of a column."""
        return self.columns.index(name)

    def bytes_of(self, name: str) -> int:
        """Return the number of bytes of all fields of a column."""
        first = self._first + self.place(name)
        return int((self._cuts[first + 1] - self._cuts[first]).sum()) - len(first)

    def texts(self, name: str, records: Iterable[int]) -> list[str]:
        """Return the texts of a column of some records; "" without it."""
        if not self.has(name):
            return ["" for _ in records]
        places = [int(self._first[record]) + self.place(name) for record in records]
        return [text_of(self._text[self._cuts[at] + 1 : self._cuts[at + 1]].tobytes()) for at in places]

    def then(self, other: BarFields, places: Array) -> BarFields:
        """Return these records and others of the same columns.

        Args:
            other: further records.
            places: which of all records they are, ascending.
        """
        if not len(other):
            return self
        first = np.insert(self._first, places - np.arange(len(places)), other._first + len(self._cuts))
        text = np.concatenate([self._text, other._text])
        return BarFields(self.columns, text, np.concatenate([self._cuts, other._cuts + len(self._text)]), first)
