"""The controller's clock.

Rule: every time that decides something about a job is Slurm's. Its offset is asked for rarely and carried on by a
monotonic clock, so that stepping this machine's clock moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable

ASK_EVERY_S = 300.0


class ControllerClock:
    """Tells the controller's time.

    Args:
        ask: one request for it, epoch seconds.
        clock: seconds, monotonic.
    """

    def __init__(self, ask: Callable[[], float], clock: Callable[[], float]) -> None:
        self._ask, self._clock = ask, clock
        self._offset, self._asked = 0.0, float("-inf")

    @property
    def due(self) -> bool:
        """Whether `now` is going to ask."""
        return self._clock() - self._asked > ASK_EVERY_S

    def now(self) -> float:
        """Epoch seconds. Raises AdapterError while it has never been known and cannot be asked for."""
        if self.due:
            began = self._clock()
            told = self._ask()
            self._asked = self._clock()
            self._offset = told + 0.5 - (began + self._asked) / 2  # it is told in whole seconds
        return self._clock() + self._offset
