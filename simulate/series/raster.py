"""Rectangles on a grid of cells: what share of each cell they fill, and which cells they touch.

Rule: shares are exact, also where rectangles are far smaller than a cell: their sum over the grid is the area. A cell
is touched by a rectangle that has no area too, so that every rectangle leaves a trace.
Method: a rectangle's shares are an outer product, whose differences along both axes are 16 numbers; they are summed up
for all rectangles at once (summed-area table, Crow 1984).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def shares(left: Array, right: Array, low: Array, high: Array, columns: int, rows: int) -> Array:
    """The share of each cell that is filled, [row, column]; where rectangles overlap it can exceed 1. O(n + cells).

    Args:
        left, right: in columns, 0 to `columns`; low, high: in rows, 0 to `rows`.
    """
    return _summed(_edges(left, right), _edges(low, high), columns, rows)


def touches(left: Array, right: Array, low: Array, high: Array, columns: int, rows: int) -> Array:
    """How many rectangles have a part, or a point, in each cell, [row, column]. O(n + cells)."""
    return _summed(_cells(left, right, columns), _cells(low, high, rows), columns, rows).round().astype(np.int64)


def _edges(begin: Array, end: Array) -> list[tuple[Array, Array]]:
    """(cell, change of the share from the cell before) of intervals."""
    first, last = np.floor(begin), np.floor(end)
    into, out = begin - first, end - last
    cells = [first.astype(np.int64), last.astype(np.int64)]
    return [(cells[0], 1 - into), (cells[0] + 1, into), (cells[1], out - 1), (cells[1] + 1, -out)]


def _cells(begin: Array, end: Array, most: int) -> list[tuple[Array, Array]]:
    """As `_edges`, for whole cells."""
    first = np.minimum(np.floor(begin), most - 1).astype(np.int64)
    after = np.maximum(np.ceil(end).astype(np.int64), first + 1)
    return [(first, np.ones(len(first))), (after, -np.ones(len(after)))]


def _summed(across: list[tuple[Array, Array]], up: list[tuple[Array, Array]], columns: int, rows: int) -> Array:
    wide, high = columns + 2, rows + 2
    grid = np.zeros(wide * high)
    for row, by_row in up:
        for column, by_column in across:
            grid += np.bincount(row * wide + column, by_row * by_column, len(grid))
    return grid.reshape(high, wide).cumsum(axis=0).cumsum(axis=1)[:rows, :columns]
