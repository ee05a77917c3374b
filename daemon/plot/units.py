"""Units for people: of a time axis by what it spans, of power and energy by the largest value.

Rule: an axis has one unit, named once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_TIMES = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit and how much it is of the base unit."""

    name: str
    size: float


def of_time(span: float) -> Unit:
    """The largest unit of which there are three or more in a span of seconds."""
    return next((Unit(name, size) for name, size in _TIMES if span >= 3 * size), Unit("seconds", 1.0))


def of_times(times: Sequence[float]) -> Unit:
    """A unit for times that are compared: fit for the shortest that is not 0, and of the longest not more than 2000."""
    fit = of_time(min((time for time in times if time > 0), default=0.0))
    enough = [Unit(name, size) for name, size in _TIMES if max(times, default=0.0) <= 2000 * size]
    return max(fit, enough[-1] if enough else Unit(*_TIMES[0]), key=lambda unit: unit.size)


def of_amount(largest: float, base: str) -> Unit:
    """W, kW, MW, ...: the unit in which the largest value has one to three digits."""
    return next((Unit(prefix + base, size) for size, prefix in _PREFIXES if largest >= size), Unit(base, 1.0))
