"""The guard rail: forecasts that keep missing lose the say.

Rule: each contention model is judged on measured, given and predicted profiles apart, so that a guess which was wrong
condemns no model, and good guesses hide no model that is wrong. When the median error of the last `window` run times of
one such pair passes the bound, the fallback policy decides what is planned with profiles of that source, until the
median is back under half of the bound, so that it does not flap. A pair of which nothing was heard while others
foretold FORGOTTEN windows of jobs is forgotten: its return is judged anew.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Collection, Iterable
from typing import NamedTuple

FORGOTTEN = 10


class Judged(NamedTuple):
    """Whose forecasts are judged: a contention model's, with profiles of one source; "" = not recorded."""

    model: str = ""
    source: str = ""

    def __str__(self) -> str:
        return self.model + (f" on {self.source} profiles" if self.source else "")


def forecast_error(forecast: float, actual: float) -> float:
    """|forecast - actual| / actual, both in seconds; spans under 1 ms count as 1 ms."""
    return abs(forecast - actual) / max(actual, 1e-3)


class Guard:
    """Watches forecast errors and names the policy to use.

    Args:
        bound: median of |forecast - actual| / actual that is still trusted, > 0.
        window: errors of a pair that are looked at, and needed before the guard may trip, >= 1.
        fallback: the policy used while tripped.
        errors: (whose, error) of before a restart, the oldest first.
    """

    def __init__(
        self,
        *,
        bound: float,
        window: int,
        fallback: str,
        enabled: bool = True,
        errors: Iterable[tuple[Judged, float]] = (),
    ) -> None:
        self.bound, self.window, self.fallback, self.enabled = bound, window, fallback, enabled
        self._errors: dict[Judged, deque[float]] = {}
        self._heard: dict[Judged, int] = {}
        self._count = 0
        self._distrusted: set[Judged] = set()
        for whose, error in errors:
            self.add(error, whose)

    @property
    def distrusted(self) -> frozenset[Judged]:
        """Those whose forecasts keep missing."""
        return frozenset(self._distrusted)

    @property
    def tripped(self) -> bool:
        """Whether anything is distrusted."""
        return bool(self._distrusted)

    @property
    def worst(self) -> Judged:
        """Whose median error is the largest, of those that are distrusted if there are any."""
        known = sorted(self._distrusted or self._errors)
        return max(known, key=lambda whose: self.median(whose) or 0.0, default=Judged())

    def median(self, whose: Judged) -> float | None:
        """The median error of the latest forecasts, None while there is none."""
        return statistics.median(self._errors[whose]) if whose in self._errors else None

    def add(self, error: float, whose: Judged = Judged()) -> bool:
        """Take one more error in; returns whether its pair came to be distrusted or trusted by it."""
        before = whose in self._distrusted
        errors = self._errors.setdefault(whose, deque(maxlen=self.window))
        errors.append(error)
        self._count += 1
        self._heard[whose] = self._count
        median = statistics.median(errors)
        if median > self.bound and len(errors) == self.window:
            self._distrusted.add(whose)
        elif median <= self.bound / 2:
            self._distrusted.discard(whose)
        return self._forget() or (whose in self._distrusted) is not before

    def distrusts(self, sources: Collection[str]) -> bool:
        """Whether something is distrusted of a plan with profiles of these sources; of none, whether anything is."""
        return any(not (sources and whose.source) or whose.source in sources for whose in self._distrusted)

    def policy(self, wanted: str, sources: Collection[str]) -> str:
        """The policy to plan with for jobs whose profiles are of these sources."""
        return self.fallback if self.enabled and self.distrusts(sources) else wanted

    def _forget(self) -> bool:
        """Forget those of whom nothing was heard for long; whether one of them was distrusted."""
        before = len(self._distrusted)
        for whose, last in list(self._heard.items()):
            if self._count - last >= FORGOTTEN * self.window:
                del self._heard[whose], self._errors[whose]
                self._distrusted.discard(whose)
        return len(self._distrusted) < before
