"""A clock for ages that ignores jumps of the wall clock."""

from __future__ import annotations

import math


class AgeClock:
    """A clock for the age of ended jobs: setting the wall clock forward does not make them older."""

    def __init__(self) -> None:
        self._least_offset_s = math.inf

    def read(self, wall: float, now: float) -> float:
        """Return the time, epoch seconds: never after `wall`, and it never advances faster than `now`.

        Args:
            wall: time of the wall clock, which may be set, epoch seconds.
            now: monotonic seconds.
        """
        self._least_offset_s = min(self._least_offset_s, wall - now)
        return now + self._least_offset_s
