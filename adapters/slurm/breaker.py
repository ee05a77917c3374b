"""A circuit breaker: who does not answer is left alone for a while, longer each time.

Rule: pure but for its clock and its dice. It opens after TRIPS answers in a row that came late or not at all, or after
one that was waited for in vain; then a single request tries, after a pause that doubles up to LONGEST_S, and an answer
closes it again. A late answer is an answer: where all come late, requests pass in short bursts, with growing pauses.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ..load import BreakerState

TRIPS = 3
#: seconds after which an answer is late
LATE_S = 5.0
#: pauses, seconds; each is drawn from its upper half, so that not all daemons of a site come back at once
FIRST_S, LONGEST_S = 2.0, 60.0


class Breaker:
    """Of one service.

    Args:
        clock: seconds, monotonic.
        draw: a number from [0, 1).
    """

    def __init__(self, clock: Callable[[], float], draw: Callable[[], float] = random.random) -> None:
        self._clock, self._draw = clock, draw
        self._bad, self._pauses, self._since = 0, 0, 0.0
        self._until: float | None = None
        self.why = ""

    @property
    def state(self) -> BreakerState:
        """What it lets pass now."""
        if self._until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock() < self._until else BreakerState.HALF_OPEN

    @property
    def open_s(self) -> float:
        """Seconds since it opened; 0 while it is closed."""
        return 0.0 if self._until is None else self._clock() - self._since

    @property
    def left_s(self) -> float:
        """Seconds until a request may try; 0 if it may now."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock())

    def answered(self, seconds: float) -> None:
        """An answer came after so many seconds, be it a refusal."""
        self._until = None
        if seconds <= LATE_S:
            self._bad = self._pauses = 0
        else:
            self._count(f"an answer took {seconds:.0f} s")

    def failed(self, seconds: float, why: str) -> None:
        """None came, and so many seconds were waited for it."""
        if seconds > LATE_S or self._until is not None:
            self._open(why)
        else:
            self._count(why)

    def _count(self, why: str) -> None:
        self._bad += 1
        if self._bad >= TRIPS:
            self._open(why)

    def _open(self, why: str) -> None:
        now = self._clock()
        pause = min(FIRST_S * 2.0 ** min(self._pauses, 16), LONGEST_S) * (0.5 + self._draw() / 2)
        self._since = now if self._until is None else self._since
        self._until, self._bad, self.why = now + pause, 0, why
        self._pauses += 1
