"""A budget of requests: what is not used is kept for at most a minute.

Rule: pure but for its clock. The last part is for reading only: when changes have used up theirs, the world can still
be seen.
"""

from __future__ import annotations

from collections.abc import Callable

#: share of a minute's requests that changes leave for reading
KEPT_FOR_READS = 0.1


class Budget:
    """So many requests a minute.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._most, self._clock = float(per_minute), clock
        self._left, self._at = self._most, clock()

    @property
    def left(self) -> float:
        """Requests that may be sent now."""
        return min(self._most, self._left + (self._clock() - self._at) * self._most / 60.0)

    def pause_s(self, *, read: bool) -> float:
        """Seconds until one more may be sent; 0 if it may now."""
        floor = 0.0 if read else KEPT_FOR_READS * self._most
        return max(0.0, floor + 1.0 - self.left) * 60.0 / self._most

    def spend(self) -> None:
        """One is sent."""
        self._left, self._at = self.left - 1.0, self._clock()
