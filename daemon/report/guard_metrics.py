"""The metrics of the guard rail: the errors by which it judges, its bound, and what has tripped it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...simulate.learned.model_calls import REASONS
from ..state.forecasts import Forecaster
from .accuracy import NOT_RECORDED

#: What trips the guard rail: forecasts that keep missing, and a learned order that harms.
FORECASTS, ORDER = "forecasts", "learned order"


class GuardMetrics:
    """The metrics; `make` makes one, see `Metrics`, and `GuardWatch` shows the guard rail with them."""

    def __init__(self, make: Any) -> None:
        from prometheus_client import Counter, Gauge

        self._tripped = make(
            Gauge, "guard_tripped", "1: the guard rail lets a plain policy decide, for this cause.", ("cause",)
        )
        self._errors = make(
            Gauge,
            "guard_error_factor",
            "Median of the last errors of run times by which the guard rail judges, by contention model and source of "
            "the profile: actual over forecast or its inverse, the larger of the two.",
            ("model", "source"),
        )
        self._bound = make(Gauge, "guard_bound_factor", "Error above which the guard rail trips.")
        for cause in (FORECASTS, ORDER):
            self._tripped.labels(cause)
        self._doubts = make(
            Counter, "learned_doubts_total",
            "Plans of a learned policy in which its baseline decided, by the reason.", ("reason",),
        )  # fmt: skip
        for reason in REASONS:
            self._doubts.labels(reason)

    def count_doubt(self, reason: str) -> None:
        """Count a plan in which the baseline of a learned policy decided."""
        self._doubts.labels(reason).inc()

    def show(self, tripped: Mapping[str, bool], bound: float, medians: Mapping[Forecaster, float]) -> None:
        """Show the guard rail.

        Args:
            tripped: whether it has tripped, by cause.
            bound: factor above which it trips, > 1.
            medians: error of each forecaster, a factor, >= 1.
        """
        for cause, is_tripped in tripped.items():
            self._tripped.labels(cause).set(is_tripped)
        self._bound.set(bound)
        self._errors.clear()
        for forecaster, median in medians.items():
            self._errors.labels(*(label or NOT_RECORDED for label in forecaster)).set(median)
