"""The guard rail: forecasts that keep missing lose the say.

Rule: when the median error of the last `window` run-time forecasts passes the bound, the fallback policy
decides until the median is back under half of the bound, so that it does not flap.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable


def forecast_error(forecast: float, actual: float) -> float:
    """|forecast - actual| / actual, both in seconds; spans under 1 ms count as 1 ms."""
    return abs(forecast - actual) / max(actual, 1e-3)


class Guard:
    """Watches forecast errors and names the policy to use.

    Args:
        bound: median of |forecast - actual| / actual that is still trusted, > 0.
        window: errors that are looked at, and needed before the guard may trip, >= 1.
        fallback: the policy used while tripped.
        errors: those of before a restart, the oldest first.
    """

    def __init__(
        self, *, bound: float, window: int, fallback: str, enabled: bool = True, errors: Iterable[float] = ()
    ) -> None:
        self.bound, self.fallback, self.enabled = bound, fallback, enabled
        self.errors: deque[float] = deque(maxlen=window)
        self.tripped = False
        for error in errors:
            self.add(error)

    @property
    def median(self) -> float | None:
        """The median error, None while there is no error yet."""
        return statistics.median(self.errors) if self.errors else None

    def add(self, error: float) -> bool:
        """Take one more error in; returns whether the guard tripped or came back by it."""
        self.errors.append(error)
        before, median = self.tripped, statistics.median(self.errors)
        if self.tripped:
            self.tripped = median > self.bound / 2
        else:
            self.tripped = len(self.errors) == self.errors.maxlen and median > self.bound
        return self.tripped is not before

    def policy(self, wanted: str) -> str:
        """The policy to decide with."""
        return self.fallback if self.enabled and self.tripped else wanted
