"""Time series of a run: step functions (resources in use, waiting jobs), power, and rasters of rectangles.

Rule: a mean over an interval is the integral divided by its length, so means over any columns preserve the area. Power
is the derivative of the recorded energy, so both always agree; it is nan where nothing was measured. The shares of a
raster are exact: their sum over the grid is the area, however small a rectangle is. Rectangles without area still touch
a cell.
Method: the shares of a rectangle are an outer product whose differences along both axes are 16 numbers; they are summed
for all rectangles at once (summed-area table, Crow 1984).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from .recorded_run import Energy, Jobs, StateCounts


@dataclass(frozen=True, slots=True)
class StepFunction:
    """A step function: `values[i]` from `times[i]` on; 0 before the first time, constant after the last."""

    times: Array  # seconds, strictly ascending
    values: Array

    def mean_over(self, edges: Array) -> Array:
        """Return the mean between each two adjacent edges, which ascend. O(steps + edges log steps)."""
        if not len(self.times):
            return np.zeros(len(edges) - 1)
        area = np.concatenate([[0.0], np.cumsum(self.values[:-1] * np.diff(self.times))])
        last = np.searchsorted(self.times, edges, "right") - 1
        until = area[last] + self.values[last] * (edges - self.times[last])
        return np.diff(np.where(last >= 0, until, 0.0)) / np.diff(edges)

    def extremes_over(self, edges: Array) -> tuple[Array, Array]:
        """Return the least and the greatest value between each two adjacent edges. O(steps + edges log steps)."""
        values = np.concatenate([np.zeros(1, self.values.dtype), self.values, np.zeros(1, self.values.dtype)])
        first = np.searchsorted(self.times, edges[:-1], "right")
        after = np.maximum(np.searchsorted(self.times, edges[1:], "left") + 1, first + 1)
        bounds = np.stack([first, after], axis=1).ravel()
        low, high = (extreme.reduceat(values, bounds)[::2] for extreme in (np.minimum, np.maximum))
        return low, high


def changes(times: Array, by: Array) -> StepFunction:
    """Return the step function that sums all changes up to each time. O(n log n).

    Args:
        times: seconds of the changes.
        by: amounts of the changes.
    """
    at, place = np.unique(times, return_inverse=True)
    return StepFunction(at, np.cumsum(np.bincount(place, by, len(at)).round()).astype(np.int64))


def busy(jobs: Jobs) -> StepFunction:
    """Return the number of resources in use."""
    return _between(jobs.ran, jobs.start, jobs.finish, jobs.held)


def waiting(jobs: Jobs) -> StepFunction:
    """Return the number of waiting jobs; jobs that never started are ignored."""
    return _between(jobs.ran, jobs.submit, jobs.start, np.ones(len(jobs)))


def wanted(jobs: Jobs) -> StepFunction:
    """Return the number of resources that waiting jobs request."""
    return _between(jobs.ran, jobs.submit, jobs.start, jobs.size)


def _between(rows: Array, begin: Array, end: Array, by: Array) -> StepFunction:
    return changes(np.concatenate([begin[rows], end[rows]]), np.concatenate([by[rows], -by[rows]]))


def states(found: StateCounts) -> list[StepFunction]:
    """Return the number of machines in each of STATES; of several rows at one time the last counts."""
    last = np.append(np.diff(found.time) > 0, True)[: len(found.time)]
    return [StepFunction(found.time[last], counts) for counts in found.counts[last].T]


def joules_at(energy: Energy, times: Array) -> Array:
    """Return the joules consumed until each of the times, seconds; nan outside of the measured time."""
    if not len(energy.time):
        return np.full(len(times), np.nan)
    joules = np.interp(times, energy.time, energy.joules)
    joules[(times < energy.time[0]) | (times > energy.time[-1])] = np.nan
    return joules


def watts_over(energy: Energy, edges: Array) -> Array:
    """Return the mean power in watts between each two adjacent edges, over the measured part; nan without one."""
    if not len(energy.time):
        return np.full(len(edges) - 1, np.nan)
    inside = np.clip(edges, energy.time[0], energy.time[-1])
    durations, joules = np.diff(inside), np.diff(np.interp(inside, energy.time, energy.joules))
    return np.asarray(np.divide(joules, durations, out=np.full(len(durations), np.nan), where=durations > 0))


def shares(left: Array, right: Array, low: Array, high: Array, columns: int, rows: int) -> Array:
    """Return the filled share of each cell, [row, column]; it can exceed 1 where rectangles overlap. O(n + cells).

    Args:
        left: left edges of the rectangles in columns, 0 to `columns`.
        right: right edges in columns, 0 to `columns`.
        low: lower edges in rows, 0 to `rows`.
        high: upper edges in rows, 0 to `rows`.
        columns: width of the grid.
        rows: height of the grid.
    """
    return _summed(_edges(left, right), _edges(low, high), columns, rows)


def touches(left: Array, right: Array, low: Array, high: Array, columns: int, rows: int) -> Array:
    """Return the number of rectangles with a part, or a point, in each cell, [row, column]; `Args` as in `shares`."""
    return _summed(_cells(left, right, columns), _cells(low, high, rows), columns, rows).round().astype(np.int64)


def _edges(begin: Array, end: Array) -> list[tuple[Array, Array]]:
    """Return (cell, change of the share from the previous cell) of intervals."""
    first, last = np.floor(begin), np.floor(end)
    into, out = begin - first, end - last
    cells = [first.astype(np.int64), last.astype(np.int64)]
    return [(cells[0], 1 - into), (cells[0] + 1, into), (cells[1], out - 1), (cells[1] + 1, -out)]


def _cells(begin: Array, end: Array, most: int) -> list[tuple[Array, Array]]:
    """Return the same for whole cells."""
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
