"""The controller's clock, by which every time is read that decides about a job.

Rule: it is asked rarely, and a monotonic clock carries it on, so that a step of this machine's clock changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

#: Seconds between two requests for the controller's time.
CLOCK_EVERY_S = 300.0


class ControllerClock:
    """The controller's clock: `ask` requests it, epoch seconds; `clock` is monotonic, seconds, and carries it on."""

    def __init__(self, ask: Callable[[], float], clock: Callable[[], float]) -> None:
        self._ask, self._clock = ask, clock
        self._offset, self._asked_at = 0.0, float("-inf")

    @property
    def due(self) -> bool:
        """True if `now` will send a request."""
        return self._clock() - self._asked_at > CLOCK_EVERY_S

    def now(self) -> float:
        """Return the time, epoch seconds. Raises AdapterError if it was never known and cannot be read."""
        if self.due:
            began = self._clock()
            answer = self._ask()
            self._asked_at = self._clock()
            self._offset = answer + 0.5 - (began + self._asked_at) / 2  # Slurm answers in whole seconds
        return self._clock() + self._offset
