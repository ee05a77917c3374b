"""The outcome for each job of a site in one run of its period, recorded or replayed, as columns to compare.

Rule: a row a job, in the order of `Site.jobs`; NaN is "never". The waiting time is from the submission to the first
start; the turnaround ends with the last run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..replay.metrics import TAU_S
from .site import Site, SiteJob
from .twin import SiteReplay


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of a job, of either source."""

    job: int
    start: float
    end: float | None
    cpus: int
    by: str


@dataclass(frozen=True, slots=True, eq=False)
class SiteOutcome:
    """Columns over jobs, and the share of starts by the backfill pass."""

    wait_s: Array  # float; NaN: never started
    slowdown: Array  # bounded by TAU_S; NaN: never ended
    utilisation: float | None  # CPU time in use from the first to the last submission, [0, 1]
    backfilled: float | None  # share of the starts whose pass is known, [0, 1]


def recorded_outcome(site: Site) -> SiteOutcome:
    """Return what sacct says happened. O(runs)."""
    runs = (
        _Run(row, run.start, run.end, run.cpus, run.started_by)
        for row, job in enumerate(site.jobs)
        for run in job.runs
        if run.start is not None
    )
    return _outcome(site, runs)


def replayed_outcome(site: Site, replay: SiteReplay) -> SiteOutcome:
    """Return what happened in a replay of the site. O(starts)."""
    node_cpus = {node.name: node.cpus for node in site.nodes}
    exclusive = {one.name for one in site.partitions if one.is_exclusive or site.rules.selects == "nodes"}

    def cpus(job: SiteJob, partition: str, nodes: Iterable[str]) -> int:
        if job.is_exclusive or partition in exclusive:
            return sum(node_cpus[node] for node in nodes)
        return job.runs[0].cpus if job.runs and job.runs[0].cpus else requested_cpus(job)

    runs = (
        _Run(one.job, one.start, one.end, cpus(site.jobs[one.job], one.partition, one.nodes), one.by)
        for one in replay.starts
    )
    return _outcome(site, runs)


def _outcome(site: Site, runs: Iterable[_Run]) -> SiteOutcome:
    submit = np.array([job.submit for job in site.jobs], dtype=np.float64)
    first, last = np.full(len(submit), np.nan), np.full(len(submit), np.nan)
    end = np.full(len(submit), np.nan)
    begin, until = (float(submit.min()), float(submit.max())) if len(submit) else (0.0, 0.0)
    used, passes = 0.0, Counter[str]()
    for run in runs:
        first[run.job] = np.fmin(first[run.job], run.start)
        if not last[run.job] > run.start:
            last[run.job], end[run.job] = run.start, np.nan if run.end is None else run.end
        stop = until if run.end is None else min(run.end, until)
        used += max(0.0, stop - max(run.start, begin)) * (run.cpus or requested_cpus(site.jobs[run.job]))
        passes[run.by] += 1
    by_pass = passes["main"] + passes["backfill"]
    capacity = sum(node.cpus for node in site.nodes) * (until - begin)
    return SiteOutcome(
        wait_s=first - submit,
        slowdown=np.maximum(1.0, (end - submit) / np.maximum(end - last, TAU_S)),
        utilisation=used / capacity if capacity > 0 else None,
        backfilled=passes["backfill"] / by_pass if by_pass else None,
    )


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


def groupings(site: Site) -> tuple[Grouping, ...]:
    """Return the classes of the jobs by partition, QOS, account, user, size and requested length. O(jobs)."""
    defaults = [one.name for one in site.partitions if one.is_default] or [""]
    counts_nodes = any(job.min_nodes > 1 for job in site.jobs)
    sizes = [job.min_nodes if counts_nodes else requested_cpus(job) for job in site.jobs]
    limits = {one.name: one.default_time_min or one.max_time_min for one in site.partitions}
    names = [job.partitions or tuple(defaults) for job in site.jobs]
    lengths = [job.limit_min or limits.get(partitions[0]) for job, partitions in zip(site.jobs, names, strict=True)]
    return (
        _grouping("partition", [",".join(partitions) for partitions in names]),
        _grouping("QOS", [job.qos for job in site.jobs]),
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
