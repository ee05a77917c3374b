"""The outcome for each job of a site in one run of its period, recorded or replayed, as columns to compare.

Rule: a row a job, in the order of `Site.jobs`; NaN is "never", or not known. The waiting time is from the submission to
the first start; the turnaround ends with the last run. The period is from the first to the last submission; what runs
in it is summed by hour. A job draws the mean power of its recorded runs whenever it runs; the power of jobs without a
record of energy is not known and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from ..arrays import Array
from ..model.objective import TAU_S
from .site import Site, SiteJob
from .twin import SiteReplay

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of a job, of either source; `power_w` is NaN where it is not known."""

    job: int
    start: float
    end: float | None
    cpus: int
    by: str
    power_w: float


@dataclass(frozen=True, slots=True, eq=False)
class SiteOutcome:
    """Columns over the jobs, and sums over the hours of the period."""

    wait_s: Array  # float; NaN: never started
    slowdown: Array  # bounded by TAU_S; NaN: never ended
    by_backfill: Array  # 1: the backfill pass started it first, 0: the main pass did, NaN: not known
    used_cpu_s: Array  # CPU seconds in use in each hour; the last hour may be shorter
    joules: Array | None  # in each hour, of jobs whose power is known; None: of none
    metered: float | None  # share of used_cpu_s whose power is known, [0, 1]
    cpus: int  # of the machine
    nodes: int
    span_s: float  # length of the period

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
            idle_w: power of a node without a job; a partly used node counts by the share of its CPUs.
        """
        if self.joules is None:
            return None
        idle = 1.0 - self.used_cpu_s / (self.cpus * self.hours)
        power: Array = self.joules / self.hours + idle_w * self.nodes * np.maximum(idle, 0.0)
        return power


def recorded_outcome(site: Site) -> SiteOutcome:
    """Return what sacct says happened. O(runs)."""
    runs = (
        _Run(row, run.start, run.end, run.cpus, run.started_by, _power(run.energy_j, run.start, run.end))
        for row, job in enumerate(site.jobs)
        for run in job.runs
        if run.start is not None
    )
    return _outcome(site, runs)


def _power(energy_j: float | None, start: float, end: float | None) -> float:
    return np.nan if energy_j is None or end is None or end <= start else energy_j / (end - start)


def replayed_outcome(site: Site, replay: SiteReplay) -> SiteOutcome:
    """Return what happened in a replay of the site. O(starts)."""
    node_cpus = {node.name: node.cpus for node in site.nodes}
    exclusive = {one.name for one in site.partitions if one.is_exclusive or site.rules.selects == "nodes"}

    def cpus(job: SiteJob, partition: str, nodes: Iterable[str]) -> int:
        if job.is_exclusive or partition in exclusive:
            return sum(node_cpus[node] for node in nodes)
        return job.runs[0].cpus if job.runs and job.runs[0].cpus else requested_cpus(job)

    def runs() -> Iterator[_Run]:
        for one in replay.starts:
            job = site.jobs[one.job]
            yield _Run(one.job, one.start, one.end, cpus(job, one.partition, one.nodes), one.by, job_power_w(job))

    return _outcome(site, runs())


def job_power_w(job: SiteJob) -> float:
    """Return the mean power of the recorded runs of a job; NaN if it is not known."""
    energy = seconds = 0.0
    for run in job.runs:
        if run.energy_j is not None and run.start is not None and run.end is not None:
            energy, seconds = energy + run.energy_j, seconds + run.end - run.start
    return energy / seconds if seconds > 0 else np.nan


_PASSES = {"main": 0.0, "backfill": 1.0}


def _outcome(site: Site, runs: Iterable[_Run]) -> SiteOutcome:
    submit = np.array([job.submit for job in site.jobs], dtype=np.float64)
    first, last = np.full(len(submit), np.nan), np.full(len(submit), np.nan)
    end, by_backfill = np.full(len(submit), np.nan), np.full(len(submit), np.nan)
    rows = list[tuple[float, float, float, float]]()
    for run in runs:
        if not first[run.job] <= run.start:
            first[run.job], by_backfill[run.job] = run.start, _PASSES.get(run.by, np.nan)
        if not last[run.job] > run.start:
            last[run.job], end[run.job] = run.start, np.nan if run.end is None else run.end
        cpus = run.cpus or requested_cpus(site.jobs[run.job])
        rows.append((run.start, np.inf if run.end is None else run.end, cpus, run.power_w))
    begin, until = (float(submit.min()), float(submit.max())) if len(submit) else (0.0, 0.0)
    starts, stops, cpus_of, powers = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    spans = np.clip(starts, begin, until) - begin, np.clip(stops, begin, until) - begin
    used = _by_hour(*spans, cpus_of, until - begin)
    has_power = ~np.isnan(powers)
    metered = float((cpus_of * (spans[1] - spans[0]))[has_power].sum())
    metered_spans = spans[0][has_power], spans[1][has_power]
    joules = _by_hour(*metered_spans, powers[has_power], until - begin) if has_power.any() else None
    total = float(used.sum())
    return SiteOutcome(
        wait_s=first - submit,
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
        sums = (np.cumsum([0.0, *column[order].tolist()]) for column in (rates, rates * times))
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
        """Yield each class with the mask of its jobs, the most jobs first."""
        sizes = np.bincount(self.codes, minlength=len(self.names))
        for code in sorted(range(len(self.names)), key=lambda code: -int(sizes[code])):
            yield self.names[code], self.codes == code


def groupings(site: Site, changed: Site | None = None) -> tuple[Grouping, ...]:
    """Return the classes of the jobs by partition, QOS, account, user, size and requested length. O(jobs).

    Args:
        site: the site.
        changed: the same jobs after a change: those in another QOS are classes of their own, `a to b`.
    """
    moved = zip(site.jobs, (changed or site).jobs, strict=True)
    defaults = [one.name for one in site.partitions if one.is_default] or [""]
    counts_nodes = any(job.min_nodes > 1 for job in site.jobs)
    sizes = [job.min_nodes if counts_nodes else requested_cpus(job) for job in site.jobs]
    limits = {one.name: one.default_time_min or one.max_time_min for one in site.partitions}
    names = [job.partitions or tuple(defaults) for job in site.jobs]
    lengths = [job.limit_min or limits.get(partitions[0]) for job, partitions in zip(site.jobs, names, strict=True)]
    return (
        _grouping("partition", [",".join(partitions) for partitions in names]),
        _grouping("QOS", [one.qos if one.qos == new.qos else f"{one.qos} to {new.qos}" for one, new in moved]),
        _grouping("account", [job.account for job in site.jobs]),
        _grouping("user", [job.user for job in site.jobs]),
        _grouping("nodes" if counts_nodes else "CPUs", [_class(size, _SIZES) for size in sizes]),
        _grouping("limit, minutes", ["none" if one is None else _class(one, _LENGTHS) for one in lengths]),
    )


def _grouping(title: str, words: Sequence[str]) -> Grouping:
    codes = {word: code for code, word in enumerate(sorted(set(words)))}
    return Grouping(title, tuple(codes), np.array([codes[word] for word in words], dtype=np.int64))


def _class(value: int, bounds: Sequence[int]) -> str:
    """Return the class of a number as `5 to 16`, or `over 1024`."""
    low = 0
    for high in bounds:
        if value <= high:
            return f"{high}" if low + 1 == high else f"{low + 1} to {high}"
        low = high
    return f"over {low}"
