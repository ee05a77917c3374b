"""Sizes, rates, frequencies and durations: from what people write to numbers, and back.

Rule: a bare number is in the base unit (bytes, bytes/s, Hz, seconds); text names its unit, or is refused.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ..errors import ConfigError

#: No quantity in this field is larger; beyond it, a number is a slip of the pen (1 EB, 1 EB/s, 30 Gyr).
LARGEST = 1e18
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIXES |= {f"{p}i": 1024.0**i for i, p in enumerate("KMGTP", start=1)}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*([kKMGTP]?i?)(B/s|B|Hz)")
_CLOCK = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")

ALLOWED_SIZE = "bytes as a number, or a size such as 2GiB or 500MB"
ALLOWED_RATE = "bytes/s as a number, or a rate such as 80GB/s"
ALLOWED_FREQUENCY = "Hz as a number, or a frequency such as 2.4GHz"
ALLOWED_DURATION = "seconds as a number, or D-HH:MM:SS, HH:MM:SS or MM:SS"


def found(value: object) -> str:
    """Say what was found: its value, cut to a readable length, whatever it is."""
    if value is None:
        return "found nothing"
    if isinstance(value, bool):
        return f"found {str(value).lower()}"
    if isinstance(value, dict | list | tuple):
        kind = "a mapping" if isinstance(value, dict) else "a list"
        return f"found {kind} of {len(value)}" if value else f"found {kind} that is empty"
    if isinstance(value, int) and value.bit_length() > 200:
        return "found a number of more than 60 digits"
    text = repr(value)
    return f"found {text}" if len(text) <= 60 else f"found {text[:56]}...{text[-1]}"


def bad(problem: str, allowed: str = "", key: str = "") -> ConfigError:
    """A ConfigError of which the file, and the keys around `key`, are added by who knows them."""
    return ConfigError("", key, problem, allowed)


def checked_number(value: Any, allowed: str) -> float:
    """Return `value` as a float if it is a finite number that is neither negative nor absurd.

    Raises:
        ConfigError: bool, text, NaN, infinite, negative, or larger than LARGEST.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
        raise bad(found(value), allowed)
    return float(value)


def _quantity(value: Any, unit: str, allowed: str) -> float:
    if not isinstance(value, str):
        return checked_number(value, allowed)
    match = _QUANTITY.fullmatch(value.strip()) if len(value) < 50 else None
    if not match or match[3] != unit or match[2] not in _PREFIXES:
        raise bad(found(value), allowed)
    number = float(match[1]) * _PREFIXES[match[2]]
    if number > LARGEST:
        raise bad(found(value), allowed)
    return number


def parse_size(value: Any) -> float:
    """Return bytes from a number or from text such as 2GiB (1024s) or 500MB (1000s). Raises ConfigError."""
    return _quantity(value, "B", ALLOWED_SIZE)


def parse_rate(value: Any) -> float:
    """Return bytes/s from a number or from text such as 80GB/s. Raises ConfigError."""
    return _quantity(value, "B/s", ALLOWED_RATE)


def parse_frequency(value: Any) -> float:
    """Return Hz from a number or from text such as 2.4GHz. Raises ConfigError."""
    return _quantity(value, "Hz", ALLOWED_FREQUENCY)


def parse_duration(value: Any) -> float:
    """Return seconds from a number or from Slurm's D-HH[:MM[:SS]], HH:MM:SS or MM:SS (sbatch(1), --time).

    A bare number in text is refused: Slurm would mean minutes, we would mean seconds. Raises ConfigError.
    """
    if not isinstance(value, str):
        return checked_number(value, ALLOWED_DURATION)
    match = _CLOCK.fullmatch(value.strip())
    if match:
        parts = [int(part) for part in match.groups()[1:] if part is not None]
        days = match[1] is not None
        hours, minutes, seconds = (*parts, 0, 0)[:3] if days or len(parts) == 3 else (0, *parts, 0)[:3]
        most_minutes = 60 if days or len(parts) == 3 else math.inf
        most_hours = 24 if days else math.inf
        if (days or len(parts) > 1) and seconds < 60 and minutes < most_minutes and hours < most_hours:
            return float(((int(match[1] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)
    raise bad(found(value), ALLOWED_DURATION)


def clock(seconds: float, *, days: bool = True) -> str:
    """Write a duration for a resource manager: D-HH:MM:SS (Slurm), or H:MM:SS without days (OAR).

    Part seconds are rounded up, since a limit must not cut off what was asked for.
    """
    minutes, second = divmod(math.ceil(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if not days:
        return f"{hours}:{minute:02}:{second:02}"
    day, hour = divmod(hours, 24)
    return (f"{day}-" if day else "") + f"{hour:02}:{minute:02}:{second:02}"


def format_duration(seconds: float) -> str:
    """Write a duration for a person: 850ms, 12.5s, 3m05s, 2h03m, 1d04h."""
    if not math.isfinite(seconds):
        return "never" if seconds > 0 else "unknown"
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if 0 < seconds < 0.9995:
        return f"{seconds * 1e3:.3g}ms"
    if seconds < 59.95:
        return f"{seconds:.3g}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def format_size(size: float, *, rate: bool = False) -> str:
    """Write bytes (or bytes/s) for a person, three digits: whole multiples of 1024s as 2GiB, else 500MB."""
    tail = "B/s" if rate else "B"
    for i, prefix in reversed(list(enumerate("KMGTP", start=1))):
        if not rate and size >= 1024**i and (size / 1024**i).is_integer() and size / 1024**i < 1024:
            return f"{size / 1024**i:.0f}{prefix}iB"
    for prefix in ("P", "T", "G", "M", "k"):
        if abs(size) >= 0.9995 * _PREFIXES[prefix]:
            return f"{size / _PREFIXES[prefix]:.3g}{prefix}{tail}"
    return f"{size:.3g}{tail}"
