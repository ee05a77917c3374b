"""Intervals of forecast starts of a Slurm site, widened by what forecasts for past moments would have missed.

Rule: a past moment is forecast with what was known then: the jobs that ran and waited, and the run times of those that
had ended. A bound moves by the seconds by which such forecasts lay beyond it, of waits of the same length if there are
enough, and an interval never becomes shorter. The moments are on a fixed grid, so that two looks in a row have the same
ones. A job that still waits after its bound has missed it already.
Source: Romano, Patterson and Candes, "Conformalized quantile regression" (NeurIPS 2019), for the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.model.plan import LEVEL
from ...simulate.slurm.arrivals import WINDOW_S, Arrivals, quantiles
from ...simulate.slurm.present import Present, site_at
from ...simulate.slurm.site import Site, SiteJob
from .conformal import AdaptiveBounds
from .run_time_draws import Array
from .site_run_times import SiteRunTimes

#: Moments of the past at most, the fewest that say something, and the distance of the nearest ones, seconds.
MOMENTS, FEWEST, NEAREST_S = 8, 4, 60.0
#: Draws of a forecast for the past: nine bound 80 % exactly by their first and last. How far it reaches, seconds.
DRAWS, HORIZON_S = 9, 86_400.0
#: Jobs that all such forecasts simulate and learn from together; a site with more has fewer moments, or none.
MOST_JOBS = 200_000


@dataclass(frozen=True, slots=True)
class PastForecast:
    """Forecast of a start at a past moment, with its bounds; epoch seconds."""

    job: str
    time: float
    low: float
    middle: float
    high: float


class StartBounds:
    """Corrections of the bounds of forecast starts, so that LEVEL of the starts lie between them."""

    def __init__(self) -> None:
        self._bounds = AdaptiveBounds(LEVEL)
        self.starts = 0  #: number of forecasts that were compared

    def learn(self, forecast: PastForecast, start: float) -> None:
        """Note when a job really started, epoch seconds. O(1)."""
        self.starts += 1
        groups = _groups(forecast.middle - forecast.time)
        self._bounds.learn(groups, forecast.low - start, start - forecast.high, batch=forecast.job)

    def widened(self, now: float, low: Array, middle: Array, high: Array) -> tuple[Array, Array]:
        """Return wider bounds of starts, epoch seconds, [jobs]; as they are while too little is known. O(jobs).

        Args:
            now: epoch seconds, before which nothing starts.
            low: lower bounds, epoch seconds, [jobs]; inf: never.
            middle: medians, as `low`.
            high: upper bounds, as `low`.
        """
        low, high = low.copy(), high.copy()
        for row in np.flatnonzero(np.isfinite(middle)).tolist():
            pair = self._bounds.of(_groups(float(middle[row]) - now))
            if pair is not None:
                low[row] = max(min(low[row], now), low[row] - max(pair[0], 0.0))
                high[row] += max(pair[1], 0.0)
        return low, high


def bounds_from_past(
    site: Site, jobs: Iterable[SiteJob], now: float,
    forecast: Callable[[Site, Sequence[SiteJob], float], list[PastForecast]] | None = None,
) -> StartBounds:  # fmt: skip
    """Forecast past moments of a site, and compare with the starts that came.

    Args:
        site: as it is now.
        jobs: of the past and of now, with their runs; of those with the same id the last one counts.
        now: epoch seconds; what happened later is not looked at.
        forecast: forecasts a moment; None: `forecast_at`.
    """
    submitted, result = [*{job.id: job for job in jobs if job.submit <= now}.values()], StartBounds()
    open_forecasts = list[PastForecast]()
    starts = {
        job.id: [run.start for run in job.runs if run.start is not None and run.start <= now] for job in submitted
    }
    for moment in (*moments_before(submitted, now), now):
        waiting = list[PastForecast]()
        for one in open_forecasts:
            start = next((time for time in starts[one.job] if time > one.time), None)
            if start is not None and start <= moment:
                result.learn(one, start)
            else:
                waiting.append(one)
        open_forecasts = waiting
        if moment < now:
            forecasts = (forecast or forecast_at)(site, submitted, moment)
            values = np.array([(one.low, one.middle, one.high) for one in forecasts]).reshape(-1, 3)
            result.widened(moment, *values.T)  # bounds adapt to how often they were exceeded when they were asked for
            open_forecasts += forecasts
    present = {job.id for job in submitted if job.runs and job.runs[-1].start is None and job.runs[-1].end is None}
    for one in open_forecasts:
        if one.job in present and one.high < now:
            result.learn(one, now)
    return result


def moments_before(jobs: Sequence[SiteJob], now: float) -> list[float]:
    """Return the moments of the past that are forecast, ascending; each has as long a past as lies after it.

    Args:
        jobs: of the past and of now.
        now: epoch seconds.
    """
    if not jobs:
        return []
    span = min(WINDOW_S, (now - min(job.submit for job in jobs)) / 2)
    present = sum(job.submit <= now and (not job.runs or job.runs[-1].end is None) for job in jobs)
    most = min(MOMENTS, MOST_JOBS // (len(jobs) + DRAWS * present))
    if most == 0 or span <= NEAREST_S:
        return []
    step = NEAREST_S * 2.0 ** math.ceil(math.log2(max(1.0, span / most / NEAREST_S)))
    first = math.floor((now - span) / step) + 1
    moments = [step * number for number in range(first, math.ceil(now / step))]
    return moments if len(moments) >= FEWEST else []


def forecast_at(site: Site, jobs: Sequence[SiteJob], moment: float) -> list[PastForecast]:
    """Forecast the jobs that waited at a moment. O(jobs + draws x the passes).

    Args:
        site: its configuration, limits and usage, and its nodes as they are now.
        jobs: of the past and of now, with their runs.
        moment: epoch seconds.
    """
    present, ended = site_at(site, jobs, moment)
    if not any(job.runs[-1].start is None for job in present.jobs):
        return []
    state = Present(present, moment, Arrivals((job for job in jobs if job.submit <= moment), moment))
    ran_s = np.where(state.runs, np.maximum(moment - state.start, 1.0), 0.0)
    times = SiteRunTimes(ended, state.site.jobs, state.limit_s, ran_s)
    starts = np.array([state.outlook(times.drawn(seed), HORIZON_S, seed).start for seed in range(DRAWS)])
    low, middle, high = quantiles(np.nan_to_num(starts, nan=moment + HORIZON_S), LEVEL)
    return [
        PastForecast(job.id, moment, float(low[row]), float(middle[row]), float(high[row]))
        for row, job in enumerate(present.jobs)
        if job.runs[-1].start is None and job.released is None
    ]


def _groups(wait_s: float) -> tuple[tuple[str, int], ...]:
    """Return the groups of a forecast wait: those of the same length by powers of two of a minute, and all."""
    return ("wait", int(math.log2(max(wait_s, 0.0) / 60.0 + 1.0))), ("all", 0)
