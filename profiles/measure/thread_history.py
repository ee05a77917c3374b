"""The course of a thread: how its core time and its waiting grew.

Rule: it is kept as sums, so that readings can be left out without losing any time; a long run costs no more memory
than a short one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
#: Points that are kept of a thread; with more, every second one is left out and points come half as often.
MOST_POINTS = 512


class Course:
    """(time, core time, waiting) of a thread, seconds, at its readings; times rise."""

    __slots__ = ("_every", "_last", "_points", "_skipped")

    def __init__(self) -> None:
        self._points: list[tuple[float, float, float]] = []
        self._last: tuple[float, float, float] | None = None
        self._every, self._skipped = 1, 0

    def add(self, at: float, on_s: float, wait_s: float) -> None:
        """Take one more reading in. O(1) on average."""
        self._last = (at, on_s, wait_s)
        self._skipped += 1
        if self._skipped < self._every and self._points:
            return
        self._points.append(self._last)
        self._skipped = 0
        if len(self._points) >= MOST_POINTS:
            del self._points[1::2]
            self._every *= 2

    def at(self, times: Any) -> tuple[Array, Array]:
        """Return core time and waiting until each of these times; nothing before the first reading."""
        points = self._points
        if self._last is not None and points[-1] != self._last:
            points = [*points, self._last]
        if not points:
            return np.zeros(len(times)), np.zeros(len(times))
        when, on, wait = np.array(points).T
        return np.interp(times, when, on), np.interp(times, when, wait)
