"""What is no longer as it was: by more than the bound, and by more than chance."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from pilotfish.profiles.calibration.changes import Known, changes, given, measured
from pilotfish.profiles.calibration.curve import fit_curve
from pilotfish.profiles.calibration.figures import Figure, figure, half_width
from pilotfish.profiles.calibration.result import Calibration, node_type
from pilotfish.simulate.platform import CpuSharing

from .calibrations import BARE, FULL


def seen(old: Calibration, new: Calibration, bound: float) -> list[str]:
    return [change.key for change in changes(measured(old, "n"), measured(new, "n"), bound)]


def test_what_changed_by_more_than_the_bound_is_found() -> None:
    assert seen(FULL, FULL, 0.01) == []
    slower = replace(FULL, speed=Figure(4e8, 1e6, 20), sharing=CpuSharing.PER_JOB)
    found = changes(given(node_type(FULL, "n")), measured(slower, "n"), 0.1)
    assert [(c.key, c.ratio, c.sure) for c in found] == [("speed", 0.8, True), ("cpu_sharing", None, True)]
    assert seen(FULL, slower, 0.3) == ["cpu_sharing"]


def test_what_was_not_measured_this_time_has_not_changed() -> None:
    assert seen(FULL, BARE, 0.01) == []
    told = changes(given(node_type(FULL, "n")), measured(BARE, "n"), 0.01)
    assert told == ()


def test_what_was_not_known_before_has_changed() -> None:
    found = {c.key: c.old for c in changes(measured(BARE, "n"), measured(FULL, "n"), 0.1)}
    assert found["power.per_core"] is None and found["piecewise.dd"] is None


@pytest.mark.parametrize(("spread", "sure"), [(1e6, True), (1.5e8, False)])
def test_a_difference_that_the_scatter_of_the_runs_explains_is_not_sure(spread: float, sure: bool) -> None:
    (change,) = changes(measured(FULL, "n"), measured(replace(FULL, speed=Figure(4e8, spread, 5)), "n"), 0.1)
    assert (change.key, change.sure) == ("speed", sure) and change.noise is not None and change.noise > 0


def test_a_plateau_that_was_not_reached_is_as_unsure_as_one_thread_is() -> None:
    rough = replace(BARE, bandwidth=fit_curve([1, 1, 2, 2], [5e9, 9e9, 10e9, 18e9]))
    assert not rough.bandwidth.saturated
    (change,) = changes(measured(BARE, "n"), measured(rough, "n"), 0.1)
    assert (change.key, change.sure) == ("memory_bandwidth", False)


@over(st.floats(0.1, 1e12), st.floats(0.01, 100), st.floats(0.001, 5), st.floats(0, 1e12))
def test_more_noise_and_a_wider_bound_never_find_more(value: float, by: float, bound: float, margin: float) -> None:
    def found(bound: float, margin: float) -> list[bool]:
        return [c.sure for c in changes({"k": Known(value)}, {"k": Known(value * by, margin)}, bound)]

    assert len(found(2 * bound, margin)) <= len(found(bound, margin))
    assert sum(found(bound, 2 * margin)) <= sum(found(bound, margin))
    assert sum(found(bound, 0.0)) == len(found(bound, margin))


def test_the_interval_of_a_median_holds_the_truth_about_as_often_as_it_says() -> None:
    import numpy as np

    rng, held = np.random.default_rng(3), 0
    for _ in range(400):
        seen = figure(rng.normal(10.0, 1.0, 21).tolist())
        held += abs(seen.value - 10.0) <= (half_width(seen) or 0.0)
    assert 0.88 <= held / 400 <= 0.99
    assert half_width(Figure(1.0, 0.0, 1)) is None
