"""Batches count by their number of jobs at most, and keep a fair sample of each."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.prediction.batches import LATEST, Batches

SHARES = st.floats(0.01, 0.99)


def filled(values: list[tuple[int, float]], **weights: float) -> Batches:
    series = Batches(Random(1), **weights)
    for batch, value in values:
        series.add(batch, value)
    return series


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 9)), min_size=1, max_size=LATEST), SHARES, st.floats(0, 1))
def test_a_quantile_is_the_least_value_with_its_share_of_weight(
    values: list[tuple[int, float]], wanted: float, unknown: float
) -> None:
    found = filled(values).quantile(wanted, unknown)
    batches = {batch for batch, _ in values}
    weight = {batch: 1.0 / sum(other == batch for other, _ in values) for batch in batches}
    least = wanted * (1.0 + unknown) * len(batches)
    assert sum(weight[batch] for batch, value in values if value < found) < least + 1e-9
    assert sum(weight[batch] for batch, value in values if value <= found) >= least - 1e-9 or found == math.inf


@given(st.lists(st.tuples(st.integers(0, 300), st.floats(0, 9)), min_size=1, max_size=5 * LATEST))
def test_memory_is_bounded_and_what_is_kept_was_added(values: list[tuple[int, float]]) -> None:
    series = filled(values)
    kept = sorted(value for own in series._batches.values() for value in own.values)
    assert series._values == kept and len(kept) <= min(len(values), LATEST) and set(kept) <= {v for _, v in values}
    assert series.jobs == sum(own.jobs for own in series._batches.values()) and 1 <= len(series) <= LATEST
    sizes = {batch: size for size, batches in enumerate(series._by_size) for batch in batches}
    assert sizes == {batch: len(own.values) for batch, own in series._batches.items()}


@pytest.mark.parametrize("jobs", [LATEST, 20 * LATEST])
def test_the_sample_of_a_batch_is_of_all_its_jobs_not_of_the_last_to_end(jobs: int) -> None:
    series = filled([(0, 0.0)] * 3 + [(1, float(place)) for place in range(jobs)])
    assert series.quantile(0.75, 0.0) == pytest.approx(jobs / 2, rel=0.25)


def test_a_large_batch_has_the_weight_of_a_power_of_its_jobs() -> None:
    values = [(0, 1.0)] * 16 + [(1, 2.0)]
    assert filled(values).quantile(0.49, 0.0) == 1.0 and filled(values).quantile(0.51, 0.0) == 2.0
    assert filled(values, power=0.5).quantile(0.79, 0.0) == 1.0 and filled(values, power=0.5).quantile(0.81, 0.0) == 2.0
    assert (
        filled(values, ageing=0.25).quantile(0.19, 0.0) == 1.0
        and filled(values, ageing=0.25).quantile(0.21, 0.0) == 2.0
    )
