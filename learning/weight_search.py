"""The search for the weights of Slurm's priorities on the twin of a site, by CMA-ES.

Rule: a point is log10(1 + weight) of each weight; each generation draws one seed of the clocks'
phases, the same for all its points. The search begins at the weights of the site and ends with the mean of its last
generation. It sees the jobs of the first half of the record alone; the second half judges what it found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..simulate.arrays import Array
from ..simulate.slurm.job_columns import SiteJobs
from ..simulate.slurm.site import Site
from ..simulate.slurm.site_outcome import SiteOutcome
from .cma_es import CmaEs
from .objectives import OBJECTIVES

#: Settings of slurm.conf that are searched -> their fields of `PriorityRules`.
WEIGHTS = {
    "PriorityWeightAge": "age", "PriorityWeightFairshare": "fair_share", "PriorityWeightJobSize": "size",
    "PriorityWeightPartition": "partition", "PriorityWeightQOS": "qos",
}  # fmt: skip
#: The largest weight that is tried.
MOST = 10_000_000

Weights = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WeightOptions:
    """The options of a search.

    Args:
        objective: a key of OBJECTIVES.
        generations, population: replays of the first half are their product.
        sigma: first step size, decades.
        seed: of the draws, and of the clocks' phases.
    """

    objective: str = "bsld"
    generations: int = 8
    population: int = 6
    sigma: float = 0.5
    seed: int = 1


def weights_of(site: Site) -> dict[str, int]:
    """Return the weights of a site."""
    return {name: int(getattr(site.rules.priority, part)) for name, part in WEIGHTS.items()}


def with_weights(site: Site, weights: Weights) -> Site:
    """Return the site with other weights."""
    parts: dict[str, Any] = {WEIGHTS[name]: float(weight) for name, weight in weights.items()}
    return replace(site, rules=replace(site.rules, priority=replace(site.rules.priority, **parts)))


def is_later(site: Site) -> Array:
    """Return whether each job was submitted in the second half of the record: as many jobs as in the first."""
    submit = SiteJobs.of(site.jobs).submit
    later = np.zeros(len(submit), bool)
    later[np.argsort(submit, kind="stable")[len(submit) // 2 :]] = True
    return later


def first_half(site: Site) -> Site:
    """Return the site with the jobs of the first half."""
    return replace(site, jobs=tuple(job for job, later in zip(site.jobs, is_later(site), strict=True) if not later))


def of_later_jobs(outcome: SiteOutcome, later: Array) -> SiteOutcome:
    """Return an outcome in which the jobs of the first half count for nothing."""
    wait, turnaround, slowdown, passes = (
        np.where(later, column, np.nan)
        for column in (outcome.wait_s, outcome.turnaround_s, outcome.slowdown, outcome.by_backfill)
    )
    return replace(outcome, wait_s=wait, turnaround_s=turnaround, slowdown=slowdown, by_backfill=passes)


def value_of(outcome: SiteOutcome, objective: str) -> float:
    """Return the logarithm of the objective over all jobs; infinite if none has ended."""
    if np.isnan(outcome.slowdown).all():
        return math.inf
    numbers = {"bsld": float(np.nanmean(outcome.slowdown)), "wait": float(np.nanmean(outcome.wait_s))}
    never = np.isnan(outcome.wait_s).mean()  # jobs that never start count as a loss of all
    return math.log(OBJECTIVES[objective](numbers)) + 10.0 * float(never)


def search_weights(
    start: Weights, searched: Sequence[str], options: WeightOptions,
    values: Callable[[Sequence[Weights], int], Sequence[float]],
    progress: Callable[[int, float], None] = lambda number, value: None,
) -> dict[str, int]:  # fmt: skip
    """Search for weights.

    Args:
        start: the weights of the site.
        searched: those that may change.
        options: of the search.
        values: returns the values of some weights, in replays with a seed.
        progress: called after each generation with its number, from 1, and its mean value.
    """
    first, most = np.log10([1.0 + start[name] for name in searched]), math.log10(MOST)

    def decoded(point: Array) -> dict[str, int]:
        numbers = np.rint(10.0 ** np.clip(point, 0.0, most) - 1.0).astype(int).tolist()
        return {**start, **dict(zip(searched, numbers, strict=True))}

    state = CmaEs(first, options.sigma, options.seed, options.population)
    for generation in range(options.generations):
        points = state.points()
        results = values([decoded(point) for point in points], options.seed * 1000 + generation)
        state.learn(points, np.array(results))
        progress(generation + 1, float(np.mean(results)))
    return decoded(state.mean)
