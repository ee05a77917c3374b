"""The records that wait until the journal can be written."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from .audit import AuditedChange, Decision
from .forecasts import Forecaster
from .members import Member
from .pending_usage import PendingUsage
from .recorded_outcome import QueueRecord


@dataclass(slots=True)
class Unsaved:
    """Records that wait for the journal.

    Args:
        records: (key, time, cycle, kind, text, data) of jobs, for `explain`.
        outcomes: outcome of each intent, by row.
        errors: (forecaster, error of a run time, a factor less one, uid), for the guard after a restart.
        pending: jobs to look up in the accounting.
        queued: jobs of the resource manager's queue, by key.
        members: of the groups of the canary, by key.
        kept: what must be known after a restart, under "policy", `pauses.KEPT` and `canary.groups.KEPT`.
        changes: of what the daemon may do, for the audit.
        would_be: what would have been done, with the time of its snapshot, by job and action.
    """

    records: list[tuple[Any, ...]] = field(default_factory=list)
    outcomes: dict[int, str] = field(default_factory=dict)
    errors: list[tuple[Forecaster, float, int | None]] = field(default_factory=list)
    pending: list[PendingUsage] = field(default_factory=list)
    queued: dict[str, QueueRecord] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: list[AuditedChange] = field(default_factory=list)
    would_be: dict[tuple[str, str], tuple[float, Decision]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(getattr(self, part.name) for part in fields(self))

    def clear(self) -> None:
        """Forget everything: the journal has it."""
        for part in fields(self):
            getattr(self, part.name).clear()
