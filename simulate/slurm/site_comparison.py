"""The distance of replays of a site's period from its record.

Rule: the same jobs on both sides; a job that started on one side only is counted and left out. Several replays differ
in their seeds; their figures are averaged, and their spread is what the draw of the phases alone does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from .site import Site
from .site_outcome import Grouping, SiteOutcome, groupings
from .unstarted import reasons_never_started

#: Seconds within which two starts of a job are counted as the same.
NEAR_S = (10.0, 60.0, 600.0)


@dataclass(frozen=True, slots=True)
class Figures:
    """Mean, median and 95th percentile."""

    mean: float
    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class Pair:
    """The figures of a class of jobs on both sides; means over the replays."""

    name: str
    jobs: int
    first: Figures
    second: Figures


@dataclass(frozen=True, slots=True)
class Agreement:
    """The distance of replays of a site from the record."""

    jobs: int  # that started on both sides
    only_recorded: int
    unstarted: tuple[tuple[str, int], ...]  # why those did not start in a replay -> how many, the most first
    only_replayed: int
    waits: Pair  # first: recorded, second: replayed; seconds
    spread_s: float | None  # standard deviation of the mean over the replays; None: there is one
    difference_s: float  # mean |difference| of a job's start
    near: tuple[float, ...]  # share of jobs within each of NEAR_S
    backfilled: tuple[float | None, float | None]
    utilisation: tuple[float | None, float | None]
    groups: tuple[tuple[str, tuple[Pair, ...]], ...]  # grouping -> its classes, the most jobs first


def agreement(site: Site, recorded: SiteOutcome, replays: Sequence[SiteOutcome]) -> Agreement:
    """Compare replays of a site with its record.

    Args:
        site: the site.
        recorded: of `recorded_outcome`.
        replays: one or more outcomes, of different seeds.
    """
    real, simulated = recorded.wait_s, np.array([one.wait_s for one in replays])
    in_record, in_replays = ~np.isnan(real), ~np.isnan(simulated).any(axis=0)
    both = in_record & in_replays
    distances = np.abs(simulated[:, both] - real[both])
    means = simulated[:, both].mean(axis=1) if both.any() else np.zeros(len(replays))
    return Agreement(
        jobs=int(both.sum()),
        only_recorded=int((in_record & ~in_replays).sum()),
        unstarted=reasons_never_started(site, in_record & ~in_replays),
        only_replayed=int((in_replays & ~in_record).sum()),
        waits=_pair("all", np.flatnonzero(both), real[None], simulated),
        spread_s=float(means.std(ddof=1)) if len(replays) > 1 else None,
        difference_s=float(distances.mean()) if both.any() else 0.0,
        near=tuple(float((distances <= near).mean()) if both.any() else 0.0 for near in NEAR_S),
        backfilled=(recorded.backfilled, mean_of([one.backfilled for one in replays])),
        utilisation=(recorded.utilisation, mean_of([one.utilisation for one in replays])),
        groups=tuple((one.title, group_pairs(one, both, real[None], simulated)) for one in groupings(site)),
    )


def group_pairs(grouping: Grouping, both: Array, first: Array, second: Array) -> tuple[Pair, ...]:
    """Return the figures of each class of jobs.

    Args:
        grouping: the classes.
        both: mask of the jobs that count.
        first: values of each run of the first side, [runs, jobs].
        second: those of the second side.
    """
    classes = ((name, rows[both[rows]]) for name, rows in grouping.members())
    return tuple(_pair(name, rows, first, second) for name, rows in classes if len(rows))


def _pair(name: str, rows: Array, first: Array, second: Array) -> Pair:
    return Pair(name, len(rows), _figures(first[:, rows]), _figures(second[:, rows]))


def _figures(values: Array) -> Figures:
    """Return the figures of each run, averaged over the runs; 0 without jobs."""
    if not values.size:
        return Figures(0.0, 0.0, 0.0)
    median, p95 = np.percentile(values, (50, 95), axis=1).mean(axis=1)
    return Figures(float(values.mean()), float(median), float(p95))


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are known; None without any."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
