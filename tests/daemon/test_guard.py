"""The guard rail: trips on a full window of bad forecasts, and comes back without flapping."""

import pytest

from pilotfish.daemon.guard import Guard, forecast_error


@pytest.mark.parametrize(
    ("forecast", "actual", "error"), [(10, 10, 0), (15, 10, 0.5), (5, 10, 0.5), (0, 0, 0), (0.001, 0, 1.0)]
)
def test_error_is_relative_to_what_happened(forecast, actual, error):
    assert forecast_error(forecast, actual) == pytest.approx(error)


def test_it_trips_on_a_full_window_only_and_returns_under_half_the_bound():
    guard = Guard(bound=0.4, window=3, fallback="slf")
    assert [guard.add(2.0), guard.add(2.0), guard.tripped] == [False, False, False]
    assert guard.add(0.1) and guard.policy("mom") == "slf"
    assert not guard.add(0.3) and guard.tripped  # the median is 0.3: under the bound, not under its half
    assert guard.add(0.1) and guard.policy("mom") == "mom"


def test_disabled_it_measures_and_never_acts():
    guard = Guard(bound=0.1, window=1, fallback="slf", enabled=False, errors=[("max-min", 9.0)])
    assert guard.tripped and guard.median == 9.0 and guard.policy("let") == "let"
