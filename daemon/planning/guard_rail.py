"""The guard: contention models whose forecasts keep missing are overruled by the fallback policy.

Rule: each model is judged separately on measured, given and predicted profiles, so that a wrong guess condemns no model
and good guesses hide no wrong model. If the median error of the last `window` run times of a forecaster passes the
bound, the fallback policy plans jobs with profiles of that source until the median is under half of the bound
(hysteresis). A forecaster without a job while others had FORGOTTEN windows of them starts over.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Collection, Iterable
from typing import NamedTuple

FORGOTTEN = 10


class Forecaster(NamedTuple):
    """The basis on which forecasts are judged: a contention model with profiles of one source; "" = not recorded."""

    model: str = ""
    source: str = ""

    def __str__(self) -> str:
        return self.model + (f" on {self.source} profiles" if self.source else "")


class Guard:
    """Watches forecast errors and names the policy to use.

    Args:
        bound: median error that is still trusted, > 0; an error is a factor less one, 0.5 for 1.5 times.
        window: errors of a forecaster that are considered, and needed before the guard may trip, >= 1.
        fallback: the policy used while tripped.
        enabled: False watches, but never overrules a policy.
        errors: (forecaster, error) from before a restart, the oldest first.
    """

    def __init__(
        self,
        *,
        bound: float,
        window: int,
        fallback: str,
        enabled: bool = True,
        errors: Iterable[tuple[Forecaster, float]] = (),
    ) -> None:
        self.bound, self.window, self.fallback, self.enabled = bound, window, fallback, enabled
        self._errors: dict[Forecaster, deque[float]] = {}
        self._last_seen: dict[Forecaster, int] = {}
        self._count = 0
        self._distrusted: set[Forecaster] = set()
        for forecaster, error in errors:
            self.add(error, forecaster)

    @property
    def distrusted(self) -> frozenset[Forecaster]:
        """The forecasters that keep missing."""
        return frozenset(self._distrusted)

    @property
    def tripped(self) -> bool:
        """True if any forecaster is distrusted."""
        return bool(self._distrusted)

    @property
    def worst(self) -> Forecaster:
        """The forecaster with the largest median error; a distrusted one if there is any."""
        candidates = sorted(self._distrusted or self._errors)
        return max(candidates, key=lambda forecaster: self.median(forecaster) or 0.0, default=Forecaster())

    def median(self, forecaster: Forecaster) -> float | None:
        """Return the median of the latest errors, None without any."""
        return statistics.median(self._errors[forecaster]) if forecaster in self._errors else None

    def add(self, error: float, forecaster: Forecaster = Forecaster()) -> bool:
        """Add an error, >= 0. Return whether a forecaster came to be distrusted or trusted by it."""
        before = forecaster in self._distrusted
        errors = self._errors.setdefault(forecaster, deque(maxlen=self.window))
        errors.append(error)
        self._count += 1
        self._last_seen[forecaster] = self._count
        median = statistics.median(errors)
        if median > self.bound and len(errors) == self.window:
            self._distrusted.add(forecaster)
        elif median <= self.bound / 2:
            self._distrusted.discard(forecaster)
        return self._forget() or (forecaster in self._distrusted) is not before

    def distrusts(self, sources: Collection[str]) -> bool:
        """Return whether a plan with profiles of these sources is distrusted; without sources, whether anything is."""
        return any(
            not (sources and forecaster.source) or forecaster.source in sources for forecaster in self._distrusted
        )

    def policy(self, wanted: str, sources: Collection[str]) -> str:
        """Return the policy to plan with.

        Args:
            wanted: the configured policy.
            sources: of the profiles of the jobs to plan.
        """
        return self.fallback if self.enabled and self.distrusts(sources) else wanted

    def _forget(self) -> bool:
        """Forget forecasters without a job for long. Return whether one of them was distrusted."""
        before = len(self._distrusted)
        for forecaster, last in list(self._last_seen.items()):
            if self._count - last >= FORGOTTEN * self.window:
                del self._last_seen[forecaster], self._errors[forecaster]
                self._distrusted.discard(forecaster)
        return len(self._distrusted) < before
