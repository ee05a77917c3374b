"""The guard trips on a full window of bad forecasts, and recovers without flapping; no user alone makes it trip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.state.forecasts import Forecaster

MEASURED, GIVEN, PREDICTED = (Forecaster("max-min", source) for source in ("measured", "given", "predicted"))


def test_it_trips_on_a_full_window_and_recovers_under_half_the_bound():
    guard = Guard(bound=0.4, window=3, fallback="slf")
    assert [guard.add(2.0), guard.add(2.0), guard.tripped] == [False, False, False]
    assert guard.add(0.1) and guard.policy("mom", ()) == "slf"
    assert not guard.add(0.3) and guard.tripped  # the median is 0.3: under the bound, not under its half
    assert guard.add(0.1) and guard.policy("mom", ()) == "mom"


def test_a_disabled_guard_measures_but_never_acts():
    guard = Guard(bound=0.1, window=1, fallback="slf", enabled=False, errors=[(MEASURED, 9.0, None)])
    assert guard.tripped and guard.median(MEASURED) == 9.0 and guard.policy("let", ["measured"]) == "let"


def test_bad_predictions_do_not_condemn_the_model():
    guard = Guard(bound=0.5, window=2, fallback="slf")
    assert [guard.add(9.0, PREDICTED), guard.add(9.0, PREDICTED)] == [False, True]
    assert guard.policy("mom", ["measured", "given"]) == "mom"
    assert guard.policy("mom", ["measured", "predicted"]) == "slf"
    assert (guard.worst, str(guard.worst)) == (PREDICTED, "max-min on predicted profiles")


def test_good_predictions_do_not_hide_a_wrong_model():
    guard = Guard(bound=0.5, window=2, fallback="slf")
    for _ in range(5):
        guard.add(0.0, PREDICTED)
    guard.add(0.9, MEASURED)
    assert guard.add(0.9, MEASURED) and guard.policy("mom", ["measured"]) == "slf"
    assert guard.add(0.9, GIVEN) is guard.add(0.0, PREDICTED) is False
    assert guard.add(0.9, GIVEN) and guard.distrusted == {MEASURED, GIVEN}


def test_errors_without_a_recorded_source_count_for_all_sources():
    guard = Guard(bound=0.5, window=1, fallback="slf", errors=[(Forecaster("max-min"), 9.0, 1)])
    assert guard.policy("mom", ["predicted"]) == "slf"


ADA, BOB, EVE = 1, 2, 3


@pytest.mark.parametrize("good", [1, 3, 10, 200])
def test_one_user_whose_forecasts_miss_does_not_make_the_guard_trip(good):
    guard = Guard(bound=0.5, window=20, fallback="slf")
    for _ in range(good):
        guard.add(0.1, MEASURED, ADA)
    assert not any(guard.add(9.0, MEASURED, EVE) for _ in range(150)) and not guard.tripped


def test_misses_of_two_users_of_three_and_of_the_only_user_make_it_trip():
    guard, alone = (Guard(bound=0.5, window=20, fallback="slf") for _ in range(2))
    for _ in range(30):
        guard.add(0.1, MEASURED, ADA)
        guard.add(9.0, MEASURED, BOB)
        guard.add(9.0, MEASURED, EVE)
        alone.add(9.0, MEASURED, EVE)
    assert guard.tripped and alone.tripped


@given(
    st.lists(st.tuples(st.sampled_from([ADA, BOB, EVE, None]), st.floats(0.0, 10.0)), max_size=60),
    st.integers(1, 20),
)
def test_no_user_raises_the_median_over_the_errors_of_all_others(errors, window):
    guard = Guard(bound=0.5, window=window, fallback="slf")
    for user, error in errors:
        guard.add(error, MEASURED, user)
    median = guard.median(MEASURED)
    assert (median is None) == (not errors)
    for user in {user for user, _ in errors}:
        others = [error for other, error in errors if other != user]
        if others and window > 1:
            assert median <= max(others)
