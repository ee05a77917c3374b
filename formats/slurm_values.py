"""Values as Slurm writes them: times, spans, sizes, counts, and amounts of trackable resources.

Rule: what Slurm reports as unknown or without a limit (`Unknown`, `N/A`, `None`, `UNLIMITED`, ...) is None, never 0; an
unreadable value is a ValueError that quotes it.
Source: slurm.conf(5), sacct(1), scontrol(1) and sbatch(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo

UNKNOWN = frozenset(
    ("", "(null)", "n/a", "none", "unknown", "unlimited", "infinite", "invalid", "not_set", "partition_limit")
)
_SPAN = re.compile(r"(?:(?P<days>\d+)-)?(?:(?P<first>\d+):)?(?:(?P<second>\d+):)?(?P<last>\d+)(?:\.\d+)?")
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[KMGTP]?)[cn]?")
_UNITS = {"K": 2.0**10, "": 2.0**20, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_COUNT = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[KMG]?)(?:-\d+[KMG]?)?")
_INTEGER = re.compile(r"-?[0-9]{1,20}")
_EPOCH = re.compile(r"[0-9]{1,11}", re.ASCII)
#: No count, size or span of Slurm's is larger.
MOST = 2.0**63
_MIB = 2.0**20
_THOUSANDS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def moment(text: str, zone: tzinfo | None = UTC) -> float | None:
    """Return epoch seconds of `2026-11-21T03:27:02`.

    Args:
        text: the time, local to `zone`; in the hour that a change of the clock repeats, its first pass.
        zone: the zone of the machine that printed it; None: of this machine.
    """
    text = text.strip()
    if text.lower() in UNKNOWN:
        return None
    if len(text) != len("2026-11-21T03:27:02"):
        raise ValueError(f"{text!r} is not a time")
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def dump_moment(text: str, zone: tzinfo = UTC) -> float | None:
    """Return epoch seconds of a time as `moment` does, or of such seconds (SLURM_TIME_FORMAT=%s)."""
    return float(text) if _EPOCH.fullmatch(text.strip()) else moment(text, zone)


def is_repeated(text: str, zone: tzinfo) -> bool:
    """Return whether a change of the clock repeats the hour of a local time."""
    if zone is UTC or not text[:4].isdigit() or _EPOCH.fullmatch(text):
        return False
    local = datetime.fromisoformat(text).replace(tzinfo=zone)
    return local.utcoffset() != local.replace(fold=1).utcoffset()


def span(text: str) -> float | None:
    """Return the seconds of a time span.

    The text is `minutes`, `minutes:seconds`, `hours:minutes:seconds`, or any of these after `days-`, where the first
    number is hours.
    """
    if text.strip().lower() in UNKNOWN:
        return None
    if not _SPAN.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a span of time")
    days, _, clock = text.strip().rpartition("-")
    numbers = [float(number) for number in clock.split(":")]
    if not days and len(numbers) < 3:
        numbers.insert(0, 0.0)  # without days the first of two numbers, or the only one, is minutes
    hours, minutes, seconds = [*numbers, 0.0, 0.0][:3]
    return _bounded(((float(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)


def minutes(text: str) -> int | None:
    """Return a span in whole minutes, rounded up as Slurm does with limits."""
    seconds = span(text)
    return None if seconds is None else int(-(-seconds // 60))


def size(text: str) -> float | None:
    """Return bytes of `256M`, `4G`, `1.50T`; a bare number is MiB, Slurm's unit of memory."""
    return _scaled(text, _SIZE, _UNITS, "size")


