"""Between which times the jobs of a plan end, and how long they run, as far as what is known of their needs tells.

Rule: the chosen plan, its mapping and order kept, is run again with needs that are drawn; never a candidate of a
search. By how much a profile may be off is drawn once for all of its jobs, by how much a run differs from the next for
each job, so that independent errors along a path add as squares. Draws are stratified and depend on the seed alone:
same plan, same times. What a contention model is wrong by is not in it: how many jobs end within tells of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from .build import Array
from .engine import Simulation
from .job import Distribution, Profile
from .kernels import layout
from .plan import LEVEL, Within
from .policies.moves import Candidate

#: Jobs up to which all are told of; of more where a search made so many runs that some more are nothing beside them.
ALL_JOBS, SEARCHED = 64, 80
#: Runs of such a plan, the most and the least: one for so many of the search's, or so many jobs' worth of them.
MOST, LEAST_RUNS, SHARE, CHEAP = 64, 16, 32, 1024
#: Runs elsewhere, where those jobs are told of that start at once or run; they are cut off after so many times the
#: latest end that is foretold of these.
SOME, FAR = 8, 1.25
#: The least that a job has to do, as a share of what is foretold.
LEAST = 1e-3
#: So many standard deviations of what a profile says its interval is on either side (see `Provenance`).
_WIDE = 2.0
_TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)

_Known = tuple[float, float, Array]


def within(
    simulation: Simulation, mapping: Candidate, seed: int, searched: int = 0
) -> tuple[dict[int, Within], tuple[float, float] | None]:
    """Of each job whose needs are known with an interval, by its position, and of the makespan where all are.

    What is not known so is run as foretold. O(MOST runs of the plan) where any job is known so, else nothing; the
    simulation keeps its tables.

    Args:
        simulation: holds the run of the plan, which is `mapping`.
        searched: runs that were made to find it.
    """
    jobs = simulation.workflow.jobs
    profiles = {id(job.profile): job.profile for job in jobs}
    whole = len(jobs) <= ALL_JOBS or searched >= SEARCHED
    draws = min(MOST, max(LEAST_RUNS, searched // SHARE, CHEAP // max(1, len(jobs)))) if whole else SOME
    shares = [(draw + 0.5) / draws for draw in range(draws)]
    known = {key: found for key, profile in profiles.items() if (found := _uncertain(profile, shares)) is not None}
    start, finish = simulation.world.jobs["start"], simulation.world.jobs["finish"]
    drawn = np.array([i for i, job in enumerate(jobs) if id(job.profile) in known], np.int64)
    asked, until, left = drawn[np.isfinite(finish[drawn])], math.inf, np.isfinite(finish).sum()
    if not whole:
        asked = asked[start[asked] <= 0.0]
        until = FAR * float(finish[asked].max(initial=0.0))
    if len(asked) == 0:
        return {}, None
    start, finish = start[asked].copy(), finish[asked].copy()
    twin, spans, starts, ends = simulation.copy(), [], [], []
    for scale in _scales(simulation, known, drawn, shares, seed):
        spans.append(twin.follow(mapping.places, mapping.keys, mapping.wait_for, mapping.caps, until, scale)[0])
        ran = twin.world.jobs[asked]
        starts.append(ran["start"])
        ends.append(np.where(ran["state"] == layout.DONE, ran["finish"], math.nan))
    ended = np.isfinite(ends).all(axis=0)
    end, took = np.array(ends)[:, ended], np.array(ends)[:, ended] - np.array(starts)[:, ended]
    rows = np.array([*_between(end, finish[ended]), *_between(took, (finish - start)[ended])]).T
    told = {i: Within(*row) for i, row in zip(asked[ended].tolist(), rows.tolist(), strict=True)}
    if not whole or len(asked) < left:
        return told, None
    low, high = _between(np.array(spans), finish.max())
    return told, (float(low), float(high))


def _between(values: Array, foretold: Array | float) -> tuple[Array, Array]:
    """The bounds of LEVEL of the draws [draws, ...]; what is foretold is always between them."""
    low, high = np.quantile(values, _TAILS, axis=0, method="hazen")
    return np.minimum(low, foretold), np.maximum(high, foretold)


def _scales(
    simulation: Simulation, known: dict[int, _Known], drawn: Array, shares: Sequence[float], seed: int
) -> Array:
    """How many times what is foretold each job has to do [draws, jobs]; 1 where that is not known with an interval."""
    stream, normal = np.random.Generator(np.random.PCG64(seed)), _normal(shares)
    rows = {key: row for row, key in enumerate(known)}
    of_job = [rows[id(simulation.workflow.jobs[i].profile)] for i in drawn.tolist()]
    low, high = (np.array([found[side] for found in known.values()])[:, None] for side in (0, 1))
    profile = 1.0 + normal / _WIDE * np.where(normal < 0.0, 1.0 - low, high - 1.0)
    run = np.array([found[2] for found in known.values()])
    scales = np.ones((len(shares), len(simulation.workflow.jobs)))
    both = stream.permuted(profile, axis=1)[of_job] * stream.permuted(run[of_job], axis=1)
    scales[:, drawn] = np.maximum(both, LEAST).T
    return scales


def _uncertain(profile: Profile, shares: Sequence[float]) -> _Known | None:
    """A profile's interval, and what its runs take of what is foretold at these quantiles; None = not known."""
    about = profile.provenance
    if any(isinstance(group.service_demand, Distribution) for group in profile.groups):
        return 1.0, 1.0, _of_distributions(profile, shares)
    if about.interval is None or about.spread is None:
        return None
    return *about.interval, 1.0 + about.spread * _few(about.runs) * _normal(shares)


def _few(runs: int) -> float:
    """By how much further so few runs may scatter than they show: the bound of LEVEL of Student's distribution for that
    of the normal one (Abramowitz and Stegun, 26.7.5)."""
    if runs < 2:
        return 1.0
    q, free = NormalDist().inv_cdf(_TAILS[1]) ** 2, float(runs - 1)
    third = (3 * q**3 + 19 * q**2 + 17 * q - 15) / 384
    return 1.0 + (q + 1) / (4 * free) + (5 * q**2 + 16 * q + 3) / (96 * free**2) + third / free**3


def _normal(shares: Sequence[float]) -> Array:
    return np.array([NormalDist().inv_cdf(share) for share in shares])


def _of_distributions(profile: Profile, shares: Sequence[float]) -> Array:
    """The isolated time at these quantiles, all groups alike, as a share of that of the means."""
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
