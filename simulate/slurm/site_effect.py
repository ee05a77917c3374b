"""The effect of a change on a site: replays before and after it, with intervals.

Rule: a difference is paired. Its interval of 95 % is of a bootstrap over blocks of the period and over the replays: a
draw has the same blocks and the same seeds on both sides. A block is a day since the first submission, or a tenth of a
shorter period. An interval is expanded by what few blocks hide, and None where the jobs lie in fewer than LEAST_SPREAD
blocks. What is not known is None.
Sources: B. Efron, R. Tibshirani, "An Introduction to the Bootstrap" (1993); T. Hesterberg, "What Teachers Should Know
about the Bootstrap" (2015), expanded percentile intervals; R. Jain, D. Chiu, W. Hawe, "A Quantitative
Measure of Fairness" (1984).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from ..arrays import Array
from .job_columns import SiteJobs
from .site import Site
from .site_outcome import HOUR_S, Grouping, SiteOutcome, groupings
from .unstarted import reasons_never_started

#: Blocks of the period, at least; draws; the share of them in an interval; blocks with jobs that an interval needs.
LEAST_BLOCKS, DRAWS, LEVEL, LEAST_SPREAD = 10, 1000, 0.95, 3
#: Quantiles of a distribution, and values that stand for all in the draws of quantiles.
_QUANTILES, _GRADES = (0.5, 0.95), 1024
_DAY_S = 86_400.0
#: Quantile of the normal distribution that belongs to LEVEL.
_NORMAL = 1.959964


@dataclass(frozen=True, slots=True)
class Contrast:
    """A number before and after a change, and the interval of the difference; None: it is not known."""

    before: float
    after: float
    low: float | None = None
    high: float | None = None

    @property
    def difference(self) -> float:
        """Return the difference."""
        return self.after - self.before

    @property
    def is_known(self) -> bool:
        """Return whether the interval is known."""
        return self.low is not None and self.high is not None

    @property
    def is_noise(self) -> bool:
        """Return whether the change may have done nothing: the interval holds 0, or is not known."""
        return self.low is None or self.high is None or self.low <= 0.0 <= self.high


@dataclass(frozen=True, slots=True)
class DistributionChange:
    """Mean, median and 95th percentile over jobs and replays."""

    mean: Contrast
    median: Contrast
    p95: Contrast


@dataclass(frozen=True, slots=True)
class ClassEffect:
    """A class of jobs; the medians and percentiles have no intervals."""

    name: str
    jobs: int
    wait: DistributionChange  # seconds
    slowdown: DistributionChange | None  # bounded; None: none of them ended on both sides


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change on a site. Power and energy are of jobs with a record of it, and of idle nodes."""

    jobs: int  # that start in all replays of both sides
    only_before: int  # jobs that start only before the change
    unstarted: tuple[tuple[str, int], ...]  # why those do not start after it -> how many, the most first
    only_after: int
    wait: DistributionChange  # seconds
    turnaround: DistributionChange  # seconds
    slowdown: DistributionChange  # bounded
    utilisation: Contrast | None
    backfilled: Contrast | None
    fairness: Contrast | None  # Jain's index of the users' mean bounded slowdowns; 1: all are alike
    energy_j: Contrast | None
    highest_power_w: Contrast | None  # mean of an hour
    lowest_power_w: Contrast | None
    metered: float | None  # share of the CPU time whose power is known, [0, 1]
    groups: tuple[tuple[str, tuple[ClassEffect, ...]], ...]  # grouping -> its classes, the most jobs first

    def group(self, title: str) -> tuple[ClassEffect, ...]:
        """Return the classes of a grouping."""
        return dict(self.groups)[title]


Side = Sequence[SiteOutcome]


