"""Columns of texts as columns of numbers: each different text is read once.

Rule: a value that a reader refuses is UNREAD, one that is not there is NaN. A column is read piece by piece; a text is
bytes until it is looked at.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, tzinfo
from operator import lt
from typing import overload

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from ...simulate.kernels.bars.tables import IDS, SLOTS, TEXTS, TIMES, Texts
from ...simulate.kernels.object_cache import load
from ...simulate.slurm.job_columns import constant
from .. import slurm_values
from ..hostlist import MOST_NODES, expand, is_node_name
from .bar_fields import BarFields, text_of

#: A value that cannot be read.
UNREAD = -np.inf
_HOUR = re.compile(r"\d{4}-\d\d-\d\dT\d\d", re.ASCII)
#: Texts that are all kept once one is looked at; texts that are made at once; texts and bytes with room at first.
_FEW, _MADE, _ROOM = 2**16, 4096, 1024
_BLANK = ord(" ")


def _texts_at(data: Array, ends: Array, places: range) -> list[str]:
    """Return the texts at places. O(bytes from the first of them to the last).

    Args:
        data: the bytes of all texts.
        ends: text i is bytes `ends[i]` to `ends[i + 1]`.
        places: of the texts.
    """
    if not places:
        return []
    first = min(places[0], places[-1])
    bounds = ends[first : max(places[0], places[-1]) + 2].tolist()
    part, begin = data[bounds[0] : bounds[-1]].tobytes(), bounds[0]
    offsets = (place - first for place in places)
    return [text_of(part[bounds[offset] - begin : bounds[offset + 1] - begin]) for offset in offsets]


class KeptTexts(Sequence[str]):
    """Texts as bytes; a text is made when it is looked at.

    Args:
        data: their bytes in UTF-8.
        ends: text i is bytes `ends[i]` to `ends[i + 1]`.
    """

    def __init__(self, data: Array, ends: Array) -> None:
        self._data, self._ends, self._made = data, ends, list[str]()

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if self._made:
            return self._made[place]
        if len(self) <= _FEW:
            self._made = _texts_at(self._data, self._ends, range(len(self)))
            return self._made[place]
        places = range(len(self))[place]
        if isinstance(places, int):
            return _texts_at(self._data, self._ends, range(places, places + 1))[0]
        return _texts_at(self._data, self._ends, places)

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _MADE):
            yield from self[first : first + _MADE]

    def have_blanks(self) -> Array:
        """Return which texts have a blank."""
        blanks = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._data == _BLANK)])[self._ends]
        have: Array = blanks[1:] != blanks[:-1]
        return have


class FieldTexts(Sequence[str]):
    """The different texts of columns, as they are written, in the order in which they come."""

    def __init__(self) -> None:
        self._texts = self._with_room(_ROOM, _ROOM)
        self._texts.count["seed"] = hash("so that no user can choose texts with one hash") & 0x7FFFFFFF

    def __len__(self) -> int:
        return int(self._texts.count["texts"])

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        texts, places = self._texts, range(len(self))[place]
        if isinstance(places, int):
            return _texts_at(texts.bytes, texts.ends, range(places, places + 1))[0]
        return _texts_at(texts.bytes, texts.ends, places)

    def kept(self) -> KeptTexts:
        """Return the texts so far, which need less memory."""
        ends = self._texts.ends[: len(self) + 1].copy()
        return KeptTexts(self._texts.bytes[: ends[-1]].copy(), ends)

    def numbers(self, fields: BarFields, column: str) -> Array:
        """Return which texts the fields of a column are; O(its bytes)."""
        return self._read(fields, column, TEXTS)[0]

    def times(self, fields: BarFields, column: str) -> tuple[Array, Array]:
        """Return which texts the hours of times are, and the seconds after them.

        -1 second: a time is not written as `2026-03-02T06:00:00`, and the text is all of it.
        """
        return self._read(fields, column, TIMES)

    def odd(self, numbers: Array) -> Array:
        """Return which of some texts may differ from what they say: by blanks around it, or bytes that are no text."""
        are_odd: Array = self._texts.is_odd[numbers] == 1
        return are_odd

    def _read(self, fields: BarFields, column: str, request: int) -> tuple[Array, Array]:
        texts, size = len(self) + len(fields), int(self._texts.ends[len(self)]) + fields.bytes_of(column)
        if texts > len(self._texts.hashes) or size > len(self._texts.bytes):
            self._grow(max(texts, 2 * len(self)), max(size, 2 * int(self._texts.ends[len(self)])))
        load("bars.columns")(fields.lines.address, self._texts.address, request, fields.place(column))
        return fields.lines.code.copy(), fields.lines.number.copy()

    def _grow(self, texts: int, size: int) -> None:
        """Make room for so many texts and bytes."""
        old, number = self._texts, len(self)
        self._texts = self._with_room(texts, size)
        self._texts.count[()] = old.count
        for name, last in (("hashes", number), ("is_odd", number), ("ends", number + 1), ("bytes", old.ends[number])):
            getattr(self._texts, name)[:last] = getattr(old, name)[:last]
        load("bars.columns")(BarFields.of(("",), []).lines.address, self._texts.address, SLOTS, 0)

    @staticmethod
    def _with_room(texts: int, size: int) -> Texts:
        rows = (texts,)
        slots = (1 << (2 * texts).bit_length(),)
        return Texts({}, {"slots": slots, "hashes": rows, "ends": (texts + 1,), "bytes": (size,), "is_odd": rows})


def job_ids(fields: BarFields, column: str) -> tuple[Array, Array]:
    """Return the numbers of jobs or arrays, -1 where they are not written as `77` or `77_5`, and tasks, -1 for none."""
    load("bars.columns")(fields.lines.address, FieldTexts()._texts.address, IDS, fields.place(column))
    return fields.lines.number.copy(), fields.lines.code.copy()


class TextCodes:
    """Codes of texts without the blanks around them; `values_by_code[code]` is the text."""

    def __init__(self) -> None:
        self._texts, self._same = FieldTexts(), dict[int, int]()

    @property
    def values_by_code(self) -> FieldTexts:
        """Return the texts; those of codes that no column has may have blanks around them."""
        return self._texts

    def code(self, text: str) -> int:
        """Return the code of a text without blanks around it."""
        return int(self._texts.numbers(BarFields.of(("",), [(text,)]), "")[0])

    def column(self, fields: BarFields, column: str) -> Array:
        """Return the codes of a column; the code of "" if it is not there."""
        if not fields.has(column):
            return constant(self.code(""), np.int32, len(fields))
        codes = self._texts.numbers(fields, column)
        odd = np.flatnonzero(self._texts.odd(codes))
        for place, code in zip(odd.tolist(), codes[odd].tolist(), strict=True):
            if code not in self._same:
                self._same[code] = self.code(self._texts[code].strip())
            codes[place] = self._same[code]
        return codes


class ValueCodes:
    """Codes of what texts mean; `values_by_code[code]` is that.

    Args:
        clean: returns what a text without the blanks around it means.
    """

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._codes = dict[str, int]()
        self._numbers = NumberColumn(lambda text: self.code(clean(text)))

    def code(self, value: str) -> int:
        """Return the code of a value."""
        return self._codes.setdefault(value, len(self._codes))

    @property
    def values_by_code(self) -> list[str]:
        """Return the values."""
        return [*self._codes]

    def column(self, fields: BarFields, column: str) -> Array:
        """Return the codes of a column; that of "" if it is not there."""
        return self._numbers.column(fields, column).astype(np.int32)


class NumberColumn:
    """Numbers of texts.

    Args:
        number: returns that of a text without the blanks around it, None for no number. Raises ValueError.
    """

    def __init__(self, number: Callable[[str], float | None]) -> None:
        self._number, self._texts, self._values = number, FieldTexts(), array("d")

    def column(self, fields: BarFields, column: str) -> Array:
        """Return the numbers of a column; that of "" if it is not there."""
        if not fields.has(column):
            return constant(_read(self._number, ""), np.float64, len(fields))
        return self.of(self._texts, self._texts.numbers(fields, column))

    def of(self, texts: FieldTexts, numbers: Array) -> Array:
        """Return the numbers of some texts, which are always the same."""
        self._values.extend(_read(self._number, text.strip()) for text in texts[len(self._values) :])
        return np.frombuffer(self._values, np.float64)[numbers] if self._values else np.zeros(0)


class TimeColumn:
    """Times, in seconds since the epoch. In an hour without a change of the clock the date is read once.

    Args:
        zone: of the texts.
    """

    def __init__(self, zone: tzinfo) -> None:
        self._zone, self._texts = zone, FieldTexts()
        self._hours, self._repeats = NumberColumn(self._hour), NumberColumn(self._repeat)
        self._others, self._moments = NumberColumn(self._other), dict[str, float]()

    def column(self, fields: BarFields, column: str) -> Array:
        """Return the times of a column; NaN if it is not there."""
        if not fields.has(column):
            return constant(np.nan, np.float64, len(fields))
        numbers, seconds = self._texts.times(fields, column)
        times = np.where(
            seconds < 0, self._others.of(self._texts, numbers), self._hours.of(self._texts, numbers) + seconds
        )
        others = np.flatnonzero((seconds >= 0) & np.isnan(times))
        times[others] = [self._other(text) for text in fields.texts(column, others.tolist())]
        return times

    def repeated(self, fields: BarFields, column: str, records: Array) -> int:
        """Return how many times of some records, which can be read, are in an hour that a change of the clock repeats.

        Args:
            fields: have the column.
            column: the times.
            records: a mask.
        """
        if self._zone is UTC:
            return 0
        numbers, seconds = self._texts.times(fields, column)
        repeats = np.where(seconds < 0, np.nan, self._repeats.of(self._texts, numbers))
        others = fields.texts(column, np.flatnonzero(records & np.isnan(repeats)).tolist())
        return int(np.nansum(repeats[records])) + sum(
            slurm_values.is_repeated(one.strip(), self._zone) for one in others
        )

    def _other(self, text: str) -> float:
        """Return any time, UNREAD if it cannot be read."""
        if text not in self._moments:
            self._moments[text] = _read(lambda one: slurm_values.dump_moment(one, self._zone), text.strip())
        return self._moments[text]

    def _hour(self, text: str) -> float | None:
        """Return the begin of an hour, None if it is none, or has a change of the clock."""
        if not _HOUR.fullmatch(text):
            return None
        try:
            first, last = (slurm_values.moment(f"{text}{tail}", self._zone) for tail in (":00:00", ":59:59"))
        except (ValueError, OverflowError):
            return None
        return first if first is not None and last == first + 3599 else None

    def _repeat(self, text: str) -> float | None:
        """Return 1 for an hour that is repeated, 0 for one that is not, None if that is not so for all of it."""
        if not _HOUR.fullmatch(text):
            return None
        first, last = (slurm_values.is_repeated(f"{text}{tail}", self._zone) for tail in (":00:00", ":59:59"))
        return float(first) if first == last else None


def _read(function: Callable[[str], float | None], text: str) -> float:
    try:
        value = function(text)
    except (ValueError, OverflowError, ConfigError):
        return UNREAD
    return np.nan if value is None else float(value)


#: What a list of nodes is.
NAMES, NO_NAMES, UNREAD_NAMES = range(3)
_NO_NODES = frozenset(("", "None assigned", "None", "(null)"))
_ONE_BRACKET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\[((?:\d{1,12}[,-])*\d{1,12})\]", re.ASCII)
_RANGES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*", re.ASCII)


class ListedNodes(Sequence[tuple[str, ...]]):
    """The nodes of each of several texts, () for one that is no list. A list is checked once, and expanded when needed.

    Args:
        texts: may grow.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts, self._kinds = texts, bytearray()

    def kinds(self, codes: Array) -> Array:
        """Return whether the texts with these codes are NAMES, NO_NAMES or UNREAD_NAMES."""
        self._check()
        return np.frombuffer(self._kinds, np.uint8)[codes] if len(codes) else np.zeros(0, np.uint8)

    def _check(self) -> None:
        """Check the texts that are new."""
        self._kinds.extend(_kind_of(text) for text in self._texts[len(self._kinds) :])

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, code: int) -> tuple[str, ...]:  # type: ignore[override]
        self._check()
        return expand(self._texts[code]) if self._kinds[code] == NAMES else ()


def _kind_of(text: str) -> int:
    """Return whether a list can be expanded. Numbers that only rise in one bracket give no name twice."""
    if is_node_name(text):
        return NO_NAMES if text in _NO_NODES else NAMES
    if (match := _ONE_BRACKET.fullmatch(text)) and _RANGES.fullmatch(match[1]):
        numbers = [*map(int, match[1].replace("-", ",").split(","))]
        if all(map(lt, numbers, numbers[1:])) and numbers[-1] - numbers[0] < MOST_NODES:
            return NAMES
    if text in _NO_NODES:
        return NO_NAMES
    try:
        expand(text)
    except ConfigError:
        return UNREAD_NAMES
    return NAMES
