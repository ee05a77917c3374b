"""The guard trips on a full window of bad forecasts, and recovers without flapping."""

from pilotfish.daemon.planning.guard_rail import Forecaster, Guard

MEASURED, GIVEN, PREDICTED = (Forecaster("max-min", source) for source in ("measured", "given", "predicted"))


def test_it_trips_on_a_full_window_and_recovers_under_half_the_bound():
    guard = Guard(bound=0.4, window=3, fallback="slf")
    assert [guard.add(2.0), guard.add(2.0), guard.tripped] == [False, False, False]
    assert guard.add(0.1) and guard.policy("mom", ()) == "slf"
    assert not guard.add(0.3) and guard.tripped  # the median is 0.3: under the bound, not under its half
    assert guard.add(0.1) and guard.policy("mom", ()) == "mom"


def test_a_disabled_guard_measures_but_never_acts():
    guard = Guard(bound=0.1, window=1, fallback="slf", enabled=False, errors=[(MEASURED, 9.0)])
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
    guard = Guard(bound=0.5, window=1, fallback="slf", errors=[(Forecaster("max-min"), 9.0)])
    assert guard.policy("mom", ["predicted"]) == "slf"