def mebibytes(text: str) -> int | None:
    """Return the MiB of a size, rounded up."""
    number = size(text.upper().removesuffix("B"))
    return None if number is None else int(-(-number // _MIB))


def count(text: str) -> int | None:
    """Return the number in `4`, `2K`, or the lower end of `2-4`."""
    number = _scaled(text, _COUNT, _THOUSANDS, "count")
    return None if number is None else round(number)


def _scaled(text: str, form: re.Pattern[str], units: Mapping[str, float], quantity: str) -> float | None:
    if text.strip().lower() in UNKNOWN:
        return None
    match = form.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a {quantity}")
    return _bounded(float(match["number"]) * units[match["unit"]])


def whole(text: str) -> int:
    """Return a whole number below 2**63. Raises ValueError."""
    number = _integer(text)
    if abs(number) >= MOST:
        raise ValueError(f"{text[:40]!r} is too large")
    return number


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise ValueError(f"{text[:40]!r} is not a whole number")
    return int(text)


def limit(text: str) -> int | None:
    """Return a whole number; None for none, also where Slurm writes none as -1 or 4294967295."""
    if text.strip().lower() in UNKNOWN:
        return None
    number = _integer(text)
    return None if number < 0 or number >= 0xFFFFFFFE else number


def _bounded(number: float) -> float:
    if number > MOST:
        raise ValueError("a number is too large")
    return number


def tres(text: str) -> dict[str, str]:
    """Return `cpu=2,mem=512M,gres/gpu:a100=1` by name."""
    return dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)


def amounts(text: str) -> dict[str, float]:
    """Return `cpu=2,mem=512M` as numbers by name in lower case; memory in MiB; -1, which is no limit, is left out.

    Raises:
        ValueError: a part is not NAME=NUMBER.
    """
    numbers: dict[str, float] = {}
    if text.strip().lower() in UNKNOWN:
        return numbers
    if wrong := next((part for part in text.split(",") if part.strip() and "=" not in part), ""):
        raise ValueError(f"{wrong[:40]!r} is not NAME=NUMBER")
    for name, value in tres(text.replace(" ", "")).items():
        is_memory = name.lower() == "mem"
        if value.startswith("-"):
            continue
        number = mebibytes(value) if is_memory else count(value)
        if number is not None:
            numbers[name.lower()] = float(number)
    return numbers


def weights(text: str) -> dict[str, float]:
    """Return `CPU=1.0,Mem=0.25G` by name in lower case; the unit is the divisor: 0.25 for each GiB.

    Memory is weighed for each MiB.
    """
    numbers: dict[str, float] = {}
    for name, value in tres(text.replace(" ", "")).items():
        unit = value[-1:].upper() if value[-1:].upper() in "KMGTP" else ""
        weight = float(value[: -1 if unit else None])
        if not 0 <= weight <= MOST:
            raise ValueError(f"{value!r} is not a weight")
        if name.lower() == "mem":
            weight /= _UNITS[unit] / _MIB
        elif unit:
            weight /= 1024.0 ** ("KMGTP".index(unit) + 1)
        numbers[name.lower()] = weight
    return numbers


def words_of(line: str, first: str) -> dict[str, str]:
    """Return key -> value of a line of `KEY=VALUE` that begins with the key `first`.

    A word without `=` continues the value before; the first value of a key counts, because a reason or a comment may
    hold `KEY=VALUE`.
    """
    words: dict[str, str] = {}
    last = first
    for word in line.split():
        key, equals, value = word.partition("=")
        if equals:
            last = key
            words.setdefault(key, value)
        elif last in words:
            words[last] += f" {word}"
    return words


def names(text: str) -> frozenset[str] | None:
    """Return the names in `a,b`; None for `ALL` and for a missing value."""
    return None if text in ("", "ALL", "(null)", "N/A") else frozenset(word for word in text.split(",") if word)


def gpus(words: Iterable[str]) -> int:
    """Return how many GPUs texts such as `gpu:a100:4(S:0-1)`, `gpu=2` or `gres/gpu:2` list in all."""
    total = 0
    for word in words:
        name, *parts = re.split(r"[:=]", word.partition("(")[0].strip().removeprefix("gres/").removeprefix("gres:"))
        if name.lower() == "gpu":
            total += (count(parts[-1]) or 0) if parts and parts[-1][:1].isdigit() else 1
    return total
