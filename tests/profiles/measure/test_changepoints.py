"""Change points of generated series, and the laws of the split."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.measure.phases import PENALTY, change_points


def series(levels, lengths, noise, seed=0):
    """Levels that last so many readings each, with normal noise."""
    flat = np.repeat(levels, lengths)
    return flat + np.random.default_rng(seed).normal(0, noise, len(flat))


@pytest.mark.parametrize("seed", range(8))
def test_known_change_points_are_found(seed):
    found = change_points(series([1.0, 0.1, 0.5], [60, 90, 50], 0.05, seed), noise=0.03, least=3)
    assert len(found) == 2
    assert found == pytest.approx([60, 150], abs=1)


@pytest.mark.parametrize("seed", range(8))
def test_noise_alone_has_none(seed):
    assert change_points(series([0.5], [300], 0.1, seed), noise=0.03, least=3) == []


def test_a_change_in_either_column_counts():
    rows = np.column_stack([series([0.9], [100], 0.01), series([1e9, 5e9], [40, 60], 1e7)])
    assert change_points(rows, noise=1e-3, least=3) == [40]


def test_readings_without_weight_change_nothing():
    values = series([0.2, 0.8], [50, 50], 0.01)
    values[20:25] = 9.0
    weights = np.where(values > 5, 0.0, 1.0)
    assert change_points(values, weights, noise=0.03, least=3) == [50]


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [0.0] * 50])
def test_short_or_constant_series_are_one_piece(values):
    assert change_points(values, noise=0.03, least=3) == []


@st.composite
def steps(draw):
    lengths = draw(st.lists(st.integers(10, 60), min_size=1, max_size=6))
    levels, level = [], draw(st.floats(0, 1))
    for _ in lengths:
        levels.append(level)
        level += draw(st.sampled_from([-1, 1])) * draw(st.floats(0.4, 2))
    return lengths, levels


@settings(max_examples=60, deadline=None)
@given(steps())
def test_clean_steps_are_found_exactly(case):
    lengths, levels = case
    assert change_points(np.repeat(levels, lengths), noise=0.03, least=3) == list(np.cumsum(lengths)[:-1])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=60), st.integers(1, 9), st.sampled_from([0.125, 2.0, 2.0**30]))
def test_pieces_are_long_enough_and_the_unit_does_not_matter(values, least, unit):
    found = change_points(values, noise=0.03, least=least)
    edges = [0, *found, len(values)]
    assert found == sorted(set(found))
    assert not found or min(np.diff(edges)) >= least
    assert change_points(np.array(values) * unit, noise=0.03 * unit, least=least) == found


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=2, max_size=9), st.integers(1, 3))
def test_no_other_split_costs_less(values, least):
    """Against all splits of a short series."""
    rows, count = np.array(values) / 0.3, len(values)
    noise = max(np.median(np.abs(np.diff(rows))) / 0.9539, 1.0)
    penalty = PENALTY * np.log(count)

    def cost(cuts):
        pieces = np.split(rows / noise, cuts)
        return sum(((piece - piece.mean()) ** 2).sum() for piece in pieces) + penalty * len(cuts)

    def splits(begin, cuts):
        yield cuts
        for cut in range(begin + least, count - least + 1):
            yield from splits(cut, [*cuts, cut])

    found = change_points(values, noise=0.3, least=least)
    assert cost(found) <= min(map(cost, splits(0, []))) + 1e-9
