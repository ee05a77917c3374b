"""The outcome for each job of a site in one run of its period, recorded or replayed, as columns to compare.

Rule: a row a job, in the order of `Site.jobs`; NaN is "never", or not known. The waiting time is from the submission to
the first start; the turnaround ends with the last run. The period is from the first to the last submission; what runs
in it is summed by hour. A job draws the mean power of its recorded runs whenever it runs; the power of jobs without a
record of energy is not known and not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from ..arrays import Array
from ..model.objective import TAU_S
from .job_columns import Coded, SiteJobs, distinct
from .site import Site, SiteJob
from .start_columns import SiteStarts
from .twin import SiteReplay

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Runs of either source as columns; `power_w` is NaN where it is not known, `cpus` 0 where that is not known."""

    job: Array
    start: Array
    end: Array  # NaN: it did not end
    cpus: Array
    by: Coded[str]
    power_w: Array


@dataclass(frozen=True, slots=True, eq=False)
class SiteOutcome:
    """Columns over the jobs, and sums over the hours of the period."""

    wait_s: Array  # float; NaN: never started
    turnaround_s: Array  # from submission to the end of the last run; NaN: never ended
    slowdown: Array  # bounded by TAU_S; NaN: never ended
    by_backfill: Array  # 1: the backfill pass started it first, 0: the main pass did, NaN: not known
    used_cpu_s: Array  # CPU seconds in use in each hour; the last hour may be shorter
    joules: Array | None  # in each hour, of jobs whose power is known; None: of none
    metered: float | None  # share of used_cpu_s whose power is known, [0, 1]
    cpus: int  # of the machine
    nodes: int
    span_s: float  # length of the period
    asleep_s: Array | None = None  # node seconds asleep in each hour; None: no node sleeps, or not known
    released: Array | None = None  # whether pilotfish released each job for others; None: none was handed over

    @property
    def utilisation(self) -> float | None:
        """Return the share of the CPU time that is in use, [0, 1]; None for a period without length."""
        return float(self.used_cpu_s.sum()) / (self.cpus * self.span_s) if self.cpus * self.span_s > 0 else None

    @property
    def backfilled(self) -> float | None:
        """Return the share of the jobs that the backfill pass started, of those whose pass is known, [0, 1]."""
        return None if np.isnan(self.by_backfill).all() else float(np.nanmean(self.by_backfill))

    @property
    def hours(self) -> Array:
        """Return the length of each hour, s."""
        lengths: Array = np.minimum(HOUR_S, self.span_s - HOUR_S * np.arange(len(self.used_cpu_s)))
        return lengths

    def power_w(self, idle_w: float = 0.0) -> Array | None:
        """Return the mean power in each hour; None where it is not known.

        Args:
            idle_w: power of a node that is awake without a job; a partly used node counts by the share of its CPUs.
        """
        if self.joules is None:
            return None
        idle = self.nodes * (1.0 - self.used_cpu_s / (self.cpus * self.hours))
        if self.asleep_s is not None:
            idle -= self.asleep_s / self.hours
        power: Array = self.joules / self.hours + idle_w * np.maximum(idle, 0.0)
        return power


@dataclass(frozen=True, slots=True, eq=False)
class HourlyMeans:
    """The machine in each hour of the period, the mean over replays; None: not known; empty: it has no length."""

    utilisation: Array  # share of the CPU time in use, [0, 1]
    power_w: Array | None
    energy_j: Array | None


def hourly_means(outcomes: Sequence[SiteOutcome], idle_w: float = 0.0) -> HourlyMeans:
    """Return the means over replays in each hour.

    Args:
        outcomes: replays of one period, one or more.
        idle_w: power of a node without a job.
    """
    hours = outcomes[0].hours[outcomes[0].hours > 0.0]
    used = [one.used_cpu_s[: len(hours)] / (one.cpus * hours) for one in outcomes]
    with np.errstate(invalid="ignore"):
        powers = [power[: len(hours)] for one in outcomes if (power := one.power_w(idle_w)) is not None]
    power = np.mean(powers, axis=0) if len(powers) == len(outcomes) else None
    return HourlyMeans(np.mean(used, axis=0), power, None if power is None else power * hours)


