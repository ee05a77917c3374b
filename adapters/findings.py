"""Findings of an examination of a site: what was found, and how to fix it.

Rule: a finding says what a setting means for pilotfish; it changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Level(StrEnum):
    """Severity of a finding: all is well, good to know, something will be missing, or nothing works."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


OK, NOTE, WARNING, PROBLEM = Level


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Args:
        level: Its severity.
        topic: One word for what was examined.
        says: A sentence about it, without a full stop.
        mend: Commands, or lines of a file, that fix it.
    """

    level: Level
    topic: str
    says: str
    mend: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceState:
    """State of our own daemon while a site is examined.

    Args:
        mode: Mode that it reports (`live`, `shadow`, ...); "": it does not answer; None: it was not asked.
        shadow: Whether it is configured to change no job.
        power_save: Whether it is configured to power nodes down.
        state_dir: Directory of the adapter's own state; None: unknown.
        config: File of its configuration; None: no configuration is examined.
        account: Account that it runs as; "": unknown.
        hangs: It listens, and does not answer (`mode` is "").
        socket: Path of its socket; "": that file does not exist.
    """

    mode: str | None = None
    shadow: bool = False
    power_save: bool = False
    state_dir: Path | None = None
    config: Path | None = None
    account: str = ""
    hangs: bool = False
    socket: str = ""

    @property
    def remedy(self) -> str:
        """The command that lets a daemon answer that does not."""
        return "systemctl restart pilotfishd" if self.hangs else "systemctl start pilotfishd"
