"""The modes in which a daemon can be started: what it may write to the resource manager, and what it keeps.

Rule: the three run the same code, with another applier. `live` and `shadow` differ only in what is written to the
resource manager, so that a change from one to the other keeps what was learned.
"""

from __future__ import annotations

from enum import StrEnum


class RunMode(StrEnum):
    """The mode in which a daemon was started.

    LIVE: it acts. SHADOW: it learns and keeps its state, and writes nothing to the resource manager. DRY_RUN: the same
    with a copy of its state in memory, next to a daemon that runs (`--dry-run`).
    """

    LIVE = "live"
    SHADOW = "shadow"
    DRY_RUN = "dry-run"

    @property
    def acts(self) -> bool:
        """True if decisions are carried out."""
        return self is RunMode.LIVE

    @property
    def keeps(self) -> bool:
        """True if the state on disk is its own: the journal, profiles, measured delays."""
        return self is not RunMode.DRY_RUN