def effect(
    site: Site, before: Side, after: Side, seed: int = 0, idle_w: float = 0.0, changed: Site | None = None
) -> Effect:
    """Compare replays of a site with replays of the changed site, over the jobs that start in all of them.

    Args:
        site: the site before the change.
        before: its replays, one or more, of different seeds.
        after: those of the changed site, with the same seeds.
        seed: of the draws.
        idle_w: power of a node without a job.
        changed: the changed site; see `groupings`.
    """
    sides = (before, after)
    waits, turnarounds, slowdowns, passes = (
        [np.array([getattr(one, name) for one in side]) for side in sides]
        for name in ("wait_s", "turnaround_s", "slowdown", "by_backfill")
    )
    starts = [~np.isnan(values).any(axis=0) for values in waits]
    both = starts[0] & starts[1]
    ended = both & ~np.isnan(np.concatenate(slowdowns)).any(axis=0)
    draws = Draws(site, len(before), seed)
    everything = Grouping("", ("all",), np.zeros(len(both), np.int64))
    groups = groupings(site, changed)
    users, *_ = (one for one in groups if one.title == "user")
    powers = [[one.power_w(idle_w) for one in side] for side in sides]
    metered = [[part for part in side if part is not None] for side in powers]
    has_power = all(len(part) == len(before) for part in metered)
    return Effect(
        jobs=int(both.sum()),
        only_before=int((starts[0] & ~starts[1]).sum()),
        unstarted=reasons_never_started(changed or site, starts[0] & ~starts[1]),
        only_after=int((starts[1] & ~starts[0]).sum()),
        wait=draws.distribution(waits, both),
        turnaround=draws.distribution(turnarounds, ended),
        slowdown=draws.distribution(slowdowns, ended),
        utilisation=draws.by_hour(sides, lambda one: one.used_cpu_s, lambda one: one.cpus * one.hours),
        backfilled=draws.means(passes, ~np.isnan(np.concatenate(passes)).all(axis=0), everything)[0],
        fairness=draws.fairness(slowdowns, ended, users),
        energy_j=draws.by_hour(
            sides, lambda one: _known(one.power_w(idle_w)) * one.hours, lambda one: one.hours / max(one.span_s, 1.0)
        )
        if has_power
        else None,
        highest_power_w=draws.of_replays(metered, np.max) if has_power else None,
        lowest_power_w=draws.of_replays(metered, np.min) if has_power else None,
        metered=before[0].metered,
        groups=tuple((one.title, draws.classes(waits, slowdowns, both, ended, one)) for one in groups),
    )


def _known(power: Array | None) -> Array:
    assert power is not None
    return power


