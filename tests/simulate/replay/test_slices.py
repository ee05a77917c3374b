"""Slices of a replay are as long as the last one lets expect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.batch.pace import FIRST, GROWTH, MOST, WANTED_S, next_slice


@given(st.integers(1, MOST), st.floats(0, 1e9))
def test_a_slice_is_never_nothing_and_never_too_much(instants: int, spent: float) -> None:
    size = next_slice(instants, spent)
    assert 1 <= size <= min(MOST, instants * GROWTH)
    assert size == 1 or spent * size / instants <= WANTED_S * 1.001


@pytest.mark.parametrize("cost", [3e-9, 1e-6, 1e-3, 0.09, 7.0])
def test_whatever_an_instant_costs_a_slice_soon_takes_what_is_wanted(cost: float) -> None:
    size, spent = FIRST, 0.0
    for _ in range(10):
        spent = size * cost
        size = next_slice(size, spent)
    assert size == 1 or size == MOST or WANTED_S / 2 < size * cost <= WANTED_S * 1.001


def test_what_becomes_slow_is_asked_for_less_at_once() -> None:
    assert next_slice(1_000_000, 20.0) == 5_000


def test_where_nobody_measures_slices_grow_to_the_most() -> None:
    assert [next_slice(1, 0.0), next_slice(8, 0.0), next_slice(MOST, 0.0)] == [8, 64, MOST]
