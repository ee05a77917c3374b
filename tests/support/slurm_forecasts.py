"""Forecasts of starts from the samples of recorded runs: by the twin, by a replay under EASY, and by Slurm itself.

Rule: nothing after the sample is used but the starts that are compared: run times come from jobs that had ended.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from pilotfish.formats.site.bar_table import bar_table
from pilotfish.formats.site.begin_usage import usage_from_shares
from pilotfish.profiles.prediction.site_run_times import SiteRunTimes
from pilotfish.profiles.prediction.start_hindcasts import bounds_from_past, forecast_at
from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.plan import LEVEL
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.replay.queue_forecast import ExpectedRun, forecast_queue
from pilotfish.simulate.slurm.arrivals import Arrivals, quantiles
from pilotfish.simulate.slurm.job_columns import SiteJobs
from pilotfish.simulate.slurm.present import Present
from pilotfish.simulate.slurm.site import JobRecord, Site, SiteJob
from tests.support.slurm_recordings import Run, seconds

#: How far forecasts look ahead, seconds; a held job is released after it.
HORIZON_S = 86_400.0


@dataclass
class Forecasts:
    """Errors of forecast starts of the same jobs, seconds; lengths of the twin's intervals of 80 %, and hits of them."""

    twin: list[float] = field(default_factory=list)
    easy: list[float] = field(default_factory=list)  # NaN: not known
    squeue: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    inside: int = 0

    def __add__(self, other: Forecasts) -> Forecasts:
        """Return both."""
        return Forecasts(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def summary(self) -> str:
        """Return the numbers in a line."""
        sides = [
            f"{name} {100 * near:.0f} % within 60 s, {100 * fair:.0f} % within 10 min, mean error {error:.0f} s"
            for name, (near, fair, error) in self.figures().items()
        ]
        share = 100 * self.inside / max(len(self.twin), 1)
        length = np.median(self.lengths)
        return (
            f"{len(self.twin)} starts: {'; '.join(sides)}; {share:.0f} % in the twin's 80 % interval of {length:.0f} s"
        )

    def figures(self) -> dict[str, tuple[float, float, float]]:
        """Return who forecasts -> share of the starts within 60 s and 10 min, and the mean error, seconds."""
        errors = {name: np.abs(getattr(self, name)) for name in ("twin", "easy", "squeue")}
        return {
            name: (float((one <= 60).mean()), float((one <= 600).mean()), float(np.nanmean(one)))
            for name, one in errors.items()
        }


@dataclass(frozen=True)
class Sample:
    """What a sample shows; `rows`: id -> state, priority and expected start."""

    time: float
    rows: dict[str, tuple[str, int, float | None]]
    shares: str


def samples(run: Run) -> Iterator[Sample]:
    """Yield the samples of a run."""
    with gzip.open(run.folder / "samples.txt.gz", "rt", encoding="utf-8") as file:
        for text in file.read().split("# t=")[1:]:
            queue = text.partition("## squeue")[2].partition("\n## ")[0]
            cells = [row for line in queue.splitlines()[1:] if len(row := line.split("|")) >= 8]
            rows = {row[0]: (row[3], int(row[4] or 0), seconds(row[6])) for row in cells}
            last = max((start for state, _, start in rows.values() if state == "R" and start), default=0.0)
            shares = text.partition("## sshare\n")[2].partition("\n## ")[0].partition("\n# t=")[0]
            yield Sample(max(run.t0 + float(text.partition("\n")[0]), last), rows, shares)


def present_of(site: Site, sample: Sample) -> tuple[Site, tuple[SiteJob, ...]]:
    """Return the site as it was at a sample, and the jobs that had ended."""
    now, jobs, ended = sample.time, list[SiteJob](), list[SiteJob]()
    for job in site.jobs:
        state, priority, _ = sample.rows.get(job.id, ("", 0, None))
        past = tuple(run for run in job.runs if run.end is not None and run.end <= now and run.start is not None)
        if past and not state:
            ended.append(replace(job, runs=past))
        if state == "R":
            run = next((run for run in job.runs[::-1] if run.start is not None and run.start <= now), None)
            if run is not None:
                jobs.append(replace(job, runs=(replace(run, state="RUNNING", end=None),)))
        elif state == "PD":
            eligible = next((run.eligible for run in job.runs[len(past) :]), None)
            record = JobRecord("PENDING", eligible if eligible and eligible <= now else None, priority=priority)
            is_held = job.released is not None and job.released > now
            begin = eligible if past and eligible and eligible > now else job.begin
            released = now + 2 * HORIZON_S if is_held else None
            jobs.append(replace(job, runs=(record,), released=released, begin=begin))
    usage = usage_from_shares(bar_table(sample.shares, "sshare"), site.associations) if sample.shares.strip() else ()
    events = tuple(event for event in site.events if event.start <= now and (event.end is None or event.end > now))
    reservations = tuple(one for one in site.reservations if one.created is None or one.created <= now)
    present = replace(
        site, jobs=SiteJobs.of(jobs), usage=usage, reservations=reservations,
        events=tuple(replace(event, end=None) for event in events),
    )  # fmt: skip
    return present, tuple(ended)


def observed_queue(site: Site, now: float) -> ObservedQueue:
    """Return the queue of a site as the daemon sees it, in Slurm's order."""
    tiers = {partition.name: partition.tier for partition in site.partitions}
    members = {partition.name: frozenset(partition.nodes) for partition in site.partitions}
    order = sorted(
        site.jobs,
        key=lambda job: (-max(tiers[name] for name in job.partitions), -(job.runs[0].priority or 0), job.submit),
    )
    present, observed = {job.id for job in order}, list[ObservedJob]()
    for job in order:
        run, nodes = job.runs[0], max(job.min_nodes, 1)
        where = frozenset(run.nodes) or frozenset[str]().union(*(members[name] for name in job.partitions))
        waits = run.start is None
        after = tuple(name for name in re.findall(r":(\d+)", job.dependency) if name in present)
        observed.append(
            ObservedJob(
                job.id, JobState.PENDING if waits else JobState.RUNNING, nodes=nodes if waits else len(run.nodes),
                cores=-(-job.min_cpus // nodes), alone=job.is_exclusive, walltime=(job.limit_min or 1440) * 60.0,
                submit_time=job.submit, begin=job.begin, after=after, array=job.array, tasks_at_once=job.array_limit,
                where=where, start_time=run.start, unknown="it is held" if job.released is not None else "",
            )
        )  # fmt: skip
    drained = {event.node for event in site.events}
    usable = {node.name: (node.cpus, 0.0) for node in site.nodes if node.name not in drained}
    return ObservedQueue(now, observed, usable)


def _expected(runs: Mapping[str, ExpectedRun | None], job: ObservedJob) -> ExpectedRun | None:
    return runs[job.key]


def forecasts(run: Run, site: Site, *, predicted: bool, draws: int) -> Forecasts:
    """Forecast the waiting jobs of all samples; compare with the starts that came.

    Args:
        run: the recorded run.
        site: of it.
        predicted: run times are drawn from ended jobs, and jobs that come from those before; else jobs run until their
            limits, and none come.
        draws: number of draws.
    """
    result = Forecasts()
    later = {job.id: job for job in site.jobs}
    past = cache(lambda moment: forecast_at(sites[-1], site.jobs, moment))
    sites = list[Site]()
    for sample in samples(run):
        present, ended = present_of(site, sample)
        if not any(state == "PD" and start for state, _, start in sample.rows.values()):
            continue
        before = (job for job in site.jobs if job.submit <= sample.time)
        state = Present(present, sample.time, Arrivals(before, sample.time) if predicted else None)
        ran_s = np.where(state.runs, np.maximum(sample.time - state.start, 1.0), 0.0)
        times = SiteRunTimes(ended if predicted else (), state.site.jobs, state.limit_s, ran_s)
        starts = np.array([state.outlook(times.drawn(seed), HORIZON_S, seed).start for seed in range(draws)])
        starts = np.nan_to_num(starts, nan=sample.time + HORIZON_S)
        expected = {
            job.id: ExpectedRun(middle, low, high, (job.user, job.name)) if high < limit else None
            for job, (low, middle, high), limit in zip(present.jobs, times.bounds, state.limit_s, strict=False)
        }
        easy = forecast_queue(observed_queue(present, sample.time), partial(_expected, expected))
        low, middle, high = quantiles(starts, LEVEL)
        if predicted:
            sites.append(present)
            learned = bounds_from_past(present, site.jobs, sample.time, lambda _site, _jobs, moment: past(moment))
            low, high = learned.widened(sample.time, low, middle, high)
        for row, job in enumerate(present.jobs):
            shown = sample.rows[job.id]
            actual = next(
                (one.start for one in later[job.id].runs if one.start is not None and one.start > sample.time), None
            )
            if shown[0] == "PD" and shown[2] is not None and actual is not None and job.released is None:
                result.twin.append(float(middle[row]) - actual)
                result.easy.append((easy[job.id].start_time or np.nan) - actual)
                result.squeue.append(max(shown[2], sample.time) - actual)
                result.lengths.append(float(high[row] - low[row]))
                result.inside += bool(low[row] - 1 <= actual <= high[row] + 1)
    return result
