"""Rectangles of a Gantt chart on a raster of cells, and where their names fit.

Rule: a darker cell is busier. A cell that any job touches has at least `FAINTEST` of its ink, so that no job is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...formats.text import fit, width
from ...simulate.results.timeseries import shares, touches
from .colours import rgb
from .figure import Boxes, Panel

#: Most rectangles that are drawn one by one, least ink of a touched cell, most names in a chart.
FEW, FAINTEST, MOST_NAMES = 2000, 0.3, 400
#: Cells of the shortest shortened name.
LEAST_NAME = 5


def busy_cells(panel: Panel, boxes: Boxes, columns: int, rows: int) -> tuple[Any, Any, Any]:
    """Return what share of each cell is busy, which cells are touched, and their mixed colour (0..255).

    All results are [row, column], the lowest row first. O(rectangles + cells).

    Args:
        panel: its axes give the area of the raster.
        boxes: the rectangles.
        columns: width of the raster, cells.
        rows: height of the raster, cells.
    """
    (begin, end), (floor, top) = panel.x_range, panel.y_range
    placed = (panel.x.place(x) for x in (boxes.left, boxes.right))
    across = [(np.clip(x, begin, end) - begin) * (columns / (end - begin)) for x in placed]
    up = [(y - floor) * (rows / (top - floor)) for y in (boxes.low, boxes.high)]
    begins, ends, low, high = (edges.round(9) for edges in (*across, *up))  # an end at an edge ends there
    colour = np.zeros((rows, columns, 3))
    share, weight = np.zeros((rows, columns)), np.zeros((rows, columns))
    for number in np.unique(boxes.fill).tolist():
        chosen = boxes.fill == number
        box: tuple[Any, ...] = (begins[chosen], ends[chosen], low[chosen], high[chosen], columns, rows)
        touching = touches(*box)
        part = np.where(touching > 0, np.maximum(shares(*box), 0.0), 0.0)
        inked = part + 1e-6 * touching
        colour += inked[:, :, np.newaxis] * np.array(rgb(boxes.colours[number]))
        share, weight = share + part, weight + inked
    touched = weight > 0
    return np.minimum(share, 1.0), touched, colour / np.where(touched, weight, 1.0)[:, :, np.newaxis]


def cells(panel: Panel, boxes: Boxes, columns: int, rows: int) -> npt.NDArray[np.uint8]:
    """Return red, green and blue of each cell, the lowest resource in the last row."""
    share, touched, colour = busy_cells(panel, boxes, columns, raster_rows(panel, rows))
    ink = np.where(touched, FAINTEST + (1.0 - FAINTEST) * share, 0.0)[:, :, np.newaxis]
    image: npt.NDArray[np.uint8] = (colour * ink + 255.0 * (1.0 - ink)).round().astype(np.uint8)[::-1]
    return image


def raster_rows(panel: Panel, rows: int) -> int:
    """Return the rows of a raster: no more than resources, or lanes."""
    return max(1, min(rows, int(panel.y_range[1])))


def names(panel: Panel, boxes: Boxes, wide: float, high: float, cell: tuple[float, float]) -> Iterator[tuple[int, str]]:
    """Yield rectangles (their numbers) with the names that fit, largest rectangles first.

    Args:
        panel: in named rows each rectangle has its name, shortened if need be; else each job has it once, in full.
        boxes: the rectangles.
        wide: width of the panel, in any unit.
        high: height of the panel, in the same unit.
        cell: width and height of a character, in the same unit.
    """
    (begin, end), (floor, top) = panel.x_range, panel.y_range
    begins, ends = (np.clip(panel.x.place(x), begin, end) for x in (boxes.left, boxes.right))
    long, tall = (ends - begins) * wide / (end - begin), (boxes.high - boxes.low) * high / (top - floor)
    written: set[int] = set()
    for i in np.argsort(-long * tall, kind="stable").tolist():
        job = int(boxes.job[i])
        if len(written) == MOST_NAMES:
            return
        name, room = boxes.names[job], int(long[i] / cell[0]) - 1
        least = min(LEAST_NAME, width(name)) if panel.rows else width(name)
        if tall[i] > cell[1] and room >= least and (key := i if panel.rows else job) not in written:
            written.add(key)
            yield i, fit(name, room)
