"""What the journal has not taken yet, in addition to the queue's changed entries."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ..planning.guard import Forecaster


@dataclass(frozen=True, slots=True)
class PendingUsage:
    """A job whose usage is still to be read from the resource manager's accounting.

    Args:
        key: of the job in the resource manager.
        name: under which its run will be stored.
        since: a time before which it cannot have been started, epoch seconds.
        ended: when it ended, epoch seconds.
        due: when to ask for it next, epoch seconds.
        tries: how often accounting did not have it.
    """

    key: str
    name: str
    since: float
    ended: float
    due: float
    tries: int = 0


@dataclass(slots=True)
class Unsaved:
    """Records that wait for the journal.

    Args:
        records: (key, time, cycle, kind, text, data) of jobs, for `explain`.
        outcomes: outcome of each intent, by row.
        errors: (forecaster, forecast error of a run time), for the guard after a restart.
        pending: jobs to look up in the accounting.
    """

    records: list[tuple[Any, ...]] = field(default_factory=list)
    outcomes: dict[int, str] = field(default_factory=dict)
    errors: list[tuple[Forecaster, float]] = field(default_factory=list)
    pending: list[PendingUsage] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))

    def clear(self) -> None:
        """Forget everything: the journal has it."""
        for each in fields(self):
            getattr(self, each.name).clear()
