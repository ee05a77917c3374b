"""Let the resource manager know what holding jobs gains, so that it need not hold jobs like those that lose."""

from __future__ import annotations

from ...adapters.base import Adapter
from ...simulate.model.plan import Place, Release
from ...simulate.model.snapshot import Snapshot
from .cycle_report import CycleReport, Observer


class HoldAdvice(Observer):
    """Passes on, for each job that was placed or released, what its plan gains by holding jobs."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Pass on what the cycle did. O(actions)."""
        if report.gain_of_holding_s is None or report.dry:
            return
        for applied in report.applied:
            if isinstance(applied.action, (Place, Release)) and not applied.error:
                self._adapter.note_gain(applied.action.key, report.gain_of_holding_s)
