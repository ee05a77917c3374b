"""Report to the resource manager that jobs must still be held, and what holding them gains.

Rule: only a live cycle that saw the cluster prolongs a hold.
"""

from __future__ import annotations

from ...adapters.base import Adapter
from ...simulate.model.plan import Place, Release
from ...simulate.model.snapshot import Snapshot
from .cycle_report import CycleReport, Observer

#: How long after a cycle jobs that are handed over are still held for us, seconds.
HEARTBEAT_S = 30.0


class HoldAdvice(Observer):
    """Prolongs holds, and passes on, for each job that was placed or released, what its plan gains by holding jobs."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Hold on, and pass on what the cycle did. O(actions)."""
        if report.dry:
            return
        if self._adapter.capabilities.offers:
            self._adapter.keep_holding(snapshot.time + HEARTBEAT_S)
        if report.gain_of_holding_s is None:
            return
        for applied in report.applied:
            if isinstance(applied.action, (Place, Release)) and not applied.error:
                self._adapter.note_gain(applied.action.key, report.gain_of_holding_s)
