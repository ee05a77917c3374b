"""Prediction intervals of the ends and run times of the jobs of a plan, from the uncertainty of their needs.

Rule: only the chosen plan is run again, with drawn needs and its mapping and order kept. The error of a profile is
drawn once for all of its jobs, the scatter between runs for each job, so independent errors along a path add as
squares. Draws are stratified and depend on the seed alone. Errors of the contention model are not included; the share
of jobs that end inside their intervals shows them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from ..model.job import Distribution, Profile
from ..model.plan import LEVEL, PredictionInterval
from .search_moves import Candidate
from .simulation import Simulation

#: All jobs get an interval up to this many jobs, or if a search made at least this many runs.
ALL_JOBS, SEARCHED = 64, 80
#: Draws for such a plan: at most, at least, one for each so many runs of the search, and so many divided by the jobs.
MOST, LEAST_RUNS, SHARE, CHEAP = 64, 16, 32, 1024
#: Draws for larger plans, where only jobs that start at once or are running get an interval; the runs are cut off after
#: this multiple of the latest forecast end of these jobs.
SOME, FAR = 8, 1.25
#: A start that is another if jobs whose need is a guess do this much more work waits for one of them.
LONGER = 10.0
#: Least work of a job relative to its forecast.
LEAST = 1e-3
#: Standard deviations on either side of the interval of a profile (see `Provenance`).
_WIDE = 2.0
_TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)

_Distribution = tuple[float, float, Array]


def within(
    simulation: Simulation, mapping: Candidate, seed: int, searched: int = 0
) -> tuple[dict[int, PredictionInterval], tuple[float, float] | None]:
    """Return prediction intervals of the jobs (by position) whose needs are uncertain, and of the makespan.

    A job whose uncertainty is unknown runs as forecast; it then has no interval, and the makespan has none. Nor has a
    job whose start waits for one whose need is a guess. O(MOST runs of the plan), or nothing if no uncertainty is
    known. The simulation keeps its tables.

    Args:
        simulation: holds the run of the plan.
        mapping: the plan.
        seed: of the draws.
        searched: evaluations that were made to find the plan.
    """
    jobs = simulation.workflow.jobs
    profiles = {id(job.profile): job.profile for job in jobs}
    all_jobs = len(jobs) <= ALL_JOBS or searched >= SEARCHED
    draws = min(MOST, max(LEAST_RUNS, searched // SHARE, CHEAP // max(1, len(jobs)))) if all_jobs else SOME
    shares = [(draw + 0.5) / draws for draw in range(draws)]
    distributions = {
        key: distribution
        for key, profile in profiles.items()
        if (distribution := _uncertain(profile, shares)) is not None
    }
    start, finish = simulation.world.jobs["start"], simulation.world.jobs["finish"]
    drawn = np.array([i for i, job in enumerate(jobs) if id(job.profile) in distributions], np.int64)
    selected, until, ending_count = drawn[np.isfinite(finish[drawn])], math.inf, np.isfinite(finish).sum()
    if not all_jobs:
        selected = selected[start[selected] <= 0.0]
        until = FAR * float(finish[selected].max(initial=0.0))
    if len(selected) == 0:
        return {}, None
    twin, spans, starts, ends = simulation.copy(), [], [], []
    guessed = np.array([job.profile.provenance.source == "default" for job in jobs])
    if all_jobs and guessed.any():
        mapping.follow(twin, until, np.where(guessed, LONGER, 1.0))
        selected = selected[twin.world.jobs["start"][selected] == start[selected]]
        if len(selected) == 0:
            return {}, None
    start, finish = start[selected].copy(), finish[selected].copy()
    for scale in _scales(simulation, distributions, drawn, shares, seed):
        spans.append(mapping.follow(twin, until, scale)[0])
        ran = twin.world.jobs[selected]
        starts.append(ran["start"])
        ends.append(np.where(ran["state"] == layout.DONE, ran["finish"], math.nan))
    ended = np.isfinite(ends).all(axis=0)
    end, run_times = np.array(ends)[:, ended], np.array(ends)[:, ended] - np.array(starts)[:, ended]
    rows = np.array([*_between(end, finish[ended]), *_between(run_times, (finish - start)[ended])]).T
    intervals = {i: PredictionInterval(*row) for i, row in zip(selected[ended].tolist(), rows.tolist(), strict=True)}
    if not all_jobs or len(selected) < ending_count:
        return intervals, None
    low, high = _between(np.array(spans), finish.max())
    return intervals, (float(low), float(high))


def _between(values: Array, forecast: Array | float) -> tuple[Array, Array]:
    """Return the bounds of LEVEL of the draws [draws, ...], widened to include the forecast."""
    low, high = np.quantile(values, _TAILS, axis=0, method="hazen")
    return np.minimum(low, forecast), np.maximum(high, forecast)


def _scales(
    simulation: Simulation, distributions: dict[int, _Distribution], drawn: Array, shares: Sequence[float], seed: int
) -> Array:
    """Return the drawn work of each job relative to its forecast, f8 [draws, jobs]; 1 if unknown."""
    stream, normal = np.random.Generator(np.random.PCG64(seed)), _normal(shares)
    rows = {key: row for row, key in enumerate(distributions)}
    of_job = [rows[id(simulation.workflow.jobs[i].profile)] for i in drawn.tolist()]
    low, high = (np.array([distribution[side] for distribution in distributions.values()])[:, None] for side in (0, 1))
    profile = np.where(normal < 0.0, np.maximum(low, LEAST), high) ** np.abs(normal / _WIDE)
    run = np.array([distribution[2] for distribution in distributions.values()])
    scales = np.ones((len(shares), len(simulation.workflow.jobs)))
    both = stream.permuted(profile, axis=1)[of_job] * stream.permuted(run[of_job], axis=1)
    scales[:, drawn] = np.maximum(both, LEAST).T
    return scales


def _uncertain(profile: Profile, shares: Sequence[float]) -> _Distribution | None:
    """Return a profile's interval and the relative run times at these quantiles; None if unknown."""
    about = profile.provenance
    if any(isinstance(group.service_demand, Distribution) for group in profile.groups):
        return 1.0, 1.0, _of_distributions(profile, shares)
    if about.interval is None or about.spread is None:
        return None
    return *about.interval, 1.0 + about.spread * _small_sample_factor(about.runs) * _normal(shares)


