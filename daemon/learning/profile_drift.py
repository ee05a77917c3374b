"""Profile drift: profiles whose forecasts keep missing are learned again from their latest runs.

Rule: a profile has drifted when the median error of its last `window` jobs passes the bound. From then on, and after a
restart, only new jobs count. At most MOST_PROFILES are watched, the latest ones of all users.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, replace

from ...simulate.model.bounded import BoundedByOwner
from ...simulate.model.capacity import EmptyNodes
from ...simulate.model.job import Job, Profile
from .job_profiles import widened

MOST_PROFILES = 1000


@dataclass(frozen=True, slots=True)
class Drifted:
    """A profile that passed the bound: its last job and the median of its latest errors."""

    job: Job
    median: float


class ProfileDrift:
    """Watches the errors of profiles; `drifted` collects those to learn again, by name.

    Args:
        bound: median error that a profile may have, > 0; an error is a factor less one, 0.5 for 1.5 times.
        window: jobs needed and considered, >= 1.
        enabled: False reports no profile.
    """

    def __init__(self, *, bound: float, window: int, enabled: bool = True) -> None:
        self.drifted: dict[str, Drifted] = {}
        self.configure(bound=bound, window=window, enabled=enabled)

    def configure(self, *, bound: float, window: int, enabled: bool = True) -> None:
        """Start over with another bound and window; the arguments are those of the class."""
        self.bound, self.window, self.enabled = bound, window, enabled
        self._errors = BoundedByOwner[str, deque[float]](MOST_PROFILES)

    def add(self, profile: str, job: Job, error: float, user: int | None = None) -> bool:
        """Add an error. Return whether the profile has drifted by it.

        Args:
            profile: name of the profile.
            job: that was forecast with it.
            error: of its run time.
            user: uid of the job's user; None = not known.
        """
        errors = self._errors.pop(profile) or deque(maxlen=self.window)
        errors.append(error)
        median = statistics.median(errors)
        if self.enabled and len(errors) == self.window and median > self.bound:
            self.drifted[profile] = Drifted(job, median)
            return True
        self._errors.put(profile, errors, user)
        return False

    def take_drifted(self) -> dict[str, Drifted]:
        """Return the drifted profiles by name, and forget them."""
        drifted, self.drifted = self.drifted, {}
        return drifted


def with_renewed_profile(job: Job, profile: Profile, nodes: EmptyNodes) -> Job | None:
    """Return a waiting job with its renewed profile, on as many cores as before; None if it would not fit any more.

    Args:
        job: as it was taken in.
        profile: what was learned.
        nodes: where it must fit.
    """
    cores = job.profile.threads
    if profile.threads > cores:
        return None
    changed = replace(job, profile=widened(profile, cores))
    return None if nodes.never_fits(changed) else changed
