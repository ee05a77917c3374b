"""Numbers and quantities with units: read them from documents, and format them for people and resource managers.

Rule: a bare number is in the base unit (bytes, bytes/s, Hz, seconds); text names its unit or is refused. A converter
takes a plain value and returns what it means, or raises ConfigError with the problem and what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar

from .document_errors import bad, found

T = TypeVar("T")
#: Largest quantity that is accepted (1 EB, 1 EB/s, 30 Gyr); larger numbers are taken for typing errors.
LARGEST = 1e18
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIXES |= {f"{p}i": 1024.0**i for i, p in enumerate("KMGTP", start=1)}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*([kKMGTP]?i?)(B/s|B|Hz)")
_CLOCK = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")
ALLOWED_DURATION = "seconds as a number, or D-HH:MM:SS, HH:MM:SS or MM:SS"


def is_number(value: object) -> TypeGuard[float]:
    """Return whether `value` is an int or a float; true and false are no numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def checked_number(value: Any, allowed: str, low: float = 0.0, high: float = LARGEST, *, above: bool = False) -> float:
    """Return `value` as a float if it is a number in [low, high], or in (low, high] if `above`.

    Args:
        value: any value of a document.
        allowed: what is allowed, for the error.
        low: smallest number.
        high: largest number.
        above: whether `low` itself is refused.

    Raises:
        ConfigError: bool, text, NaN, or out of range.
    """
    if not is_number(value) or not low <= value <= high or (above and value == low):
        raise bad(found(value), allowed)
    return float(value)


Convert = Callable[[Any], T]


def _quantity(unit: str, allowed: str) -> Convert[float]:
    """Return a converter of numbers, and of text with a unit, to the base unit."""

    def convert(value: Any) -> float:
        if not isinstance(value, str):
            return checked_number(value, allowed)
        match = _QUANTITY.fullmatch(value.strip()) if len(value) < 50 else None
        if not match or match[3] != unit or match[2] not in _PREFIXES:
            raise bad(found(value), allowed)
        number = float(match[1]) * _PREFIXES[match[2]]
        if number > LARGEST:
            raise bad(found(value), allowed)
        return number

    return convert


#: Bytes from a number or from text such as 2GiB (1024s) or 500MB (1000s).
parse_size = _quantity("B", "bytes as a number, or a size such as 2GiB or 500MB")
#: Bytes/s from a number or from text such as 80GB/s.
parse_rate = _quantity("B/s", "bytes/s as a number, or a rate such as 80GB/s")
#: Hz from a number or from text such as 2.4GHz.
parse_frequency = _quantity("Hz", "Hz as a number, or a frequency such as 2.4GHz")


def parse_duration(value: Any) -> float:
    """Return seconds from a number or from Slurm's D-HH[:MM[:SS]], HH:MM:SS or MM:SS (sbatch(1), --time).

    A bare number in text is refused: in Slurm it would be minutes, here seconds. Raises ConfigError.
    """
    if not isinstance(value, str):
        return checked_number(value, ALLOWED_DURATION)
    match = _CLOCK.fullmatch(value.strip())
    if match:
        parts = [int(part) for part in match.groups()[1:] if part is not None]
        days = match[1] is not None
        hours, minutes, seconds = (*parts, 0, 0)[:3] if days or len(parts) == 3 else (0, *parts, 0)[:3]
        minute_limit = 60 if days or len(parts) == 3 else math.inf
        hour_limit = 24 if days else math.inf
        if (days or len(parts) > 1) and seconds < 60 and minutes < minute_limit and hours < hour_limit:
            return float(((int(match[1] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)
    raise bad(found(value), ALLOWED_DURATION)


def clock(seconds: float, *, days: bool = True) -> str:
    """Format a duration for a resource manager: D-HH:MM:SS (Slurm), or H:MM:SS without days (OAR).

    Args:
        seconds: 0 or more; fractions are rounded up, so that a limit is never shorter than requested.
        days: whether days are written apart from hours.
    """
    minutes, second = divmod(math.ceil(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if not days:
        return f"{hours}:{minute:02}:{second:02}"
    day, hour = divmod(hours, 24)
    return (f"{day}-" if day else "") + f"{hour:02}:{minute:02}:{second:02}"


def format_duration(seconds: float) -> str:
    """Format a duration for people: 850ms, 12.5s, 3m05s, 2h03m, 1d04h."""
    if not math.isfinite(seconds):
        return "never" if seconds > 0 else "unknown"
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if 0 < seconds < 0.9995:
        return f"{seconds * 1e3:.3g}ms"
    if seconds < 59.95:
        return f"{seconds:.3g}s"
    total = round(seconds)
    if total < 3600:
        return f"{total // 60}m{total % 60:02}s"
    if total < 86400:
        return f"{total // 3600}h{total % 3600 // 60:02}m"
    return f"{total // 86400}d{total % 86400 // 3600:02}h"


def format_size(size: float, *, rate: bool = False) -> str:
    """Format bytes for people: 2GiB, or with three digits 9.89MiB; 500MB where only that is exact.

    Args:
        size: bytes, or bytes/s with `rate`.
        rate: write B/s, with decimal prefixes only.
    """
    decimal = _scaled(size, 1000, ("", "k", "M", "G", "T", "P"), "B/s" if rate else "B")
    if rate:
        return decimal
    for i, prefix in reversed(list(enumerate("KMGTP", start=1))):
        if (size / 1024**i).is_integer() and 1 <= size / 1024**i < 1024:
            return f"{size / 1024**i:.0f}{prefix}iB"
    return decimal if size == float(f"{size:.3g}") else _scaled(size, 1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi"), "B")


def _scaled(size: float, base: int, prefixes: tuple[str, ...], tail: str) -> str:
    i = next((i for i in range(len(prefixes) - 1, 0, -1) if abs(size) >= 999.5 * base ** (i - 1)), 0)
    return f"{size / base**i:.3g}{prefixes[i]}{tail}"


def number(low: float = 0.0, high: float = LARGEST, *, above: bool = False) -> Convert[float]:
    """Return a converter of finite numbers in [low, high], or in (low, high] if `above`."""
    allowed = f"a number {'above' if above else 'from'} {low:g}" + (f" to {high:g}" if high < LARGEST else "")
    return lambda value: checked_number(value, allowed, low, high, above=above)


def whole(low: int, high: int = 1_000_000) -> Convert[int]:
    """Return a converter of whole numbers in [low, high]."""
    allowed = f"a whole number from {low} to {high}"

    def convert(value: Any) -> int:
        if not checked_number(value, allowed, low, high).is_integer():
            raise bad(found(value), allowed)
        return int(value)

    return convert


def above_zero(convert: Convert[float]) -> Convert[float]:
    """Return `convert` with zero refused."""

    def positive(value: Any) -> float:
        result = convert(value)
        if result == 0:
            raise bad(found(value), "more than zero")
        return result

    return positive


def plain(seconds: float) -> float:
    """Return a whole number as an int, any other number unchanged."""
    return int(seconds) if seconds.is_integer() else seconds
