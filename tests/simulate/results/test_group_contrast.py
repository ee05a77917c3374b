"""The difference of two groups: its interval holds a planted gain, and finds none where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.results.group_contrast import LEAST, GroupContrast, group_contrast, widening

TRIALS, UNITS = 600, 200


def waits(draw, units: int):
    """Return waits with a long tail, many of them 0, and their strata."""
    strata = draw.integers(0, 4, units)
    tail = np.exp(draw.normal(0.0, 1.0, units) + 0.3 * strata) * 60.0
    return np.where(draw.random(units) < 0.4, 0.0, tail), strata


def trials(share: float, gain: float) -> tuple[float, float]:
    """Return how often the interval holds the gain, and how often it says that there is a difference."""
    draw, covers, verdicts = np.random.default_rng(7), 0, 0
    for number in range(TRIALS):
        values, strata = waits(draw, UNITS)
        canary = draw.random(UNITS) < share
        contrast = group_contrast(values - gain * canary, canary, strata, seed=number)
        assert contrast is not None and contrast.low is not None and contrast.high is not None
        covers += contrast.low <= -gain <= contrast.high
        verdicts += contrast.is_significant
    return covers / TRIALS, verdicts / TRIALS


@pytest.mark.long
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_the_interval_holds_a_planted_gain_and_shows_it(share):
    covers, verdicts = trials(share, 150.0)
    assert covers >= 0.98 and verdicts > 0.3


@pytest.mark.long
def test_without_an_effect_one_look_hardly_ever_says_that_there_is_one():
    _, verdicts = trials(0.2, 0.0)
    assert verdicts <= 0.02


@pytest.mark.long
def test_looking_again_and_again_finds_no_effect_where_there_is_none():
    """At any of these looks, the interval of one look would find one in a quarter of the runs."""
    draw, looks, runs, false = np.random.default_rng(11), (50 * 1.35 ** np.arange(10)).astype(int), 80, 0
    for _ in range(runs):
        values, strata = waits(draw, looks[-1])
        canary = draw.random(looks[-1]) < 0.5
        contrasts = (group_contrast(values[:units], canary[:units], strata[:units]) for units in looks)
        false += any(one is not None and one.is_significant for one in contrasts)
    assert false <= 0.05 * runs


def test_the_widening_is_that_of_the_paper_and_never_ends():
    bounds = [1.959964 * widening(units) for units in (40, 400, 4000, 40_000)]
    assert bounds == pytest.approx([3.76, 3.04, 3.24, 3.58], abs=0.02)


def test_strata_explain_what_a_plain_difference_takes_for_an_effect():
    # the canary is large in the stratum of long waits: the plain means differ by 430 s, each stratum by -10 s
    strata = np.repeat([0, 1], 100)
    canary = np.concatenate((np.arange(100) < 25, np.arange(100) < 75))
    values = np.where(strata == 1, 1000.0, 0.0) + np.tile(np.arange(100) % 5, 2) - 10.0 * canary
    contrast = group_contrast(values, canary, strata)
    assert contrast is not None and contrast.difference == pytest.approx(-10.0, abs=0.1)
    assert contrast.is_significant and contrast.more == 0 and contrast.units == (100, 100)


def test_strata_with_one_group_are_left_out_and_counted():
    strata = np.array([0, 0, 1, 1, 1, 2])
    canary = np.array([True, False, False, False, False, True])
    contrast = group_contrast(np.arange(6.0), canary, strata)
    assert contrast == GroupContrast(1.0, 0.0, None, None, None, (1, 1), 1, 4)
    assert contrast.more is None and contrast.smallest is None and not contrast.is_significant
    assert group_contrast(np.arange(6.0), canary, np.arange(6)) is None
    assert group_contrast(np.zeros(0), np.zeros(0, bool), np.zeros(0, int)) is None


def test_so_many_more_units_show_the_difference():
    draw = np.random.default_rng(3)
    values, canary, strata = draw.normal(0.0, 100.0, 400), np.arange(400) % 2 == 0, np.zeros(400, int)
    values[canary] += -15.0 - values[canary].mean() + values[~canary].mean()
    contrast = group_contrast(values, canary, strata)
    assert contrast is not None and not contrast.is_significant
    # two groups of n each and a spread of 100: n = 2 ((3.04 + 0.84) * 100 / 15)^2 = 1338 each
    assert contrast.difference == pytest.approx(-15.0) and contrast.more == pytest.approx(2 * 1338 - 400, rel=0.15)


def test_equal_values_differ_for_certain_by_nothing():
    contrast = group_contrast(np.full(200, 3.0), np.arange(200) % 2 == 0, np.zeros(200, int))
    assert contrast is not None and (contrast.low, contrast.high) == (0.0, 0.0) and not contrast.is_significant


@given(st.integers(0, 2**32 - 1), st.floats(-1e3, 1e3), st.floats(0.1, 1e3))
def test_laws(seed, shift, scale):
    draw = np.random.default_rng(seed)
    values, strata = waits(draw, 100)
    canary = draw.random(100) < 0.5
    order = draw.permutation(100)
    contrasts = [
        group_contrast(values, canary, strata),
        group_contrast(values + shift * strata, canary, strata),  # a constant of a stratum says nothing
        group_contrast(values * scale, canary, strata),
        group_contrast(values, ~canary, strata),
        group_contrast(values[order], canary[order], strata[order]),
    ]
    first, shifted, scaled, swapped, moved = (one for one in contrasts if one)
    assert shifted.difference == pytest.approx(first.difference, abs=1e-6)
    assert scaled.difference == pytest.approx(scale * first.difference, rel=1e-6, abs=1e-9)
    assert swapped.difference == pytest.approx(-first.difference, abs=1e-6)
    assert moved.difference == pytest.approx(first.difference, abs=1e-6)
    assert sum(first.units) + first.left_out == 100 and LEAST > 1
