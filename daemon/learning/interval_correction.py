"""Prediction intervals corrected by outcomes, for each profile, program, user and source of profiles.

Rule: the interval of a plan covers the known uncertainty of a job's needs, not other causes of forecast errors. Once
enough jobs of a profile have ended, the interval of its next job is that of their errors: as wide as it must be for
LEVEL of them to end inside, and adapted after each job. Until then it is at least as wide as that of jobs with other
profiles of the same source: of the program, else of the user, else of all. Errors are logarithms of actual over
forecast run time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from ...profiles.identity import program
from ...profiles.prediction.conformal import AdaptiveBounds
from ...simulate.model.job import DEFAULT_PROFILE
from ...simulate.model.plan import LEVEL, PlannedJob, PredictionInterval
from ..report.accuracy import Groups
from ..state.forecasts import NOW_S

#: No end is known more exactly than this, as a logarithm.
_NARROWEST = math.log(1.01)


def groups_of(profile: str | None, source: str | None, user: int | None) -> Groups:
    """Return the groups whose errors say something of a job, its profile's first; none for a guess.

    Args:
        profile: name of its profile; None: not known.
        source: of the profile; None: not known.
        user: uid of its owner; None: not known.
    """
    if profile is None or profile == DEFAULT_PROFILE.name:
        return ()
    own_program = program(profile)
    command = [("command", own_program, source)] if own_program else []
    owner = [("user", user, source)] if user is not None else []
    return (("profile", profile), *command, *owner, ("source", source))


class IntervalCorrection:
    """Corrects the intervals of planned jobs.

    Args:
        past: groups, forecast and actual run time, seconds, of jobs that ended before, the oldest first.
    """

    def __init__(self, past: Iterable[tuple[Groups, float, float]] = ()) -> None:
        self._bounds = AdaptiveBounds(LEVEL)
        for groups, forecast_s, actual_s in past:
            self.learn(groups, forecast_s, actual_s)

    def learn(self, groups: Groups, forecast_s: float, actual_s: float) -> None:
        """Note a job that has ended.

        Args:
            groups: from `groups_of`.
            forecast_s: forecast run time, seconds.
            actual_s: actual run time, seconds.
        """
        error = math.log(max(actual_s, 1e-3) / max(forecast_s, 1e-3))
        self._bounds.learn(
            groups, -error, error, owner=next((name for kind, name, *_ in groups if kind == "user"), None)
        )

    def corrected(self, planned: PlannedJob, groups: Groups, walltime: float | None = None) -> PlannedJob:
        """Return a planned job with the interval of its groups' errors; as it is while too few jobs have ended. O(1).

        Args:
            planned: the job in a plan.
            groups: from `groups_of`.
            walltime: seconds after which it is ended, so that no interval reaches further; None = never.
        """
        own_bounds = self._bounds.of(groups[:1])
        bounds, within = own_bounds or self._bounds.of(groups[1:]), planned.within
        if bounds is None or (within is None and planned.start_time > NOW_S):
            return planned  # where the plan has no interval, it is not known when a job that waits begins
        run_time = planned.finish_time - planned.start_time
        below, above = (max(_NARROWEST, bound) for bound in bounds)
        shortest, longest = run_time * math.exp(-below), run_time * math.exp(above)
        if own_bounds is None and within is not None:  # what is known of its needs may be less than of others
            shortest, longest = min(shortest, within.shortest), max(longest, within.longest)
        longest = max(run_time, longest if walltime is None else min(longest, walltime))
        first = last = planned.start_time
        if within is not None:  # a job that waits for others may begin earlier or later
            first = min(first, within.earliest - within.shortest)
            last = max(last, within.latest - within.longest)
        return replace(
            planned, within=PredictionInterval(max(0.0, first + shortest), last + longest, shortest, longest)
        )
