"""Rectangles that are too many, or too small, to be drawn one by one: a picture of cells.

Rule: how dark a cell is tells what share of it is busy; a cell that any job touches has at least FAINTEST of its ink,
so that no job is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.series.raster import shares, touches
from .palette import FILLS, rgb
from .panels import Panel, Rectangles

#: Rectangles that are drawn one by one.
FEW = 2000
#: The least ink of a cell that a job touches.
FAINTEST = 0.3


def cells(panel: Panel, bars: Rectangles, columns: int, rows: int) -> npt.NDArray[np.uint8]:
    """Red, green, blue of each cell, the lowest resource in the last row. O(rectangles + cells)."""
    assert panel.y is not None and panel.y[1] is not None
    begin, end = panel.x
    rows = min(rows, int(panel.y[1]))
    across = [(np.clip(x, begin, end) - begin) * (columns / (end - begin)) for x in (bars.left, bars.right)]
    up = [y * (rows / panel.y[1]) for y in (bars.low, bars.high)]
    left, right, low, high = (each.round(9) for each in (*across, *up))  # what ends at an edge ends there
    colour = np.zeros((rows, columns, 3))
    share, weight = np.zeros((rows, columns)), np.zeros((rows, columns))
    for number in np.unique(bars.fill).tolist():
        chosen = bars.fill == number
        box: tuple[Any, ...] = (left[chosen], right[chosen], low[chosen], high[chosen], columns, rows)
        touching = touches(*box)
        part = np.where(touching > 0, np.maximum(shares(*box), 0.0), 0.0)
        said = part + 1e-6 * touching
        colour += said[:, :, np.newaxis] * np.array(rgb(FILLS[number]))
        share, weight = share + part, weight + said
    touched = weight > 0
    ink = np.where(touched, FAINTEST + (1.0 - FAINTEST) * np.minimum(share, 1.0), 0.0)[:, :, np.newaxis]
    mixed = colour / np.where(touched, weight, 1.0)[:, :, np.newaxis]
    return (mixed * ink + 255.0 * (1.0 - ink)).round().astype(np.uint8)[::-1]
