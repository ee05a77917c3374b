"""The metrics of the guard rail: which error it judges by, its bound, and what has tripped it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.learning.guard_watch import GuardWatch
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.forecasts import Forecaster
from pilotfish.simulate.learned.model_calls import LIMIT, SLOW
from pilotfish.simulate.queue_policies.model_use import Doubt

MODEL = Forecaster("max-min", "measured")


class Shown:
    def __init__(self, guard: Guard) -> None:
        self.metrics, self.forecasts = Metrics(), SimpleNamespace(guard=guard)
        self.doubt = Doubt()
        self.watch = GuardWatch(self.metrics.guard, self.forecasts, lambda: self.doubt)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"pilotfish_guard_{name}", labels)

    def cycle(self, plan: object = None) -> None:
        report: Any = SimpleNamespace(plan=plan, policy="learned:m")
        nothing: Any = None
        self.watch.on_cycle(report, nothing)


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


def test_a_doubt_about_a_model_is_one_sentence_and_each_plan_counts(
    shown: Shown, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for doubt in (Doubt(), Doubt(SLOW, "it took 0.2 s"), Doubt(SLOW, "it took 0.3 s"), Doubt(LIMIT, "a job"), Doubt()):
        shown.doubt = doubt
        shown.cycle(plan=object())
        shown.cycle()  # without a plan nothing is decided
    counts = {
        reason: shown.metrics.registry.get_sample_value("pilotfish_learned_doubts_total", {"reason": reason})
        for reason in (SLOW, LIMIT, "failed", "no number")
    }
    assert counts == {SLOW: 2.0, LIMIT: 1.0, "failed": 0.0, "no number": 0.0}
    assert [record.getMessage() for record in caplog.records] == [
        "the baseline of learned:m decides: it took 0.2 s",
        "the baseline of learned:m decides: a job",
        "learned:m decides itself again",
    ]


def test_a_plan_in_place_of_the_model_is_no_doubt(shown: Shown) -> None:
    shown.forecasts.guard.overruled_model = ("learned:m", "it failed")
    shown.doubt = Doubt(SLOW, "it took 0.2 s")
    shown.cycle(plan=object())
    assert shown.metrics.registry.get_sample_value("pilotfish_learned_doubts_total", {"reason": SLOW}) == 0.0
