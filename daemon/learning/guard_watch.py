"""Showing of the guard rail in the metrics, and of the doubts about a learned policy in the log, too."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...simulate.model.snapshot import Snapshot
from ...simulate.queue_policies.model_use import Doubt
from ..report.cycle_report import CycleReport, Observer
from ..report.guard_metrics import FORECASTS, ORDER, GuardMetrics
from .forecast_errors import ForecastErrors

log = logging.getLogger("pilotfish.cycle")


class GuardWatch(Observer):
    """Shows the guard rail after each cycle in which something of it has changed.

    Args:
        metrics: show it.
        forecasts: have the guard; a reload replaces it.
        doubt: returns why a learned policy left the last plan to its baseline.
    """

    def __init__(self, metrics: GuardMetrics, forecasts: ForecastErrors, doubt: Callable[[], Doubt]) -> None:
        self._metrics, self._forecasts, self._doubt = metrics, forecasts, doubt
        self._reason = ""  # of the last plan
        self._shown: tuple[object, ...] = ()
        self._show()

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Show the guard, if it is another one or has judged since. O(window) for each forecaster."""
        self._show()
        if report.plan is not None and not self._forecasts.guard.overrules(report.policy):
            self._show_doubt(report.policy)

    def _show_doubt(self, policy: str) -> None:
        """Count a plan that a learned policy left to its baseline, and log why; once, until it changes."""
        doubt, before = self._doubt(), self._reason
        self._reason = doubt.reason
        if doubt.reason:
            self._metrics.count_doubt(doubt.reason)
            if doubt.reason != before:
                log.warning("the baseline of %s decides: %s", policy, doubt.text)
        elif before:
            log.info("%s decides itself again", policy)

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
