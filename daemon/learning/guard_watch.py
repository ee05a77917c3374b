"""Showing of the guard rail in the metrics."""

from __future__ import annotations

from ...simulate.model.snapshot import Snapshot
from ..report.cycle_report import CycleReport, Observer
from ..report.guard_metrics import FORECASTS, ORDER, GuardMetrics
from .forecast_errors import ForecastErrors


class GuardWatch(Observer):
    """Shows the guard rail after each cycle in which something of it has changed.

    Args:
        metrics: show it.
        forecasts: have the guard; a reload replaces it.
    """

    def __init__(self, metrics: GuardMetrics, forecasts: ForecastErrors) -> None:
        self._metrics, self._forecasts = metrics, forecasts
        self._shown: tuple[object, ...] = ()
        self._show()

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Show the guard, if it is another one or has judged since. O(window) for each forecaster."""
        self._show()

    def _show(self) -> None:
        guard = self._forecasts.guard
        state = (guard, guard.judged, guard.overruled_model)
        if state == self._shown:
            return
        self._shown = state
        causes = {FORECASTS: guard.tripped, ORDER: guard.overruled_model is not None}
        medians = {forecaster: 1.0 + median for forecaster, median in guard.medians().items()}
        self._metrics.show(
            {cause: guard.enabled and is_tripped for cause, is_tripped in causes.items()}, 1.0 + guard.bound, medians
        )
