"""Stochastic service demands: draw workflows, plan each draw, and keep the mapping that most draws lead to.

Rule (Chahal et al., "DESiDE", ICPE 2019, section 5.2): every draw is planned from scratch and the dominant mapping is
kept: the complete mapping that came out most often, on ties the one with the least mean makespan. If no two draws
agree, the most central mapping is kept: its jobs are most often where the other draws put them too. Majorities of
single jobs are never combined, because no draw chose that mapping.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..model.cluster import Cluster
from ..model.job import Distribution, Profile, ThreadGroup, Workflow
from ..model.plan import Plan
from .planner import plan

#: Least demand that is drawn, relative to the mean.
LEAST = 1e-3
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Assignment = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Replicated:
    """The results of planning replicates."""

    plan: Plan  # the replicate with the kept mapping whose makespan is nearest to the mean of such replicates
    share: float  # share of the replicates that have the kept mapping, (0, 1]
    distinct: int  # number of distinct complete mappings
    dominant: bool  # whether a mapping came out more than once; if not, the most central one is kept
    makespans: tuple[float, ...]  # seconds, one a replicate in order
    mean: float  # of the makespans
    std: float  # sample standard deviation of the makespans (0 for one replicate)
    quantiles: Mapping[float, float]  # of the makespans, at QUANTILES
    #: Job id -> (its most frequent nodes, the share of replicates that put it there).
    agreement: Mapping[str, tuple[tuple[str, ...], float]]


def sample(workflow: Workflow, seed: int) -> Workflow:
    """Return the workflow with every distribution replaced by one draw. O(thread groups).

    There is one draw for each thread group of each job, the same for all its threads and nodes, in file order from
    Generator(PCG64(seed)). Normal and uniform draws below LEAST times the mean are raised to it. Jobs with known
    demands keep their profile; equal draws of one profile are one object.
    """
    stream, drawn_profiles = np.random.Generator(np.random.PCG64(seed)), dict[tuple[object, ...], Profile]()
    jobs = []
    for job in workflow.jobs:
        profile = job.profile
        demands = tuple(_draw(group, stream) for group in profile.groups)
        if any(isinstance(group.service_demand, Distribution) for group in profile.groups):
            key = (id(profile), *demands)
            if key not in drawn_profiles:
                pairs = zip(profile.groups, demands, strict=True)
                groups = tuple(dataclasses.replace(group, service_demand=demand) for group, demand in pairs)
                drawn_profiles[key] = dataclasses.replace(profile, groups=groups)
            job = dataclasses.replace(job, profile=drawn_profiles[key])
        jobs.append(job)
    return dataclasses.replace(workflow, jobs=tuple(jobs))


def _draw(group: ThreadGroup, stream: np.random.Generator) -> float:
    demand = group.service_demand
    if not isinstance(demand, Distribution):
        return demand
    if demand.dist == "lognormal":
        variance = math.log1p(demand.cv**2)
        value = stream.lognormal(math.log(demand.mean) - variance / 2, math.sqrt(variance))
    elif demand.dist == "normal":
        value = stream.normal(demand.mean, demand.cv * demand.mean)
    elif demand.dist == "uniform":
        value = stream.uniform(demand.low, demand.high)
    else:
        value = demand.values[int(stream.integers(len(demand.values)))]
    return max(float(value), LEAST * demand.expected)


def replicate(workflow: Workflow, cluster: Cluster, replicates: int, seed: int = 0, **plan_options: Any) -> Replicated:
    """Plan `replicates` draws of the workflow and keep the dominant mapping. O(replicates) plans.

    Args:
        workflow: the jobs.
        cluster: the nodes.
        replicates: number of draws, >= 1.
        seed: replicate i draws, searches and jitters with word i of SeedSequence(seed).
        plan_options: as in `planner.plan`, except `seed`.

    Raises:
        ConfigError: `replicates` below 1, or as `plan`.
        InvalidJobError: as `plan`.
    """
    if replicates < 1:
        raise ConfigError("replicates", "", f"found {replicates}", "1 or more")
    seeds = np.random.SeedSequence(seed).generate_state(replicates, np.uint64).tolist()
    plans = [plan(sample(workflow, s), cluster, seed=s, **plan_options) for s in seeds]
    return _summary(workflow, plans, seed)


def _summary(workflow: Workflow, plans: list[Plan], seed: int) -> Replicated:
    runs: dict[Assignment, list[int]] = {}
    for i, draw in enumerate(plans):
        runs.setdefault(tuple(job.nodes for job in draw.jobs), []).append(i)
    total, makespans = len(plans), np.array([draw.makespan for draw in plans])
    places = [Counter(job.nodes for job in jobs) for jobs in zip(*(draw.jobs for draw in plans), strict=True)]
    dominant = total == 1 or len(runs) < total

    def rank(mapping: Assignment) -> tuple[int, float]:
        central = (place[nodes] for place, nodes in zip(places, mapping, strict=True))
        return -(len(runs[mapping]) if dominant else sum(central)), float(makespans[runs[mapping]].mean())

    choice = min(runs, key=rank)
    mean, share = rank(choice)[1], len(runs[choice]) / total
    nearest = plans[min(runs[choice], key=lambda i: abs(makespans[i] - mean))]
    notes = _notes(workflow, total, len(runs), dominant, share)
    best = [place.most_common(1)[0] for place in places]
    return Replicated(
        plan=dataclasses.replace(
            nearest,
            seed=seed,
            evaluations=sum(draw.evaluations for draw in plans),
            truncated=any(draw.truncated for draw in plans),
            warnings=(*nearest.warnings, *notes),
        ),
        share=share,
        distinct=len(runs),
        dominant=dominant,
        makespans=tuple(makespans.tolist()),
        mean=float(makespans.mean()),
        std=float(makespans.std(ddof=1)) if total > 1 else 0.0,
        quantiles=dict(zip(QUANTILES, np.quantile(makespans, QUANTILES).tolist(), strict=True)),
        agreement={job.id: (nodes, n / total) for job, (nodes, n) in zip(nearest.jobs, best, strict=True)},
    )


def _notes(workflow: Workflow, replicates: int, distinct: int, dominant: bool, share: float) -> list[str]:
    groups = (group for job in workflow.jobs for group in job.profile.groups)
    notes = []
    if not any(isinstance(group.service_demand, Distribution) for group in groups):
        notes.append("no service demand is a distribution: replicates differ only by their seed")
    if not dominant:
        notes.append(f"all {replicates} replicates map differently: the most central mapping is shown")
    elif distinct > 1:
        notes.append(f"dominant mapping of {distinct}: {100 * share:.0f} % of {replicates} replicates chose it")
    return notes