def recorded_outcome(site: Site) -> SiteOutcome:
    """Return what sacct says happened. O(runs log runs)."""
    jobs = SiteJobs.of(site.jobs)
    runs, rows = jobs.runs, np.flatnonzero(~np.isnan(jobs.runs.start))
    start, end = runs.start[rows], runs.end[rows]
    owner = np.repeat(np.arange(len(jobs)), np.diff(jobs.first_run))[rows]
    power = np.where(end > start, runs.energy_j[rows] / np.where(end > start, end - start, 1.0), np.nan)
    by = Coded(runs.started_by.values, runs.started_by.codes[rows])
    return _outcome(site, _Runs(owner, start, end, runs.cpus[rows], by, power))


def replayed_outcome(site: Site, replay: SiteReplay) -> SiteOutcome:
    """Return what happened in a replay of the site. O(starts log starts)."""
    jobs, starts = SiteJobs.of(site.jobs), SiteStarts.of(site, replay.starts)
    exclusive = {one.name for one in site.partitions if one.is_exclusive or site.rules.selects == "nodes"}
    is_exclusive = np.array([name in exclusive for name in starts.partition.values], bool)[starts.partition.codes]
    is_exclusive |= np.array([job.is_exclusive for job in jobs.patterns], bool)[jobs.pattern[starts.job]]
    has_runs = np.diff(jobs.first_run) > 0
    recorded = np.zeros(len(jobs), np.int64)
    recorded[has_runs] = jobs.runs.cpus[jobs.first_run[:-1][has_runs]]
    of_nodes = starts.sums(np.array([node.cpus for node in site.nodes], np.int64))
    cpus = np.where(is_exclusive, of_nodes, recorded[starts.job]) if starts.cpus is None else starts.cpus
    power = _job_powers(jobs)[starts.job]
    outcome = _outcome(site, _Runs(starts.job, starts.start, starts.end, cpus, starts.by, power))
    return replace(outcome, asleep_s=_asleep(site, starts), released=replay.released)


def _asleep(site: Site, starts: SiteStarts) -> Array | None:
    """Return the node seconds asleep in each hour of the period, from the times between jobs on a node.

    None where no node sleeps. SuspendRate and ResumeRate are left out. O(nodes of all starts x log).
    """
    rules, submit = site.rules, SiteJobs.of(site.jobs).submit
    if rules.suspend_time_s is None or not len(submit):
        return None
    begin, until = float(submit.min()), float(submit.max())
    rows = np.repeat(np.arange(len(starts)), np.diff(starts.begin))
    sleeps = np.flatnonzero([not node.stays_on for node in site.nodes])
    is_cloud = np.array([node.is_asleep for node in site.nodes], bool)[sleeps]
    # A job of no length at the begin and one at the end of the period bound the first and the last time between jobs.
    node = np.concatenate([sleeps, starts.nodes, sleeps])
    first = np.concatenate([np.full(len(sleeps), begin), starts.start[rows], np.full(len(sleeps), until)])
    last = np.where(is_cloud, begin - rules.suspend_time_s, begin)
    last = np.concatenate([last, np.nan_to_num(starts.end[rows], nan=until), np.full(len(sleeps), until)])
    order = np.lexsort((first, node))
    node, first, last = node[order], first[order], np.clip(last[order], begin - rules.suspend_time_s, until)
    width = 2.0 * (until - begin + rules.suspend_time_s + 1.0)  # so that the latest end of a node stays with it
    latest = np.maximum.accumulate(last - begin + width * node)[:-1] - width * node[:-1] + begin
    boot = np.where(first[1:] < until, rules.resume_timeout_s, 0.0)
    falls, wakes = latest + rules.suspend_time_s, np.minimum(first[1:], until) - boot
    slept = (node[1:] == node[:-1]) & (wakes > falls) & np.isin(node[1:], sleeps)
    falls, wakes = np.maximum(falls[slept], begin) - begin, np.maximum(wakes[slept], begin) - begin
    return _by_hour(falls, wakes, np.ones(len(falls)), until - begin)


