"""The daily cycle: its weights, and both ways of counting time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.generate.models import BATCH, DAY_S, INTERACTIVE, UNTYPED, DailyCycle, gamma_cdf

CYCLES = [kind.cycle for kind in (BATCH, INTERACTIVE, UNTYPED)]


@given(st.floats(0.0, 40.0))
def test_the_gamma_distribution_of_shapes_with_a_closed_form(x: float) -> None:
    assert gamma_cdf(x, 1.0) == pytest.approx(1.0 - math.exp(-x), abs=1e-12)
    poisson = sum(x**k / math.factorial(k) for k in range(7)) * math.exp(-x)
    assert gamma_cdf(x, 7.0) == pytest.approx(1.0 - poisson, abs=1e-12)
    assert gamma_cdf(x, 0.5) == pytest.approx(math.erf(math.sqrt(x)), abs=1e-12)


@pytest.mark.parametrize("cycle", CYCLES)
def test_a_day_is_busiest_in_the_early_afternoon_and_quiet_before_dawn(cycle: DailyCycle) -> None:
    assert cycle.weights.mean() == pytest.approx(1.0) and len(cycle.weights) == 48
    assert 24 <= int(cycle.weights.argmax()) < 30 and 6 <= int(cycle.weights.argmin()) < 12
    mode = (cycle.shape - 1.0) * cycle.scale  # of the distribution, in half hours; the first is number 1
    assert abs(int(cycle.weights.argmax()) + 1 - mode) <= 0.5


def test_the_cycle_restarts_in_the_eleventh_half_hour() -> None:
    first = gamma_cdf(11.5 / 3.9631, 8.1737) - gamma_cdf(10.5 / 3.9631, 8.1737)
    last = gamma_cdf(58.5 / 3.9631, 8.1737) - gamma_cdf(57.5 / 3.9631, 8.1737)
    weights = UNTYPED.cycle.weights
    assert weights[10] / weights[9] == pytest.approx(first / last)


@pytest.mark.parametrize("cycle", CYCLES)
@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=20).map(sorted))
def test_time_by_the_clock_and_in_rush_seconds_are_inverses(cycle: DailyCycle, times: list[float]) -> None:
    clock = np.array(times)
    rush = cycle.rush(clock)
    assert np.all(np.diff(rush) >= 0) and np.allclose(cycle.clock(rush), clock, rtol=1e-12, atol=1e-6)
    assert np.array_equal(rush // DAY_S, clock // DAY_S)
    assert cycle.rush(np.array([DAY_S, 3 * DAY_S])).tolist() == [DAY_S, 3 * DAY_S]