class Draws:
    """Draws of the blocks of a period and of the replays, the same for all numbers of a comparison."""

    def __init__(self, site: Site, replays: int, seed: int) -> None:
        submit = SiteJobs.of(site.jobs).submit
        span = float(np.ptp(submit)) + 1.0 if len(submit) else 1.0
        self._block_s = min(span / LEAST_BLOCKS, _DAY_S)
        self.blocks = max(LEAST_BLOCKS, ceil(span / self._block_s))
        self.block = ((submit - submit.min(initial=np.inf)) // self._block_s).astype(np.int64)
        draw = np.random.default_rng(seed)
        self._weights = draw.multinomial(self.blocks, np.full(self.blocks, 1.0 / self.blocks), DRAWS).astype(float)
        self._replays = draw.multinomial(replays, np.full(replays, 1.0 / replays), DRAWS) / replays

    def _contrasts(self, sums: Sequence[Array], counts: Sequence[Array]) -> list[Contrast | None]:
        """Return sums / counts of each class on both sides; None for a class without counts.

        Args:
            sums: of each side, [replays, classes, blocks].
            counts: the same.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            points = [part.sum(axis=(0, 2)) / count.sum(axis=(0, 2)) for part, count in zip(sums, counts, strict=True)]
            drawn = [self._drawn(part) / self._drawn(count) for part, count in zip(sums, counts, strict=True)]
        spread = np.minimum(*((count.sum(axis=0) > 0).sum(axis=1) for count in counts))
        return [
            _contrast(float(before), float(after), differences, int(blocks))
            if np.isfinite(before) and np.isfinite(after)
            else None
            for before, after, differences, blocks in zip(*points, (drawn[1] - drawn[0]).T, spread, strict=True)
        ]

    def _drawn(self, parts: Array) -> Array:
        """Return the weighted sums of each draw, [draws, classes]."""
        total = np.zeros((DRAWS, parts.shape[1]))
        for number, part in enumerate(parts):
            total += self._replays[:, number, None] * (self._weights @ part.T)
        return total

    def means(self, values: Sequence[Array], mask: Array, grouping: Grouping) -> list[Contrast | None]:
        """Return the mean of each class of jobs; values are [replays, jobs] of each side, NaN counts for nothing."""
        sums = [self._by_class(np.nan_to_num(side), mask, grouping) for side in values]
        counts = [self._by_class((~np.isnan(side)).astype(float), mask, grouping) for side in values]
        return self._contrasts(sums, counts)

    def _by_class(self, values: Array, mask: Array, grouping: Grouping) -> Array:
        classes = len(grouping.names)
        place = grouping.codes[mask] * self.blocks + self.block[mask]
        rows = [np.bincount(place, row[mask], classes * self.blocks) for row in values]
        return np.array(rows).reshape(len(values), classes, self.blocks)

    def distribution(self, values: Sequence[Array], mask: Array) -> DistributionChange:
        """Return the mean and the quantiles of jobs, with intervals; 0 without jobs."""
        (mean,) = self.means(values, mask, Grouping("", ("all",), np.zeros(len(mask), np.int64)))
        nothing = Contrast(0.0, 0.0)
        if mean is None:
            return DistributionChange(nothing, nothing, nothing)
        jobs = [side[:, mask] for side in values]
        points = np.quantile([side.ravel() for side in jobs], _QUANTILES, axis=1)
        drawn = [self._quantiles(side, self.block[mask]) for side in jobs]
        spread = len(np.unique(self.block[mask]))
        median, p95 = (
            _contrast(float(before), float(after), differences, spread)
            for (before, after), differences in zip(points, (drawn[1] - drawn[0]).T, strict=True)
        )
        return DistributionChange(mean, median, p95)

    def _quantiles(self, values: Array, block: Array) -> Array:
        """Return the quantiles of each draw, [draws, quantiles], to about a thousandth of the jobs."""
        grades = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _GRADES + 1), method="higher"))
        size = self.blocks * len(grades)
        counts = [np.bincount(block * len(grades) + np.searchsorted(grades, row), minlength=size) for row in values]
        drawn = np.zeros((DRAWS, len(grades)))
        for number, row in enumerate(counts):
            drawn += self._replays[:, number, None] * (self._weights @ row.reshape(self.blocks, -1))
        sums = drawn.cumsum(axis=1)
        places = [(sums < share * sums[:, -1:]).sum(axis=1) for share in _QUANTILES]
        return np.array([grades[np.minimum(place, len(grades) - 1)] for place in places]).T

    def by_hour(
        self, sides: Sequence[Side], of: Callable[[SiteOutcome], Array], per: Callable[[SiteOutcome], Array]
    ) -> Contrast | None:
        """Return the ratio of two sums over the hours of a period."""

        def blocks(column: Callable[[SiteOutcome], Array]) -> list[Array]:
            return [np.array([[self._hours_of(one, column(one))] for one in side]) for side in sides]

        return self._contrasts(blocks(of), blocks(per))[0]

    def _hours_of(self, outcome: SiteOutcome, column: Array) -> Array:
        block = ((np.arange(len(column)) + 0.5) * HOUR_S // self._block_s).astype(np.int64)
        return np.bincount(np.minimum(block, self.blocks - 1), column, self.blocks)

    def of_replays(self, sides: Sequence[Sequence[Array]], of: Callable[[Array], float]) -> Contrast:
        """Return the mean of a number of each replay; its interval is over the replays alone."""
        before, after = (np.array([of(column) for column in side]) for side in sides)
        differences = self._replays @ (after - before)
        return _contrast(float(before.mean()), float(after.mean()), differences if len(before) > 1 else differences[:0])

    def fairness(self, values: Sequence[Array], mask: Array, users: Grouping) -> Contrast | None:
        """Return Jain's index of the users' means, in (0, 1]; None without jobs."""
        if not mask.any():
            return None
        sums = [self._by_class(side, mask, users) for side in values]
        counts = self._by_class(np.ones((1, len(mask))), mask, users)
        points = [
            _jain((side.sum(axis=2).mean(axis=0) / np.maximum(counts[0].sum(axis=1), 1.0))[None], counts.sum(axis=2))
            for side in sums
        ]
        weights = self._weights @ counts[0].T
        drawn = [_jain(self._drawn(side) / np.maximum(weights, 1.0), weights) for side in sums]
        spread = len(np.unique(self.block[mask]))
        return _contrast(float(points[0][0]), float(points[1][0]), drawn[1] - drawn[0], spread)

    def classes(
        self, waits: Sequence[Array], slowdowns: Sequence[Array], both: Array, ended: Array, grouping: Grouping
    ) -> tuple[ClassEffect, ...]:
        """Return the effect on each class of jobs that has jobs on both sides, the most jobs first."""
        columns = (
            zip(self.means(values, mask, grouping), _class_quantiles(values, mask, grouping), strict=True)
            for values, mask in ((waits, both), (slowdowns, ended))
        )
        jobs = np.bincount(grouping.codes[both], minlength=len(grouping.names)).tolist()
        effects = []
        for name, number, wait, slowdown in zip(grouping.names, jobs, *columns, strict=True):
            if (waiting := _distribution(*wait)) is not None:
                effects.append(ClassEffect(name, number, waiting, _distribution(*slowdown)))
        return tuple(sorted(effects, key=lambda one: -one.jobs))


def _class_quantiles(values: Sequence[Array], mask: Array, grouping: Grouping) -> list[Array]:
    """Return the quantiles of each class on both sides, [quantiles, sides]; 0 without jobs."""
    rows = np.flatnonzero(mask)
    order = rows[np.argsort(grouping.codes[rows], kind="stable")]
    ends = np.cumsum(np.bincount(grouping.codes[rows], minlength=len(grouping.names)))[:-1]
    return [
        np.array([np.quantile(side[:, part], _QUANTILES) for side in values]).T if len(part) else np.zeros((2, 2))
        for part in np.split(order, ends)
    ]


def _distribution(mean: Contrast | None, quantiles: Array) -> DistributionChange | None:
    return None if mean is None else DistributionChange(mean, *(Contrast(*pair.tolist()) for pair in quantiles))


def _contrast(before: float, after: float, differences: Array, blocks: int | None = None) -> Contrast:
    """Return an estimate with the interval of the drawn differences; without one if nothing was drawn.

    Args:
        before: the number before the change.
        after: the number after it.
        differences: of each draw.
        blocks: in how many blocks the jobs lie; None: the interval is that of the draws.
    """
    drawn = differences[np.isfinite(differences)]
    if not len(drawn) or (blocks is not None and blocks < LEAST_SPREAD):
        return Contrast(before, after)
    middle = after - before
    width = 1.0 if blocks is None else expansion(blocks)
    low, high = (middle + width * (np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)) - middle)).tolist()
    return Contrast(before, after, low, high)


def expansion(blocks: int) -> float:
    """Return by how much the interval of a bootstrap over so many blocks, 2 or more, is too narrow.

    It is that of Student's distribution with blocks - 1 degrees of freedom, approximated by its Cornish-Fisher
    expansion, and of the variance, which a bootstrap makes smaller by (blocks - 1) / blocks.
    """
    z, degrees = _NORMAL, blocks - 1
    student = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return student / z * sqrt(blocks / degrees)


def _jain(means: Array, weights: Array) -> Array:
    """Return Jain's index of each row of means, over those with a weight above 0."""
    counted = np.where(weights > 0, means, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        index: Array = counted.sum(axis=1) ** 2 / ((weights > 0).sum(axis=1) * (counted**2).sum(axis=1))
    return index
