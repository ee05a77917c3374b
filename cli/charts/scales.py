"""Scales of axes: units, round numbers, clock times, calendar dates, and time axes with a break.

Rule: an axis has one unit. All backends place data and ticks by the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: Positions on an axis, each with its label.
Ticks = list[tuple[float, str]]

_STEPS = (1, 2, 5)
_DAY = 86400.0
_CLOCK_STEPS = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_MONTHS = (1, 2, 3, 6)
_LAST = 2.2e11
#: Share of a time axis that a break takes, and the share of the axis that events must leave free for a break.
_BROKEN, _CROWDED = 0.06, 0.15


class Unit(NamedTuple):
    """A unit, and its size in the base unit."""

    name: str
    size: float


_TIMES = (Unit("days", 86400.0), Unit("hours", 3600.0), Unit("minutes", 60.0), Unit("seconds", 1.0))
_PREFIXES = {"P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}


def time_unit(span: float) -> Unit:
    """Return the largest unit that fits at least three times into a span of seconds."""
    return next((unit for unit in _TIMES if span >= 3 * unit.size), _TIMES[-1])


def common_time_unit(times: Sequence[float]) -> Unit:
    """Return one unit for several times, s: it suits the shortest above 0, and the longest has at most 2000 of it."""
    suits = time_unit(min((time for time in times if time > 0), default=0.0))
    enough = [unit for unit in _TIMES if max(times, default=0.0) <= 2000 * unit.size]
    return max(suits, enough[-1] if enough else _TIMES[0], key=lambda unit: unit.size)


def amount_unit(largest: float, base: str) -> Unit:
    """Return W, kW, MW, ...: the unit in which the largest value has one to three digits before the point."""
    return next((Unit(prefix + base, size) for prefix, size in _PREFIXES.items() if largest >= size), Unit(base, 1.0))


def number_ticks(low: float, high: float, most: int, *, whole: bool = False) -> Ticks:
    """Return at most `most` + 1 round numbers from `low` to `high` with their labels: `0`, `2,500`, `0.5`."""
    if not high > low:
        return [(low, f"{low:,.12g}")]
    step = _step((high - low) / max(most, 1))
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    places = _places(step)
    return [(i * step, f"{i * step:,.{places}f}") for i in range(first, last + 1)]


def clock_ticks(end: float, most: int) -> Ticks:
    """Return at most `most` + 1 round times from 0 to `end` s, each label with its unit: `20 s`, `5 min`, `2 h`."""
    step = _clock_step(end / most)
    places = _places(step)
    times = [i * step for i in range(math.floor(end / step * (1 + 1e-9)) + 1)]
    return [(t, _clock(t, step) if step >= 60 else f"{t:.{places}f} s" if t else "0") for t in times]


def calendar_ticks(begin: float, end: float, most: int) -> Ticks:
    """Return about `most` round dates or times between two epoch times (s), in UTC: `14:00`, `3 Sep`, `Sep 2012`."""
    least = (end - begin) / most
    if least <= 14 * _DAY:
        step = next(s for s in (1, 2, 5, 10, 30, *_CLOCK_STEPS, 2 * _DAY, 7 * _DAY, 14 * _DAY) if s >= least)
        shift = 4 * _DAY if step >= 7 * _DAY else 0.0  # weeks begin on Mondays; the epoch was a Thursday
        first, last = math.ceil((begin - shift) / step), math.floor((end - shift) / step)
        form = "%H:%M" if step >= 60 else "%H:%M:%S"
        times = [(t, datetime.fromtimestamp(t, UTC)) for t in (i * step + shift for i in range(first, last + 1))]
        return [(t, f"{at.day} {at:%b}" if t % _DAY == 0 else f"{at:{form}}") for t, at in times]
    months = math.ceil(least / (28 * _DAY))
    months = next((step for step in _MONTHS if step >= months), -(-months // 12) * 12)
    first, last = (datetime.fromtimestamp(at, UTC).year * 12 for at in (begin, end))
    numbers = range(-(-first // months) * months, last + 12, months)
    moments = (datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC) for number in numbers)
    form = "%b %Y" if months < 12 else "%Y"
    return [(at, f"{moment:{form}}") for moment in moments if begin <= (at := moment.timestamp()) <= end]


def dated(begin: float, end: float, epoch: float | None) -> float | None:
    """Return the epoch of an axis from `begin` to `end` s if it can show dates: for 5 s at least, up to year 9000."""
    return epoch if epoch is not None and end - begin >= 5 and begin + epoch >= 0 and end + epoch < _LAST else None


@dataclass(frozen=True)
class TimeScale:
    """A time axis from `low` to `high`, seconds.

    Args:
        epoch: Unix time of second 0, if known: the axis then shows calendar dates (UTC).
        breaks: spans that are drawn short, in ascending order; not with `epoch`.
    """

    low: float
    high: float
    epoch: float | None = None
    breaks: tuple[tuple[float, float], ...] = ()

    @cached_property
    def unit(self) -> Unit:
        """The unit of the tick labels."""
        return time_unit(self.high - self.low - sum(end - begin for begin, end in self.breaks))

    def label(self, what: str) -> str:
        """Return the label of the axis with its unit; with breaks, each tick has its unit."""
        if self.epoch is None:
            return what if self.breaks else f"{what} ({self.unit.name})"
        begin, end = (datetime.fromtimestamp(self.epoch + at, UTC) for at in (self.low, self.high))
        if begin.date() == end.date():
            return f"time on {begin.day} {begin:%b %Y} (UTC)"
        return f"date (UTC, {begin.year}{f'-{end.year}' if end.year > begin.year else ''})"

    def place(self, seconds: Any) -> Array:
        """Return positions on the axis: in its unit, or milliseconds of Unix time on a calendar."""
        if self.epoch is not None:
            return (self.epoch + np.asarray(seconds, float)) * 1e3
        times = np.interp(seconds, *self._drawn) if self.breaks else np.asarray(seconds, float)
        return times / self.unit.size

    @cached_property
    def _drawn(self) -> tuple[list[float], list[float]]:
        """Times between which the axis is linear, and where each is drawn."""
        free = self.high - self.low - sum(end - begin for begin, end in self.breaks)
        short = free * _BROKEN / (1 - _BROKEN * len(self.breaks))
        times, drawn = [self.low], [self.low]
        for begin, end in self.breaks:
            times += [begin, end]
            drawn += [drawn[-1] + begin - times[-3], drawn[-1] + begin - times[-3] + short]
        return [*times, self.high], [*drawn, drawn[-1] + self.high - times[-1]]

    def ticks(self, most: int, *, spelled: bool = False) -> Ticks:
        """Return positions and labels of round times.

        Args:
            most: how many ticks there is room for.
            spelled: each label has its unit (`5 min`), for axes without a label.
        """
        if self.epoch is not None:
            dates = calendar_ticks(self.epoch + self.low, self.epoch + self.high, most)
            return [(at * 1e3, label) for at, label in dates]
        if self.breaks:
            return self._broken_ticks(most)
        if spelled and self.low == 0:
            marks = clock_ticks(self.high, most)
        else:
            size = self.unit.size
            marks = [(at * size, label) for at, label in number_ticks(self.low / size, self.high / size, most)]
        return [(float(self.place(at)), label) for at, label in marks]

    def _broken_ticks(self, most: int) -> Ticks:
        """Round times outside of the breaks, and the end, each with its unit."""
        drawn = self._drawn[1]
        step = _clock_step((drawn[-1] - drawn[0]) / most)
        times = {self.high}
        parts = [self.low, *(at for span in self.breaks for at in span), self.high]
        for begin, end in zip(parts[::2], parts[1::2], strict=True):
            times |= {i * step for i in range(math.ceil(begin / step), math.floor(end / step) + 1)}
        keep: Ticks = []
        for time in sorted(times, reverse=True):
            at, is_minute = float(self.place(time)), step >= 60 or time % 60 == 0
            if not keep or keep[-1][0] - at > 0.6 * step / self.unit.size:
                keep.append((at, _clock(round(time / 60) * 60, 60) if is_minute else f"{time:,.{_places(step)}f} s"))
        return keep[::-1]


def breaks_of(events: Array) -> tuple[tuple[float, float], ...]:
    """Return the spans between events (s) that a time axis should draw short, because all else would be illegible.

    A span is one in which nothing happens for more than a quarter of the time; together such spans leave less than
    15 % of the axis to all events.
    """
    times = np.unique(events)
    if len(times) < 3:
        return ()
    gaps, total = np.diff(times), times[-1] - times[0]
    wide = np.flatnonzero(gaps > total / 4)
    free = total - gaps[wide].sum()
    if not len(wide) or not 1e-6 * total < free <= _CROWDED * total:
        return ()
    margin = free * 0.05 / len(wide)  # bars at a break are seen to go on
    return tuple((float(times[i] + margin), float(times[i + 1] - margin)) for i in wide)


def _places(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9))


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (*_STEPS, 10) if step * power >= least * (1 - 1e-9))


def _clock_step(least: float) -> float:
    """A round number of seconds, minutes, hours or days, `least` seconds or more."""
    if least <= _STEPS[-1] * 10:
        return _step(least)
    return next((step for step in _CLOCK_STEPS if step >= least), math.ceil(least / _DAY) * _DAY)


def _clock(t: float, step: float) -> str:
    if not t:
        return "0"
    if step >= _DAY:
        return f"{t / _DAY:.0f} d"
    hours, minutes = divmod(round(t) // 60, 60)
    return (f"{hours}:{minutes:02d} h" if minutes else f"{hours} h") if hours else f"{minutes} min"
