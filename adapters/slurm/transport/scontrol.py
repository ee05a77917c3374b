"""What `scontrol show` prints of partitions, reservations and the configuration, split into words.

Rule: pure, and only for what administrators alone can write: lines are split at blanks, so no value may be a user's. A
setting that is missing has Slurm's own default.
Source: scontrol(1) of Slurm 22.05; slurm.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...base import ParseError


def command(what: str) -> list[str]:
    """Return the argv that shows all of `partition`, `reservation`, ..., one to a line."""
    return ["scontrol", "--oneliner", "--all", "show", what]


def lines(text: str, first: str, argv: tuple[str, ...] = ("scontrol",)) -> Iterator[dict[str, str]]:
    """Yield each line that begins with the key `first` as key -> value; a word without `=` continues the value before.

    Args:
        text: What scontrol printed.
        first: First key of a line.
        argv: The command, for errors.

    Raises:
        ParseError: There are lines and none begins so, unless Slurm reports that it has none.
    """
    found = 0
    for line in text.splitlines():
        if not line.startswith(f"{first}="):
            continue
        found += 1
        words: dict[str, str] = {}
        last = first
        for word in line.split():
            key, equals, value = word.partition("=")
            if equals:
                last = key
                words.setdefault(key, value)
            else:
                words[last] += f" {word}"
        yield words
    if not found and text.strip() and not text.strip().startswith("No "):
        raise ParseError(f"scontrol: there is no {first}", argv=argv, stderr_tail=text[:200])


def names(text: str) -> frozenset[str] | None:
    """Return the names in `a,b`; None for `ALL` and for a missing value."""
    return None if text in ("", "ALL", "(null)", "N/A") else frozenset(text.split(","))


_LINE = re.compile(r"^(\w+) *= ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Settings:
    """The controller's settings.

    Args:
        backfill_s: Seconds between two passes of the backfill scheduler.
        limits: Whether limits of QOS and associations are enforced.
    """

    backfill_s: float = 30.0
    limits: bool = False


def parse_settings(text: str) -> Settings:
    """Return the settings in `scontrol show config`. Raises ParseError."""
    words = dict(_LINE.findall(text))
    if "SchedulerType" not in words:
        why = "scontrol: the configuration is cut off or garbled"
        raise ParseError(why, argv=("scontrol",), stderr_tail=text[:200])
    options = dict(option.partition("=")[::2] for option in words.get("SchedulerParameters", "").split(","))
    every = options.get("bf_interval", "").strip()
    enforced = words.get("AccountingStorageEnforce", "").replace(" ", "").split(",")
    backfill_s = float(every) if every.isdigit() and int(every) else 30.0
    return Settings(backfill_s, "limits" in enforced or "safe" in enforced)
