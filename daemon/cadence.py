"""When the next cycle begins: at a fixed cadence, or earlier when something has happened.

Rule: times are seconds of one monotonic clock. Whatever is heard, and however often, cycles that it causes take at most
a share of LARGEST_SHARE of the time, so that a busy site is not asked without a pause.
"""

from __future__ import annotations

import math

#: Least seconds between the starts of two cycles.
LEAST_GAP_S = 0.02
#: Seconds from an event to the looks at what it was: Slurm reports the end of a job on one node 30 to 100 ms before the
#: node is free (measured, 22.05), and that of a cancelled job on several nodes seconds before.
LOOKS_S = (0.05, 0.3, 1.0, 3.0, 10.0)
LARGEST_SHARE = 0.25


class Cadence:
    """Says when the next cycle is due.

    Args:
        every_s: seconds between the starts of two cycles if nothing happens.
    """

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self._began, self._gap_s = -math.inf, LEAST_GAP_S
        self._looks: list[float] = []

    def begin(self, now: float) -> None:
        """Note the start of a cycle."""
        self._began = now
        self._looks = [look for look in self._looks if look > now]

    def end(self, now: float) -> None:
        """Note the end of a cycle."""
        self._gap_s = max(LEAST_GAP_S, (now - self._began) / LARGEST_SHARE)

    def hear(self, now: float) -> None:
        """Note that something has happened in the resource manager."""
        self._looks = [*self._looks[:1], *(now + after for after in LOOKS_S if after < self.every_s)]

    def due(self, *, changed: bool) -> float:
        """Return when the next cycle is due; `changed`: the daemon itself has something new to plan."""
        if changed:
            return self._began + LEAST_GAP_S
        look = max(self._looks[0], self._began + self._gap_s) if self._looks else math.inf
        return min(self._began + self.every_s, look)
