"""Slurm's words for times, spans, sizes and counts, read into numbers.

Rule: what Slurm says is not known (`Unknown`, `N/A`, `None`, `UNLIMITED`, ...) is None, never 0; what cannot be read
is a ValueError that names it.
Source: squeue(1), scontrol(1), sinfo(1); times are printed in UTC because the commands run with TZ=UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

UNKNOWN = frozenset(
    ("", "(null)", "n/a", "none", "unknown", "unlimited", "infinite", "invalid", "not_set", "partition_limit")
)
_SPAN = re.compile(r"(?:(?P<days>\d+)-)?(?:(?P<first>\d+):)?(?:(?P<second>\d+):)?(?P<last>\d+)(?:\.\d+)?")
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[KMGTP]?)[cn]?")
_UNITS = {"K": 2.0**10, "": 2.0**20, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_COUNT = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[KMG]?)(?:-\d+[KMG]?)?")
_THOUSANDS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def moment(text: str) -> float | None:
    """Epoch seconds of `2026-11-21T03:27:02` (UTC)."""
    text = text.strip()
    if text.lower() in UNKNOWN:
        return None
    if len(text) != len("2026-11-21T03:27:02"):
        raise ValueError(f"{text!r} is not a time")
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def span(text: str) -> float | None:
    """Seconds of `minutes`, `minutes:seconds`, `hours:minutes:seconds`, or any of these behind `days-` (then the
    first number is hours)."""
    if text.strip().lower() in UNKNOWN:
        return None
    days, clock = "0", text.strip()
    if "-" in clock:
        days, clock = clock.split("-", 1)
        numbers = [*clock.split(":"), "0", "0"][:3]
    else:
        numbers = clock.split(":")
        numbers = ["0", *numbers, "0"] if len(numbers) == 1 else ["0", *numbers][-3:]
    if not _SPAN.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a span of time")
    hours, minutes, seconds = (float(number) for number in numbers)
    return ((int(days) * 24 + hours) * 60 + minutes) * 60 + seconds


def size(text: str) -> float | None:
    """Bytes of `256M`, `4G`, `1.50T`; a bare number is MiB, as Slurm counts memory."""
    if text.strip().lower() in UNKNOWN:
        return None
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a size")
    return float(found["number"]) * _UNITS[found["unit"]]


def count(text: str) -> int | None:
    """The number in `4`, `2K`, or the lower end of `2-4`."""
    if text.strip().lower() in UNKNOWN:
        return None
    found = _COUNT.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a count")
    return round(float(found["number"]) * _THOUSANDS[found["unit"]])


def word(text: str) -> str:
    """The text itself, "" where Slurm says that there is none."""
    return "" if text.strip() in ("(null)", "N/A", "None") else text.strip()


def tres(text: str) -> dict[str, str]:
    """`cpu=2,mem=512M,gres/gpu:a100=1` by name."""
    return dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
