"""The bandwidth curve: known constants are found again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.calibration.bandwidth import fit_curve
from pilotfish.profiles.calibration.statistics import figure, quality, student


@given(st.floats(1e9, 40e9), st.floats(1.1, 12.0), st.integers(0, 99))
def test_a_known_curve_is_found_again(slope: float, bend: float, seed: int) -> None:
    threads = np.repeat(np.arange(1, 17), 5)
    noise = np.random.default_rng(seed).normal(1.0, 0.005, len(threads))
    found = fit_curve(threads.tolist(), (np.minimum(threads, bend) * slope * noise).tolist())
    assert found.saturated
    assert found.per_thread.value == pytest.approx(slope, rel=0.02)
    assert found.most.value == pytest.approx(slope * bend, rel=0.02)


@settings(max_examples=20)
@given(st.floats(1.0, 9.0), st.integers(0, 99))
def test_no_other_curve_fits_better(bend: float, seed: int) -> None:
    threads = np.repeat(np.arange(1, 9), 2)
    rng = np.random.default_rng(seed)
    seen = np.minimum(threads, bend) * 5.0 * rng.normal(1.0, 0.1, len(threads))
    found = fit_curve(threads.tolist(), seen.tolist())
    least = found.quality.rms * (1 + 1e-9)
    for slope in np.linspace(3.0, 7.0, 41):
        for top in np.linspace(3.0, 60.0, 58):
            assert quality(seen, np.minimum(threads * slope, top)).rms >= least * (1 - 1e-6)


def test_a_curve_that_still_rises_is_a_lower_bound() -> None:
    found = fit_curve([1, 2, 4], [10e9, 20e9, 40e9])
    assert not found.saturated
    assert (found.most.value, found.most.high) == (40e9, None)


def test_one_thread_count_is_a_lower_bound_without_interval() -> None:
    found = fit_curve([1], [10e9])
    assert not found.saturated and found.most.value == 10e9 and found.per_thread.low is None
    assert found.quality.r2 is None


def test_intervals_have_their_coverage() -> None:
    rng, held = np.random.default_rng(7), 0
    threads = np.repeat(np.arange(1, 9), 3)
    for _ in range(300):
        seen = np.minimum(threads, 3.5) * 10.0 + rng.normal(0.0, 1.0, len(threads))
        most = fit_curve(threads.tolist(), seen.tolist()).most
        assert most.low is not None and most.high is not None
        held += most.low <= 35.0 <= most.high
    assert 0.90 <= held / 300 <= 0.99


@pytest.mark.parametrize(("free", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (10, 2.228), (100, 1.984)])
def test_students_quantile(free: int, quantile: float) -> None:
    assert student(free) == pytest.approx(quantile, rel=0.01)


def test_a_figure_ignores_one_outlier() -> None:
    assert figure([10.0, 11.0, 9.0, 10.0, 99.0]).value == 10.0
    assert figure([10.0, 11.0, 9.0, 10.0, 99.0]).spread == pytest.approx(1.4826)
