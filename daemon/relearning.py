"""Profiles whose forecasts keep missing: when one is to be learned anew.

Rule: when the median error of the last `window` jobs of a profile passes the bound, what was known of it has aged; from
then on it is judged by new jobs alone, and so it is after a restart. At most MOST profiles are watched, the latest.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, replace

from ..simulate.fits import never_fits
from ..simulate.job import Job, Profile
from ..simulate.platform import Cluster
from .learned import widened

MOST = 1000


@dataclass(frozen=True, slots=True)
class Missed:
    """That a profile passed the bound: the last job of it, and the median error of the latest, a ratio."""

    job: Job
    median: float


def renewed(job: Job, profile: Profile, cluster: Cluster) -> Job | None:
    """A job that waits, with what its profile is by now; None where it would not fit as it was taken in.

    It takes as many cores as before.
    """
    before = job.profile.threads
    if profile.threads > before:
        return None
    changed = replace(job, profile=widened(profile, before))
    return None if never_fits(changed, cluster) else changed


class Relearning:
    """Watches the errors of profiles.

    Args:
        bound: median of |forecast - actual| / actual up to which a profile is kept, > 0.
        window: jobs that are looked at, and needed, >= 1.
    """

    def __init__(self, *, bound: float, window: int, enabled: bool = True) -> None:
        self.bound, self.window, self.enabled = bound, window, enabled
        self._errors: dict[str, deque[float]] = {}

    def add(self, profile: str, error: float) -> float | None:
        """Take one more error in; returns the median where it has passed the bound, else None."""
        errors = self._errors.pop(profile, None) or deque(maxlen=self.window)
        errors.append(error)
        median = statistics.median(errors)
        if self.enabled and len(errors) == self.window and median > self.bound:
            return median
        self._errors[profile] = errors  # the last to be heard of is the last to be forgotten
        if len(self._errors) > MOST:
            del self._errors[next(iter(self._errors))]
        return None
