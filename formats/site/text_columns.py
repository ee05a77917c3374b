"""Columns of texts as columns of numbers: each different text is read once.

Rule: a value that a reader refuses is UNREAD, one that is not there is NaN. A column is read piece by piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from operator import lt

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from .. import slurm_values
from ..hostlist import MOST_NODES, expand, is_node_name

#: A value that cannot be read.
UNREAD = -np.inf
_HOUR = re.compile(r"\d{4}-\d\d-\d\dT\d\d", re.ASCII)
_TAIL = re.compile(r":([0-5]\d):([0-5]\d)", re.ASCII)


class TextCodes(dict[str, int]):
    """Codes of texts without the blanks around them; `values[code]` is the text."""

    def __init__(self) -> None:
        super().__init__()
        self.values_by_code = list[str]()

    def __missing__(self, text: str) -> int:
        value = text.strip()
        if value != text:
            code = self[value]
        else:
            code = len(self.values_by_code)
            self.values_by_code.append(value)
        self[text] = code
        return code

    def column(self, texts: Sequence[str]) -> Array:
        """Return the codes of texts."""
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))


class ValueCodes(dict[str, int]):
    """Codes of what texts mean; `values_by_code[code]` is that.

    Args:
        clean: returns what a text without the blanks around it means.
    """

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__()
        self._clean, self._codes = clean, dict[str, int]()

    def __missing__(self, text: str) -> int:
        code = self[text] = self.code(self._clean(text.strip()))
        return code

    def code(self, value: str) -> int:
        """Return the code of a value."""
        return self._codes.setdefault(value, len(self._codes))

    @property
    def values_by_code(self) -> list[str]:
        """Return the values."""
        return [*self._codes]

    def column(self, texts: Sequence[str]) -> Array:
        """Return the codes of texts."""
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))


class NumberColumn(dict[str, float]):
    """Numbers of texts.

    Args:
        number: returns that of a text without the blanks around it, None for no number. Raises ValueError.
    """

    def __init__(self, number: Callable[[str], float | None]) -> None:
        super().__init__()
        self._number = number

    def __missing__(self, text: str) -> float:
        value = self[text] = _read(self._number, text.strip())
        return value

    def column(self, texts: Sequence[str]) -> Array:
        """Return the numbers of texts."""
        return np.fromiter(map(self.__getitem__, texts), np.float64, len(texts))


class TimeColumn:
    """Times, in seconds since the epoch. In an hour without a change of the clock the date is read once.

    Args:
        zone: of the texts.
    """

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._hours, self._tails = NumberColumn(self._hour), NumberColumn(_seconds_of)
        self._others = NumberColumn(lambda text: slurm_values.dump_moment(text, zone))
        self._repeats = NumberColumn(self._repeat)

    def column(self, texts: Sequence[str]) -> Array:
        """Return the times of texts."""
        times = self._hours.column([text[:13] for text in texts]) + self._tails.column([text[13:] for text in texts])
        for place in np.flatnonzero(np.isnan(times)).tolist():
            times[place] = self._others[texts[place]]
        return times

    def repeated(self, texts: Sequence[str]) -> int:
        """Return how many of these times, which can be read, are in an hour that a change of the clock repeats."""
        if self._zone is UTC:
            return 0
        repeats = self._repeats.column([text[:13] for text in texts])
        others = [texts[place] for place in np.flatnonzero(np.isnan(repeats)).tolist()]
        return int(np.nansum(repeats)) + sum(slurm_values.is_repeated(text.strip(), self._zone) for text in others)

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


def _seconds_of(text: str) -> float | None:
    match = _TAIL.fullmatch(text)
    return float(int(match[1]) * 60 + int(match[2])) if match else None


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