def _job_powers(jobs: SiteJobs) -> Array:
    """Return the mean power of the recorded runs of each job; NaN if it is not known."""
    runs = jobs.runs
    owner = np.repeat(np.arange(len(jobs)), np.diff(jobs.first_run))
    rows = np.flatnonzero(~np.isnan(runs.energy_j + runs.start + runs.end))
    energy, seconds = (
        np.bincount(owner[rows], values[rows], minlength=len(jobs)) for values in (runs.energy_j, runs.end - runs.start)
    )
    return np.where(seconds > 0, energy / np.where(seconds > 0, seconds, 1.0), np.nan)


_PASSES = {"main": 0.0, "backfill": 1.0}


def _outcome(site: Site, runs: _Runs) -> SiteOutcome:
    jobs = SiteJobs.of(site.jobs)
    submit = jobs.submit
    first, last, end, by_backfill = (np.full(len(submit), np.nan) for _ in range(4))
    order = np.lexsort((runs.start, runs.job))
    is_first = np.diff(runs.job[order], prepend=-1) != 0
    first_rows, last_rows = order[is_first], order[np.append(is_first[1:], True)] if len(order) else order
    passes = np.array([_PASSES.get(name, np.nan) for name in runs.by.values])
    first[runs.job[first_rows]] = runs.start[first_rows]
    by_backfill[runs.job[first_rows]] = passes[runs.by.codes[first_rows]]
    last[runs.job[last_rows]], end[runs.job[last_rows]] = runs.start[last_rows], runs.end[last_rows]
    requested = np.array([requested_cpus(job) for job in jobs.patterns], np.int64)
    cpus_of = np.where(runs.cpus != 0, runs.cpus, requested[jobs.pattern[runs.job]]).astype(np.float64)
    starts, stops, powers = runs.start, np.where(np.isnan(runs.end), np.inf, runs.end), runs.power_w
    begin, until = (float(submit.min()), float(submit.max())) if len(submit) else (0.0, 0.0)
    spans = np.clip(starts, begin, until) - begin, np.clip(stops, begin, until) - begin
    used = _by_hour(*spans, cpus_of, until - begin)
    has_power = ~np.isnan(powers)
    metered = float((cpus_of * (spans[1] - spans[0]))[has_power].sum())
    metered_spans = spans[0][has_power], spans[1][has_power]
    joules = _by_hour(*metered_spans, powers[has_power], until - begin) if has_power.any() else None
    total = float(used.sum())
    return SiteOutcome(
        wait_s=first - submit,
        turnaround_s=end - submit,
        slowdown=np.maximum(1.0, (end - submit) / np.maximum(end - last, TAU_S)),
        by_backfill=by_backfill,
        used_cpu_s=used,
        joules=joules,
        metered=min(1.0, metered / total) if joules is not None and total > 0 else None,
        cpus=sum(node.cpus for node in site.nodes),
        nodes=len(site.nodes),
        span_s=until - begin,
    )


def _by_hour(starts: Array, stops: Array, rates: Array, span_s: float) -> Array:
    """Return the integral of the rates over each hour. O((runs + hours) log runs).

    Args:
        starts: when each rate begins, seconds in the period.
        stops: when it ends, not before.
        rates: a second.
        span_s: length of the period.
    """
    edges = np.minimum(HOUR_S * np.arange(max(1, ceil(span_s / HOUR_S)) + 1), span_s)

    def until(times: Array) -> Array:
        """Return the integral up to each edge of rates that begin at some times and never end."""
        order = np.argsort(times, kind="stable")
        sums = (np.concatenate([np.zeros(1), np.cumsum(column[order])]) for column in (rates, rates * times))
        place = np.searchsorted(times[order], edges, "right")
        rate, offset = (column[place] for column in sums)
        integral: Array = rate * edges - offset
        return integral

    return np.diff(until(starts) - until(stops))


