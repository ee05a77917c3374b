"""Breathing: clients are answered between two parts of a cycle, two steps of a plan, or of a forecast of the queue.

Rule: answers take at most half of the time, so that clients cannot keep a plan from its end.
"""

from __future__ import annotations

from collections.abc import Callable

#: Least time between two looks at the clients, seconds.
BREATH_S = 0.05


class Breathing:
    """Serves clients now and then.

    Args:
        serve: answers them, without blocking.
        clock: seconds, monotonic.
    """

    def __init__(self, serve: Callable[[], object], clock: Callable[[], float]) -> None:
        self._serve, self._clock, self._due = serve, clock, 0.0

    def __call__(self) -> None:
        """Serve them if it is time to."""
        began = self._clock()
        if began >= self._due:
            self._serve()
            ended = self._clock()
            self._due = ended + max(BREATH_S, ended - began)
