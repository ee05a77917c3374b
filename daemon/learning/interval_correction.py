"""Prediction intervals corrected by what came true: adaptive conformal prediction for each profile.

Rule: the interval of a plan covers what is known of a job's needs, not what else makes forecasts miss. Once enough jobs
of a profile have ended, the interval of its next job is that of their errors: as wide as it must be for LEVEL of them
to end inside, and adapted after each job. Errors are logarithms of actual over forecast run time.
Source: Gibbs and Candes, "Adaptive conformal inference under distribution shift" (NeurIPS 2021); the finite-sample
quantile is that of Vovk, Gammerman and Shafer, "Algorithmic learning in a random world" (2005).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from ...simulate.model.job import DEFAULT_PROFILE
from ...simulate.model.plan import LEVEL, PlannedJob, PredictionInterval

#: Jobs of a profile from which on its intervals are corrected, and the latest ones that count.
ENOUGH, LATEST = 10, 100
#: Profiles that are remembered; the one that ended longest ago is forgotten first.
MOST_PROFILES = 2000
#: How much a miss moves the quantile, and the bounds within which it stays.
_STEP, _LEAST, _MOST = 0.02, 0.5, 0.995
#: No end is known more exactly than this, as a logarithm.
_NARROWEST = math.log(1.01)


class _Tail:
    """One side of the interval: the quantile of the errors on that side, adapted to how often it was exceeded."""

    def __init__(self) -> None:
        self._share = (1.0 - LEVEL) / 2  # of the jobs that may end beyond it
        self._quantile = 1.0 - self._share

    def reach(self, errors: Iterable[float]) -> float:
        """Return the bound of the next error, at least that of the narrowest interval."""
        ordered = sorted(errors)
        rank = math.ceil(self._quantile * (len(ordered) + 1)) - 1
        return max(_NARROWEST, ordered[min(rank, len(ordered) - 1)])

    def learn(self, error: float, bound: float) -> None:
        """Adapt the quantile to an error."""
        missed = float(error > bound) - self._share
        self._quantile = min(_MOST, max(_LEAST, self._quantile + _STEP * missed))


class _Errors:
    """The errors of the jobs of one profile."""

    def __init__(self) -> None:
        self._errors: deque[float] = deque(maxlen=LATEST)
        self._shorter, self._longer = _Tail(), _Tail()
        #: Bounds of the next error, below and above 0; None: too few jobs have ended.
        self.bounds: tuple[float, float] | None = None

    def learn(self, error: float) -> None:
        """Note the error of a job. O(LATEST log LATEST)."""
        if self.bounds is not None:
            self._shorter.learn(-error, -self.bounds[0])
            self._longer.learn(error, self.bounds[1])
        self._errors.append(error)
        if len(self._errors) >= ENOUGH:
            self.bounds = -self._shorter.reach(-each for each in self._errors), self._longer.reach(self._errors)


class IntervalCorrection:
    """Corrects the intervals of planned jobs.

    Args:
        past: profile, forecast and actual run time, seconds, of jobs that ended before, the oldest first.
    """

    def __init__(self, past: Iterable[tuple[str | None, float, float]] = ()) -> None:
        self._profiles: dict[str, _Errors] = {}
        for profile, forecast_s, actual_s in past:
            self.learn(profile, forecast_s, actual_s)

    def learn(self, profile: str | None, forecast_s: float, actual_s: float) -> None:
        """Note a job that has ended; one whose needs were a guess says nothing.

        Args:
            profile: name of its profile; None: not known.
            forecast_s: forecast run time, seconds.
            actual_s: actual run time, seconds.
        """
        if profile is None or profile == DEFAULT_PROFILE.name:
            return
        self._profiles[profile] = errors = self._profiles.pop(profile, None) or _Errors()
        errors.learn(math.log(max(actual_s, 1e-3) / max(forecast_s, 1e-3)))
        if len(self._profiles) > MOST_PROFILES:
            del self._profiles[next(iter(self._profiles))]

    def corrected(self, planned: PlannedJob, profile: str) -> PlannedJob:
        """Return a planned job with the interval of its profile's errors; as it is while too few jobs have ended. O(1).

        Args:
            planned: the job in a plan.
            profile: name of its profile.
        """
        errors = self._profiles.get(profile)
        if errors is None or errors.bounds is None:
            return planned
        took = planned.finish_time - planned.start_time
        shortest, longest = (took * math.exp(bound) for bound in errors.bounds)
        first = last = planned.start_time
        if planned.within is not None:  # a job that waits for others may begin earlier or later
            first = min(first, planned.within.earliest - planned.within.shortest)
            last = max(last, planned.within.latest - planned.within.longest)
        return replace(
            planned, within=PredictionInterval(max(0.0, first + shortest), last + longest, shortest, longest)
        )
