"""The card of a site: what really happened, the twin of its Slurm, and the twin with the order of pilotfish.

Rule: the same jobs count on all three sides: those that started on each. A difference is pilotfish minus twin, never
minus the record, and the twin minus the record is the simulation's own error. Intervals are those of `site_effect`. A
verdict is about a mean: below 0 is a gain. The days that are missing follow from the interval: its width falls with the
square root of the number of days. What is not known is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array
from .busy_periods import BusyPeriods
from .handed_order import LEFT
from .job_columns import SiteJobs
from .ordered_jobs import OrderedJobs
from .site import Site
from .site_comparison import Figures, mean_of
from .site_effect import Contrast, DistributionChange, Draws, Effect, effect
from .site_outcome import Grouping, SiteOutcome, groupings

GAIN, LOSS, SMALLER, UNCLEAR, SAME = (
    "gain", "loss", "smaller than the simulation's own error", "not enough evidence yet", "no difference",
)  # fmt: skip
#: Seconds by which the start of a job moves at least to be counted as later or earlier.
MOVED_S = 60.0
#: Jobs that are named because they move most.
MOST_NAMED = 5
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Sides:
    """A number on the three sides, and the 95 % interval of pilotfish minus twin."""

    recorded: float | None
    twin: float
    pilotfish: float
    low: float | None = None
    high: float | None = None

    @property
    def difference(self) -> float:
        """Return pilotfish minus twin."""
        return self.pilotfish - self.twin

    @property
    def error(self) -> float | None:
        """Return twin minus record, the simulation's own error."""
        return None if self.recorded is None else self.twin - self.recorded


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of jobs: what it is, its mean, median and 95th percentile, and the verdict on its mean.

    Args:
        name: waiting, turnaround (both seconds) or slowdown (bounded).
        verdict: GAIN, LOSS, SMALLER, UNCLEAR or SAME.
        days_more: how many days more would show such a difference, if the verdict is UNCLEAR; None: not known.
    """

    name: str
    mean: Sides
    median: Sides
    p95: Sides
    verdict: str
    days_more: float | None


@dataclass(frozen=True, slots=True)
class ClassScore:
    """The mean wait of a class of jobs, seconds."""

    name: str
    jobs: int
    wait: Sides


@dataclass(frozen=True, slots=True)
class MovedJob:
    """A job that starts much later or earlier than in the twin, in the mean of the replays; seconds."""

    id: str
    user: str
    partition: str
    wait: Sides


@dataclass(frozen=True, slots=True)
class Moved:
    """Jobs that start at least MOVED_S later, or earlier, than in the twin.

    Args:
        jobs: their number.
        mean_s: by how much, in the mean; p95_s: at most, for 95 % of them. 0 without jobs.
        most: those that move most.
    """

    jobs: int
    mean_s: float
    p95_s: float
    most: tuple[MovedJob, ...]


@dataclass(frozen=True, slots=True)
class Handed:
    """The numbers of jobs that would have been placed, released, and left to Slurm.

    Args:
        seen: jobs of the period.
        compared: jobs that started on all three sides.
        placed: jobs that pilotfish would have started within their hold, a mean over the replays.
        released: those that it would have let go before, for other jobs or at the end of their hold.
        left: why jobs were left to Slurm -> their number.
    """

    seen: int
    compared: int
    placed: float
    released: float
    left: dict[str, int]


@dataclass(frozen=True, slots=True)
class SiteScore:
    """The card; `pilotfish` is None everywhere if the policy is not judged.

    Args:
        days: length of the period.
        busy_periods: their number, see `BusyPeriods`.
        makespan: of a busy period, in the mean, seconds; None: there is no such period, like the next two.
        utilisation: of the CPUs, [0, 1]; energy_j: of the period.
        near: share of the jobs that start within 10 s, 60 s and 10 min of the record in the twin.
        groups: grouping -> its classes, the most jobs first.
    """

    days: float
    replays: int
    handed: Handed
    measures: tuple[Measure, ...]
    busy_periods: int
    makespan: Sides | None
    utilisation: Sides | None
    energy_j: Sides | None
    near: tuple[float, ...]
    groups: tuple[tuple[str, tuple[ClassScore, ...]], ...]
    later: Moved
    earlier: Moved
    effect: Effect  # of the order on the twin

    @property
    def headline(self) -> Measure:
        """Return the measure that the card is about: waiting."""
        return self.measures[0]


Side = Sequence[SiteOutcome]


def score(
    site: Site, recorded: SiteOutcome, twin: Side, pilotfish: Side, left: Array,
    handed: OrderedJobs, *, since: float = -np.inf, seed: int = 0, idle_w: float = 0.0,
) -> SiteScore:  # fmt: skip
    """Compare the three sides.

    Args:
        site: the site.
        recorded: of `recorded_outcome`.
        twin: its replays, one or more, of different seeds.
        pilotfish: those with the jobs handed over, with the same seeds.
        left: of `left_to_slurm`.
        handed: the jobs that were handed over.
        since: jobs that were submitted before are not counted, epoch seconds.
        seed: of the draws of the intervals.
        idle_w: power of a node without a job.
    """
    submit = SiteJobs.of(site.jobs).submit
    in_period = submit >= since
    counted = in_period & ~np.isnan(recorded.wait_s)
    recorded, twin = _only(recorded, counted), [_only(one, counted) for one in twin]
    sides = (twin, [_only(one, counted) for one in pilotfish])
    result = effect(site, *sides, seed, idle_w)
    waits = [np.array([one.wait_s for one in side]) for side in sides]
    both = ~np.isnan(np.concatenate(waits)).any(axis=0)
    days = max(1e-9, float(np.ptp(submit[in_period]))) / _DAY_S if in_period.any() else 0.0
    measures = tuple(
        _measure(name, column, recorded, both, change, days)
        for name, column, change in (
            ("waiting", "wait_s", result.wait), ("turnaround", "turnaround_s", result.turnaround),
            ("slowdown", "slowdown", result.slowdown),
        )
    )  # fmt: skip
    distances = np.abs(waits[0][:, both] - recorded.wait_s[both])
    moved = waits[1].mean(axis=0) - waits[0].mean(axis=0)
    has_ended = ~np.isnan([one.turnaround_s for side in ([recorded], *sides) for one in side]).any(axis=0)
    busy = BusyPeriods.of(submit, recorded.wait_s, both & has_ended)
    means = [side.mean(axis=0) for side in waits]
    return SiteScore(
        days=days,
        replays=len(twin),
        handed=_handed(in_period, both, left, pilotfish, handed),
        measures=measures,
        busy_periods=busy.number,
        makespan=_makespan(site, busy, recorded, sides, seed),
        utilisation=_sides(recorded.utilisation, result.utilisation),
        energy_j=_sides(_energy(recorded, idle_w), result.energy_j),
        near=tuple(float((distances <= near).mean()) if both.any() else 0.0 for near in (10.0, 60.0, 600.0)),
        groups=tuple((grouping.title, _classes(grouping, result, recorded, both)) for grouping in groupings(site)),
        later=_moved(site, recorded, means, moved, both & (moved >= MOVED_S)),
        earlier=_moved(site, recorded, means, -moved, both & (moved <= -MOVED_S)),
        effect=result,
    )


def _only(outcome: SiteOutcome, counted: Array) -> SiteOutcome:
    """Return an outcome without the numbers of jobs that are not counted."""
    return replace(
        outcome, wait_s=np.where(counted, outcome.wait_s, np.nan), slowdown=np.where(counted, outcome.slowdown, np.nan),
        turnaround_s=np.where(counted, outcome.turnaround_s, np.nan),
        by_backfill=np.where(counted, outcome.by_backfill, np.nan),
    )  # fmt: skip


def _measure(
    name: str, column: str, recorded: SiteOutcome, both: Array, change: DistributionChange, days: float
) -> Measure:  # fmt: skip
    values = getattr(recorded, column)[both]
    values = values[~np.isnan(values)]
    figures = Figures(float(values.mean()), *np.percentile(values, (50, 95)).tolist()) if len(values) else None
    rows = [
        _sides(None if figures is None else getattr(figures, part), getattr(change, part))
        for part in ("mean", "median", "p95")
    ]
    mean, median, p95 = (row or Sides(None, 0.0, 0.0) for row in rows)
    verdict, days_more = judged(mean, days)
    return Measure(name, mean, median, p95, verdict, days_more)


def judged(mean: Sides, days: float) -> tuple[str, float | None]:
    """Return the verdict on a mean whose smaller values are better, and how many days more an unclear one needs.

    Args:
        mean: on the three sides.
        days: length of the period.
    """
    difference, low, high = mean.difference, mean.low, mean.high
    if low is None or high is None:
        return UNCLEAR, None
    if low == high == difference == 0.0:
        return SAME, None
    error = abs(mean.error or 0.0)
    if max(abs(low), abs(high)) <= error or (not low <= 0.0 <= high and abs(difference) <= error):
        return SMALLER, None
    if low <= 0.0 <= high:
        half = difference - low if difference > 0.0 else high - difference
        return UNCLEAR, days * ((half / abs(difference)) ** 2 - 1.0) if difference else None
    return (GAIN, None) if difference < 0.0 else (LOSS, None)


def _makespan(
    site: Site, busy: BusyPeriods, recorded: SiteOutcome, sides: Sequence[Side], seed: int
) -> Sides | None:  # fmt: skip
    """Return the mean makespan of the busy periods; None without one."""
    if not busy.number:
        return None
    submit = SiteJobs.of(site.jobs).submit
    recorded_makespans, *replayed = (
        busy.makespans(submit + np.array([one.turnaround_s for one in side])) for side in ([recorded], *sides)
    )
    counted, everything = ~np.isnan(recorded_makespans[0]), Grouping("", ("all",), np.zeros(len(submit), np.int64))
    (contrast,) = Draws(site, len(replayed[0]), seed).means(replayed, counted, everything)
    return _sides(float(recorded_makespans[0][counted].mean()), contrast)


def _sides(recorded: float | None, contrast: Contrast | None) -> Sides | None:
    if contrast is None:
        return None
    return Sides(recorded, contrast.before, contrast.after, contrast.low, contrast.high)


def _energy(outcome: SiteOutcome, idle_w: float) -> float | None:
    power = outcome.power_w(idle_w)
    return None if power is None else float((power * outcome.hours).sum())


def _handed(in_period: Array, both: Array, left: Array, pilotfish: Side, handed: OrderedJobs) -> Handed:
    numbers = {reason: int(((left == code) & in_period).sum()) for code, reason in enumerate(LEFT, 1)}
    jobs, holds = both & handed.jobs, np.broadcast_to(handed.hold_s, len(both))
    is_placed = [(one.wait_s <= holds)[jobs] & ~_released(one)[jobs] for one in pilotfish]
    placed = mean_of([float(one.sum()) for one in is_placed]) or 0.0
    released = int(jobs.sum()) - placed
    counts = {reason: number for reason, number in numbers.items() if number}
    return Handed(int(in_period.sum()), int(both.sum()), placed, released, counts)


def _released(outcome: SiteOutcome) -> Array:
    return np.zeros(len(outcome.wait_s), bool) if outcome.released is None else outcome.released


def _classes(grouping: Grouping, result: Effect, recorded: SiteOutcome, both: Array) -> tuple[ClassScore, ...]:
    counts = np.bincount(grouping.codes[both], minlength=len(grouping.names))
    sums = np.bincount(grouping.codes[both], recorded.wait_s[both], len(grouping.names))
    means = dict(zip(grouping.names, (sums / np.maximum(counts, 1)).tolist(), strict=True))
    scores = []
    for one in result.group(grouping.title):
        wait = _sides(means[one.name], one.wait.mean)
        if wait is not None:
            scores.append(ClassScore(one.name, one.jobs, wait))
    return tuple(scores)


def _moved(site: Site, recorded: SiteOutcome, means: Sequence[Array], by_s: Array, rows: Array) -> Moved:
    places = np.flatnonzero(rows)
    most = places[np.argsort(-by_s[places], kind="stable")][:MOST_NAMED]
    jobs = SiteJobs.of(site.jobs)
    named = tuple(
        MovedJob(
            jobs.ids[row], jobs.users[row], ",".join(jobs.patterns[jobs.pattern[row]].partitions),
            Sides(float(recorded.wait_s[row]), float(means[0][row]), float(means[1][row])),
        )
        for row in most.tolist()
    )  # fmt: skip
    if not len(places):
        return Moved(0, 0.0, 0.0, ())
    return Moved(len(places), float(by_s[places].mean()), float(np.percentile(by_s[places], 95)), named)
