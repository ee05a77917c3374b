"""The metrics of the guard rail: which error it judges by, its bound, and what has tripped it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.learning.guard_watch import GuardWatch
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.forecasts import Forecaster

MODEL = Forecaster("max-min", "measured")


class Shown:
    def __init__(self, guard: Guard) -> None:
        self.metrics, self.forecasts = Metrics(), SimpleNamespace(guard=guard)
        self.watch = GuardWatch(self.metrics.guard, self.forecasts)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"pilotfish_guard_{name}", labels)

    def cycle(self) -> None:
        nothing: Any = None
        self.watch.on_cycle(nothing, nothing)


@pytest.fixture
def shown() -> Shown:
    return Shown(Guard(bound=0.5, window=2, fallback="slf"))


def test_the_bound_is_shown_from_the_start(shown: Shown) -> None:
    assert shown.value("bound_factor") == 1.5
    assert shown.value("tripped", cause="forecasts") == shown.value("tripped", cause="learned order") == 0.0


def test_a_forecaster_that_misses_trips_it_and_is_named(shown: Shown) -> None:
    for _ in range(2):
        shown.forecasts.guard.add(2.0, MODEL)
    shown.cycle()
    assert shown.value("error_factor", model="max-min", source="measured") == 3.0
    assert shown.value("tripped", cause="forecasts") == 1.0
    for _ in range(2):
        shown.forecasts.guard.add(0.1, MODEL)
    shown.cycle()
    assert shown.value("tripped", cause="forecasts") == 0.0


def test_an_order_that_harms_trips_it(shown: Shown) -> None:
    shown.forecasts.guard.overruled_model = ("easy", "jobs wait longer")
    shown.cycle()
    assert shown.value("tripped", cause="learned order") == 1.0
    assert shown.value("tripped", cause="forecasts") == 0.0


def test_a_guard_that_is_off_never_shows_a_trip_but_its_errors() -> None:
    shown = Shown(Guard(bound=0.5, window=1, fallback="slf", enabled=False))
    shown.forecasts.guard.add(2.0, MODEL)
    shown.cycle()
    assert shown.value("tripped", cause="forecasts") == 0.0
    assert shown.value("error_factor", model="max-min", source="measured") == 3.0


def test_a_reload_shows_the_new_bound_and_forgets_the_errors_of_the_old_guard(shown: Shown) -> None:
    shown.forecasts.guard.add(2.0, MODEL)
    shown.cycle()
    shown.forecasts.guard = Guard(bound=1.0, window=2, fallback="slf")
    shown.cycle()
    assert shown.value("bound_factor") == 2.0
    assert shown.value("error_factor", model="max-min", source="measured") is None
