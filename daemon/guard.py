"""The guard rail: forecasts that keep missing lose the say.

Rule: when the median error of the last `window` run-time forecasts by one contention model passes the bound, the
fallback policy decides until that is back under half of the bound, so that it does not flap. A model that has foretold
nothing while others foretold FORGOTTEN windows of jobs is forgotten: its return is judged anew.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable

FORGOTTEN = 10


def forecast_error(forecast: float, actual: float) -> float:
    """|forecast - actual| / actual, both in seconds; spans under 1 ms count as 1 ms."""
    return abs(forecast - actual) / max(actual, 1e-3)


class Guard:
    """Watches forecast errors and names the policy to use.

    Args:
        bound: median of |forecast - actual| / actual that is still trusted, > 0.
        window: errors of a model that are looked at, and needed before the guard may trip, >= 1.
        fallback: the policy used while tripped.
        errors: (model, error) of before a restart, the oldest first.
    """

    def __init__(
        self,
        *,
        bound: float,
        window: int,
        fallback: str,
        enabled: bool = True,
        errors: Iterable[tuple[str, float]] = (),
    ) -> None:
        self.bound, self.window, self.fallback, self.enabled = bound, window, fallback, enabled
        self._errors: dict[str, deque[float]] = {}
        self._heard: dict[str, int] = {}
        self._count = 0
        self._distrusted: set[str] = set()
        for model, error in errors:
            self.add(error, model)

    @property
    def tripped(self) -> bool:
        """Whether a model is distrusted."""
        return bool(self._distrusted)

    @property
    def model(self) -> str:
        """The model with the largest median error, of those that are distrusted if there are any; "" without errors."""
        return max(self._distrusted or self._errors, key=self._median, default="")

    @property
    def median(self) -> float | None:
        """The median error of `model`, None while there is no error yet."""
        return self._median(self.model) if self._errors else None

    def add(self, error: float, model: str = "") -> bool:
        """Take one more error of a model in; returns whether the guard tripped or came back by it."""
        before = self.tripped
        errors = self._errors.setdefault(model, deque(maxlen=self.window))
        errors.append(error)
        self._count += 1
        self._heard[model] = self._count
        median = self._median(model)
        if median > self.bound and len(errors) == self.window:
            self._distrusted.add(model)
        elif median <= self.bound / 2:
            self._distrusted.discard(model)
        self._forget()
        return self.tripped is not before

    def policy(self, wanted: str) -> str:
        """The policy to decide with."""
        return self.fallback if self.enabled and self.tripped else wanted

    def _median(self, model: str) -> float:
        return statistics.median(self._errors[model])

    def _forget(self) -> None:
        for model, last in list(self._heard.items()):
            if self._count - last >= FORGOTTEN * self.window:
                del self._heard[model], self._errors[model]
                self._distrusted.discard(model)