def requested_cpus(job: SiteJob) -> int:
    """Return the CPUs that a job asks for."""
    return max(job.min_cpus, job.tasks * job.cpus_per_task, job.min_nodes)


#: Upper bounds of the classes of sizes, nodes or CPUs, and of lengths, minutes.
_SIZES, _LENGTHS = (1, 4, 16, 64, 256, 1024), (30, 120, 480, 1440)


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Classes of the jobs of a site: `names[codes[row]]` is the class of a job."""

    title: str
    names: tuple[str, ...]
    codes: Array  # int, a row a job

    def members(self) -> Iterator[tuple[str, Array]]:
        """Yield each class with the rows of its jobs, ascending, the most jobs first. O(jobs log jobs) in all."""
        sizes = np.bincount(self.codes, minlength=len(self.names))
        rows = np.split(np.argsort(self.codes, kind="stable"), np.cumsum(sizes)[:-1])
        for code in sorted(range(len(self.names)), key=lambda code: -int(sizes[code])):
            yield self.names[code], rows[code]


def groupings(site: Site, changed: Site | None = None) -> tuple[Grouping, ...]:
    """Return the classes of the jobs by partition, QOS, account, user, size and requested length. O(jobs).

    Args:
        site: the site.
        changed: the same jobs after a change: those in another QOS are classes of their own, `a to b`.
    """
    jobs = SiteJobs.of(site.jobs)
    _, pattern = distinct(jobs.pattern)
    patterns = [jobs.patterns[code] for code in Coded(range(len(jobs.patterns)), jobs.pattern).compact().values]
    defaults = tuple(one.name for one in site.partitions if one.is_default) or ("",)
    counts_nodes = any(job.min_nodes > 1 for job in patterns)
    limits = {one.name: one.default_time_min or one.max_time_min for one in site.partitions}
    names = [job.partitions or defaults for job in patterns]
    lengths = [job.limit_min or limits.get(partitions[0]) for job, partitions in zip(patterns, names, strict=True)]
    sizes = [_class(job.min_nodes if counts_nodes else requested_cpus(job), _SIZES) for job in patterns]
    length_names = ["none" if one is None else _class(one, _LENGTHS) for one in lengths]
    return (
        _grouping("partition", Coded([",".join(partitions) for partitions in names], pattern)),
        _grouping("QOS", _qos_names(jobs, SiteJobs.of((changed or site).jobs))),
        _grouping("account", jobs.accounts.compact()),
        _grouping("user", jobs.users.compact()),
        _grouping("nodes" if counts_nodes else "CPUs", Coded(sizes, pattern)),
        _grouping("limit, minutes", Coded(length_names, pattern)),
    )


def _qos_names(jobs: SiteJobs, changed: SiteJobs) -> Coded[str]:
    """Return the QOS of each job, or `a to b` where a change gives it another one."""
    first, codes = distinct(jobs.pattern, changed.pattern)
    names = [(jobs[row].qos, changed[row].qos) for row in first.tolist()]
    return Coded([old if old == new else f"{old} to {new}" for old, new in names], codes)


def _grouping(title: str, column: Coded[str]) -> Grouping:
    """Return the classes of a column all of whose values are there."""
    names = sorted(set(column.values))
    codes = {word: code for code, word in enumerate(names)}
    return Grouping(title, tuple(names), np.array([codes[word] for word in column.values], np.int64)[column.codes])


def _class(value: int, bounds: Sequence[int]) -> str:
    """Return the class of a number as `5 to 16`, or `over 1024`."""
    low = 0
    for high in bounds:
        if value <= high:
            return f"{high}" if low + 1 == high else f"{low + 1} to {high}"
        low = high
    return f"over {low}"