def _small_sample_factor(runs: int) -> float:
    """Return the factor by which the scatter of a few runs is widened: Student's quantile over the normal one at LEVEL.

    Source: Abramowitz and Stegun, 26.7.5.
    """
    if runs < 2:
        return 1.0
    q, free = NormalDist().inv_cdf(_TAILS[1]) ** 2, float(runs - 1)
    third = (3 * q**3 + 19 * q**2 + 17 * q - 15) / 384
    return 1.0 + (q + 1) / (4 * free) + (5 * q**2 + 16 * q + 3) / (96 * free**2) + third / free**3


def _normal(shares: Sequence[float]) -> Array:
    return np.array([NormalDist().inv_cdf(share) for share in shares])


def _of_distributions(profile: Profile, shares: Sequence[float]) -> Array:
    """Return the isolated time at these quantiles, the same for all groups, relative to that of the means."""
    times = [
        max(_quantile(group.service_demand, share) / group.mean_utilisation for group in profile.groups)
        for share in shares
    ]
    return np.array(times) / profile.isolated_time


def _quantile(demand: float | Distribution, share: float) -> float:
    if not isinstance(demand, Distribution):
        return demand
    normal = NormalDist().inv_cdf(share)
    if demand.dist == "lognormal":
        variance = math.log1p(demand.cv**2)
        return demand.mean * math.exp(normal * math.sqrt(variance) - variance / 2)
    if demand.dist == "normal":
        return demand.mean * (1.0 + demand.cv * normal)
    if demand.dist == "uniform":
        return demand.low + share * (demand.high - demand.low)
    ordered: list[float] = sorted(demand.values)
    return ordered[int(share * len(ordered))]
