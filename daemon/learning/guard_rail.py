"""The guard: contention models whose forecasts keep missing are overruled by the fallback policy.

Rule: each model is judged separately on measured, given and predicted profiles, so that a wrong guess condemns no model
and good guesses hide no wrong model. If the median error of the last `window` run times of a forecaster passes the
bound, the fallback policy plans jobs with profiles of that source until the median is under half of the bound
(hysteresis). A forecaster without a job while others had FORGOTTEN windows of them starts over. The jobs of one user
have at most half of the weight while jobs of others ended, too, so that no user alone makes the guard trip.
"""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter

from ...simulate.model.bounded import turns
from ..state.forecasts import Forecaster

FORGOTTEN = 10


class Guard:
    """Watches forecast errors and names the policy to use.

    Args:
        bound: median error that is still trusted, > 0; an error is a factor less one, 0.5 for 1.5 times.
        window: errors of a forecaster that are considered, and needed before the guard may trip, >= 1.
        fallback: the policy used while tripped.
        enabled: False watches, but never overrules a policy.
        errors: (forecaster, error, uid of the job's user) from before a restart, the oldest first.
    """

    def __init__(
        self,
        *,
        bound: float,
        window: int,
        fallback: str,
        enabled: bool = True,
        errors: Iterable[tuple[Forecaster, float, int | None]] = (),
    ) -> None:
        self.bound, self.window, self.fallback, self.enabled = bound, window, fallback, enabled
        self._errors: dict[Forecaster, deque[tuple[int | None, float]]] = {}
        self._last_seen: dict[Forecaster, int] = {}
        self._count = 0
        self._distrusted: set[Forecaster] = set()
        #: The policy that decides in place of a learned one, and why; None: none does.
        self.overruled_model: tuple[str, str] | None = None
        for forecaster, error, user in errors:
            self.add(error, forecaster, user)

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
        """Return the median of the errors in the window, None without any."""
        return _median(_in_turns(self._errors[forecaster], self.window)) if forecaster in self._errors else None

    def medians(self) -> dict[Forecaster, float]:
        """Return the median error of each forecaster with errors."""
        return {forecaster: self.median(forecaster) or 0.0 for forecaster in sorted(self._errors)}

    @property
    def judged(self) -> int:
        """Errors that were added so far."""
        return self._count

    def add(self, error: float, forecaster: Forecaster = Forecaster(), user: int | None = None) -> bool:
        """Add an error. Return whether a forecaster came to be distrusted or trusted by it.

        Args:
            error: of a run time, >= 0.
            forecaster: whose forecast it was.
            user: uid of the job's user; those that are not known count as one.
        """
        before = forecaster in self._distrusted
        self._errors.setdefault(forecaster, deque(maxlen=FORGOTTEN * self.window)).append((user, error))
        self._count += 1
        self._last_seen[forecaster] = self._count
        errors = _in_turns(self._errors[forecaster], self.window)
        median = _median(errors)
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

    def overrules(self, policy: str) -> bool:
        """Return whether a plan of this policy was made because forecasts are distrusted."""
        in_place = self.enabled and self.overruled_model is not None and policy == self.overruled_model[0]
        return in_place or (self.enabled and self.tripped and policy == self.fallback)

    def instead_of_model(self, wanted: str) -> str:
        """Return the queue policy to plan with; `wanted` is the configured one."""
        return self.overruled_model[0] if self.enabled and self.overruled_model is not None else wanted

    def _forget(self) -> bool:
        """Forget forecasters without a job for long. Return whether one of them was distrusted."""
        before = len(self._distrusted)
        for forecaster, last in list(self._last_seen.items()):
            if self._count - last >= FORGOTTEN * self.window:
                del self._last_seen[forecaster], self._errors[forecaster]
                self._distrusted.discard(forecaster)
        return len(self._distrusted) < before


def _in_turns(errors: Sequence[tuple[int | None, float]], most: int) -> list[tuple[int | None, float]]:
    """Return the latest errors, of all users in turns; `errors` are (user, error), the oldest first."""
    return [errors[place] for place in turns([user for user, _ in errors])[:most]]


def _median(errors: Sequence[tuple[int | None, float]]) -> float:
    """Return the median of (user, error), where no user has more weight than all others together."""
    counts = Counter(user for user, _ in errors)
    if len(counts) == 1:
        return statistics.median(error for _, error in errors)
    weights = {user: min(1.0, (len(errors) - number) / number) for user, number in counts.items()}
    weight_left = sum(weights[user] for user, _ in errors) / 2 - 1e-9
    for user, error in sorted(errors, key=itemgetter(1)):
        weight_left -= weights[user]
        if weight_left <= 0.0:
            return error
    raise AssertionError("there is an error")
