"""Changes between calibrations: above the bound, and above the noise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from pilotfish.profiles.calibration.bandwidth import fit_curve
from pilotfish.profiles.calibration.calibration_records import KnownValue, calibrated_values, changes, type_values
from pilotfish.profiles.calibration.result import Calibration, node_type
from pilotfish.profiles.calibration.statistics import MeasuredNumber, figure, half_width
from pilotfish.simulate.model.cluster import CpuSharing
from tests.profiles.calibration.calibrations import BARE, FULL


def seen(old: Calibration, new: Calibration, bound: float) -> list[str]:
    return [change.key for change in changes(calibrated_values(old, "n"), calibrated_values(new, "n"), bound)]


def test_changes_above_the_bound_are_found() -> None:
    assert seen(FULL, FULL, 0.01) == []
    slower = replace(FULL, speed=MeasuredNumber(4e8, 1e6, 20), sharing=CpuSharing.PER_JOB)
    found = changes(type_values(node_type(FULL, "n")), calibrated_values(slower, "n"), 0.1)
    assert [(c.key, c.ratio, c.sure) for c in found] == [("loop_speed", 0.8, True), ("cpu_sharing", None, True)]
    assert seen(FULL, slower, 0.3) == ["cpu_sharing"]


def test_unmeasured_values_have_not_changed() -> None:
    assert seen(FULL, BARE, 0.01) == []
    found = changes(type_values(node_type(FULL, "n")), calibrated_values(BARE, "n"), 0.01)
    assert found == ()


def test_formerly_unknown_values_have_changed() -> None:
    found = {c.key: c.old for c in changes(calibrated_values(BARE, "n"), calibrated_values(FULL, "n"), 0.1)}
    assert found["power.per_core"] is None and found["piecewise.dd"] is None


@pytest.mark.parametrize(("spread", "sure"), [(1e6, True), (1.5e8, False)])
def test_a_difference_within_the_noise_is_not_sure(spread: float, sure: bool) -> None:
    (change,) = changes(
        calibrated_values(FULL, "n"), calibrated_values(replace(FULL, speed=MeasuredNumber(4e8, spread, 5)), "n"), 0.1
    )
    assert (change.key, change.sure) == ("loop_speed", sure) and change.noise is not None and change.noise > 0


def test_an_unreached_plateau_has_the_margin_of_one_thread() -> None:
    rough = replace(BARE, bandwidth=fit_curve([1, 1, 2, 2], [5e9, 9e9, 10e9, 18e9]))
    assert not rough.bandwidth.saturated
    (change,) = changes(calibrated_values(BARE, "n"), calibrated_values(rough, "n"), 0.1)
    assert (change.key, change.sure) == ("memory_bandwidth", False)


@over(st.floats(0.1, 1e12), st.floats(0.01, 100), st.floats(0.001, 5), st.floats(0, 1e12))
def test_more_noise_and_a_wider_bound_never_find_more(value: float, by: float, bound: float, margin: float) -> None:
    def found(bound: float, margin: float) -> list[bool]:
        return [c.sure for c in changes({"k": KnownValue(value)}, {"k": KnownValue(value * by, margin)}, bound)]

    assert len(found(2 * bound, margin)) <= len(found(bound, margin))
    assert sum(found(bound, 2 * margin)) <= sum(found(bound, margin))
    assert sum(found(bound, 0.0)) == len(found(bound, margin))


def test_the_interval_of_a_median_has_its_coverage() -> None:
    import numpy as np

    rng, held = np.random.default_rng(3), 0
    for _ in range(400):
        seen = figure(rng.normal(10.0, 1.0, 21).tolist())
        held += abs(seen.value - 10.0) <= (half_width(seen) or 0.0)
    assert 0.88 <= held / 400 <= 0.99
    assert half_width(MeasuredNumber(1.0, 0.0, 1)) is None
