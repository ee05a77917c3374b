"""The distance of two runs of a site's period: a replay and the record, or a changed site and the site.

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
        only_replayed=int((in_replays & ~in_record).sum()),
        waits=_pair("all", both, real[None], simulated),
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
    classes = ((name, mask & both) for name, mask in grouping.members())
    return tuple(_pair(name, mask, first, second) for name, mask in classes if mask.any())


def _pair(name: str, mask: Array, first: Array, second: Array) -> Pair:
    return Pair(name, int(mask.sum()), _figures(first[:, mask]), _figures(second[:, mask]))


def _figures(values: Array) -> Figures:
    """Return the figures of each run, averaged over the runs; 0 without jobs."""
    if not values.size:
        return Figures(0.0, 0.0, 0.0)
    median, p95 = np.percentile(values, (50, 95), axis=1).mean(axis=1)
    return Figures(float(values.mean()), float(median), float(p95))


#: Blocks of the period that are drawn again, at least, draws, and the share of them in an interval.
LEAST_BLOCKS, DRAWS, LEVEL = 10, 1000, 0.95
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ClassChange:
    """The mean of a class of jobs before and after a change, and the interval of the difference."""

    name: str
    jobs: int
    before: float
    after: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Return whether the interval includes no difference."""
        return self.low <= 0.0 <= self.high


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change on a site."""

    waits: Pair  # seconds
    slowdowns: Pair  # bounded
    wait: ClassChange
    slowdown: ClassChange
    utilisation: tuple[float | None, float | None]
    backfilled: tuple[float | None, float | None]
    only_before: int  # jobs that start only before the change
    only_after: int
    groups: tuple[tuple[str, tuple[ClassChange, ...]], ...]  # grouping -> waits of its classes, the most jobs first


def effect(site: Site, before: Sequence[SiteOutcome], after: Sequence[SiteOutcome], seed: int = 0) -> Effect:
    """Compare replays of a site with replays of the changed site, over the jobs that start in all of them.

    The intervals are of a bootstrap over the days of submission, or tenths of a shorter period, and over the replays.
    It is paired: a draw has the same days and the same seeds on both sides.

    Args:
        site: the site before the change.
        before: its replays, one or more, of different seeds.
        after: those of the changed site, with the same seeds.
        seed: of the draws.
    """
    waits = [np.array([one.wait_s for one in side]) for side in (before, after)]
    slowdowns = [np.array([one.slowdown for one in side]) for side in (before, after)]
    starts = [~np.isnan(side).any(axis=0) for side in waits]
    both = starts[0] & starts[1]
    ended = both & ~np.isnan(np.concatenate(slowdowns)).any(axis=0)
    bootstrap = _Bootstrap(site, len(before), seed)
    groups = tuple(
        (
            one.title,
            tuple(bootstrap.change(name, mask & both, *waits) for name, mask in one.members() if (mask & both).any()),
        )
        for one in groupings(site)
    )
    return Effect(
        waits=_pair("wait", both, *waits),
        slowdowns=_pair("slowdown", ended, *slowdowns),
        wait=bootstrap.change("wait", both, *waits),
        slowdown=bootstrap.change("slowdown", ended, *slowdowns),
        utilisation=(mean_of([one.utilisation for one in before]), mean_of([one.utilisation for one in after])),
        backfilled=(mean_of([one.backfilled for one in before]), mean_of([one.backfilled for one in after])),
        only_before=int((starts[0] & ~starts[1]).sum()),
        only_after=int((starts[1] & ~starts[0]).sum()),
        groups=groups,
    )


class _Bootstrap:
    """Draws of the blocks of a period and of the replays, the same for all classes of jobs."""

    def __init__(self, site: Site, replays: int, seed: int) -> None:
        submit = np.array([job.submit for job in site.jobs])
        span = float(np.ptp(submit)) + 1.0 if len(submit) else 1.0
        blocks = max(LEAST_BLOCKS, int(span // _DAY_S))
        self._blocks, self._block = blocks, ((submit - submit.min(initial=np.inf)) / span * blocks).astype(np.int64)
        draw = np.random.default_rng(seed)
        self._weights = draw.multinomial(blocks, np.full(blocks, 1.0 / blocks), DRAWS).astype(float)
        self._runs = draw.multinomial(replays, np.full(replays, 1.0 / replays), DRAWS) / replays

    def change(self, name: str, mask: Array, before: Array, after: Array) -> ClassChange:
        """Return the change of a class of jobs; values are [replays, jobs]. O(replays x jobs + draws x blocks)."""
        jobs = int(mask.sum())
        if not jobs:
            return ClassChange(name, 0, 0.0, 0.0, 0.0, 0.0)
        block, means = self._block[mask], []
        counts = self._weights @ np.bincount(block, minlength=self._blocks)
        for values in (before, after):
            sums = np.array([np.bincount(block, run[mask], self._blocks) for run in values])
            means.append(((self._runs @ sums) * self._weights).sum(axis=1) / np.maximum(counts, 1.0))
        drawn = (means[1] - means[0])[counts > 0]
        low, high = np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)).tolist() if len(drawn) else (0.0, 0.0)
        return ClassChange(name, jobs, float(before[:, mask].mean()), float(after[:, mask].mean()), low, high)


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are known; None without any."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
