"""Rasters of rectangles preserve the area, and every rectangle touches a cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.results.timeseries import shares, touches

WIDE, HIGH = 13, 7
#: Two positions on an axis, among them edges of cells and positions much closer than a cell.
ACROSS, UP = (
    st.tuples(*[st.one_of(st.floats(0, most), st.integers(0, most).map(float)) for _ in range(2)]).map(sorted)
    for most in (WIDE, HIGH)
)
BOXES = st.lists(st.tuples(ACROSS, UP), min_size=1, max_size=20)


def columns(
    boxes: list[tuple[list[float], list[float]]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    across, up = np.array([box[0] for box in boxes]), np.array([box[1] for box in boxes])
    return across[:, 0], across[:, 1], up[:, 0], up[:, 1]


@settings(deadline=None)
@given(BOXES)
def test_shares_are_exact_and_preserve_the_area(boxes: list[tuple[list[float], list[float]]]) -> None:
    left, right, low, high = columns(boxes)
    found = shares(left, right, low, high, WIDE, HIGH)
    assert found.shape == (HIGH, WIDE)
    assert found.sum() == pytest.approx(((right - left) * (high - low)).sum(), abs=1e-9)
    for row in range(HIGH):
        for column in range(WIDE):
            across = np.clip(right, column, column + 1) - np.clip(left, column, column + 1)
            up = np.clip(high, row, row + 1) - np.clip(low, row, row + 1)
            assert found[row, column] == pytest.approx((across * up).sum(), abs=1e-9)


@settings(deadline=None)
@given(BOXES)
def test_rectangles_touch_their_cells(boxes: list[tuple[list[float], list[float]]]) -> None:
    found = shares(*columns(boxes), WIDE, HIGH)
    touched = touches(*columns(boxes), WIDE, HIGH)
    assert (touched[found > 1e-9] > 0).all() and touched.max() <= len(boxes)
    for left, right, low, high in zip(*columns(boxes), strict=True):
        column, row = min(int((left + right) / 2), WIDE - 1), min(int((low + high) / 2), HIGH - 1)
        assert touched[row, column] > 0
    assert touches(*columns(boxes[:1]), WIDE, HIGH).max() == 1


def test_a_rectangle_much_smaller_than_a_cell_is_preserved() -> None:
    left, right, low, high = (np.array([value]) for value in (3.5, 3.5 + 1e-6, 2.25, 2.25 + 1e-6))
    assert shares(left, right, low, high, WIDE, HIGH).sum() == pytest.approx(1e-12, rel=1e-3)
    assert np.argwhere(touches(left, right, low, high, WIDE, HIGH)).tolist() == [[2, 3]]
