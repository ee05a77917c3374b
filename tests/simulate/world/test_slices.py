"""Slices of a replay are sized by the duration of the last one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.world.slices import FIRST, GROWTH, MOST, TARGET_S, next_slice


@given(st.integers(1, MOST), st.floats(0, 1e9))
def test_slices_are_within_their_bounds(instants: int, spent: float) -> None:
    size = next_slice(instants, spent)
    assert 1 <= size <= min(MOST, instants * GROWTH)
    assert size == 1 or spent * size / instants <= TARGET_S * 1.001


@pytest.mark.parametrize("cost", [3e-9, 1e-6, 1e-3, 0.09, 7.0])
def test_slices_converge_to_the_target_duration(cost: float) -> None:
    size, spent = FIRST, 0.0
    for _ in range(10):
        spent = size * cost
        size = next_slice(size, spent)
    assert size == 1 or size == MOST or TARGET_S / 2 < size * cost <= TARGET_S * 1.001


def test_slices_shrink_at_once_when_instants_become_slow() -> None:
    assert next_slice(1_000_000, 20.0) == 5_000


def test_slices_grow_to_the_maximum_if_not_measured() -> None:
    assert [next_slice(1, 0.0), next_slice(8, 0.0), next_slice(MOST, 0.0)] == [8, 64, MOST]
