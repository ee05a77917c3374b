"""What an examination of a site finds, one sentence each, and what would mend it.

Rule: a finding says what it means here for pilotfish; it changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much a finding matters: all is well, good to know, will be missed, or nothing works without it."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


OK, NOTE, WARNING, PROBLEM = Level


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Args:
        topic: one word for the thing.
        says: a sentence about it, without a full stop.
        mend: commands, or lines of a file, that would change it.
    """

    level: Level
    topic: str
    says: str
    mend: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """What is known of our own daemon while a site is examined.

    Args:
        mode: as it says (`live`, `dry-run`, ...); "" = nobody answers, None = nobody was asked.
        dry_run, power_save: as configured.
    """

    mode: str | None = None
    dry_run: bool = False
    power_save: bool = False
