"""The time that a thread used its core and waited for it, as readings of a run.

Rule: the points are sums, so that dropping some loses no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
#: Most points of a thread's history; beyond it every second one is dropped and the sampling interval doubles.
MOST_POINTS = 512


class ThreadHistory:
    """(time, core time, waiting time) of a thread, seconds, at its readings; times increase."""

    __slots__ = ("_every", "_last", "_points", "_skipped")

    def __init__(self) -> None:
        self._points: list[tuple[float, float, float]] = []
        self._last: tuple[float, float, float] | None = None
        self._every, self._skipped = 1, 0

    def add(self, at: float, on_s: float, wait_s: float) -> None:
        """Add a reading. O(1) on average."""
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
        """Return core time and waiting time until each of these times; 0 before the first reading."""
        import numpy as np  # which only the end of a run needs, and takes long to import

        points = self._points
        if self._last is not None and points[-1] != self._last:
            points = [*points, self._last]
        if not points:
            return np.zeros(len(times)), np.zeros(len(times))
        when, on, wait = np.array(points).T
        return np.interp(times, when, on), np.interp(times, when, wait)
