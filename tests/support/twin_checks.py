"""The twin against recorded runs of a real Slurm: decisions one by one, planned starts, and free runs.

Rule: the phase of the calculation of priorities is known in a recording. The other phases are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf, sqrt
from pathlib import Path
from statistics import mean, stdev, variance

import numpy as np

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.slurm.job_labels import job_labels
from pilotfish.simulate.slurm.site import Site, SiteJob
from pilotfish.simulate.slurm.site_tables import Phases, completed, set_clocks, site_block
from pilotfish.simulate.slurm.twin import advanced, followed, history_steps, planned_starts, replay_site, starts_of
from tests.support.slurm_recordings import Run, expected_starts, moments, recorded_starts, site_folder


def site_of(run: Run, folder: Path) -> Site:
    """Return the site of a recorded run; its files are written into `folder`."""
    return read_site(site_folder(run, folder / f"{run}"))


def in_order(run: Run, site: Site) -> Site:
    """Return the site of a run whose jobs are submitted, and end, after the starts that they followed in its second.

    The accounting has whole seconds. What the log shows to have come after the last start of its second, happens in the
    next second, or half a second later: no pass of that second can have known of it.
    """
    times = moments(run)
    last = {floor(time): time for time in times.started}

    def is_late(time: float, second: float) -> bool:
        return floor(time) == second and time > last.get(floor(time), time)

    jobs = list[SiteJob]()
    for job in site.jobs:
        submitted, ends = times.submitted.get(job.array or job.id, 0.0), times.ended.get(job.id, ())
        is_started = any(one.start == job.submit for one in job.runs)
        runs = tuple(
            replace(one, end=one.end + 0.5) if one.end and any(is_late(time, one.end) for time in ends) else one
            for one in job.runs
        )
        late = is_late(submitted, job.submit) and not is_started
        jobs.append(replace(job, submit=job.submit + late, runs=runs))
    return replace(site, jobs=tuple(jobs))


def recorded_phases(run: Run, site: Site) -> Phases:
    """Return the phases of a recorded run, as far as they are known."""
    began = min(job.submit for job in site.jobs)
    period = (run.first_calculation - began) % site.rules.priority.period_s
    return Phases(tick=0.0, backfill=0.0, period=period, limit=0, full=0.0)


def rules_of(job: SiteJob) -> Iterator[str]:
    """Yield what is special about a job: each is a rule that may decide its start."""
    special = {
        "array": job.task >= 0, "dependency": bool(job.dependency), "held": job.released is not None,
        "begin": job.begin is not None, "licences": bool(job.licences), "reservation": bool(job.reservation),
        "exclusive": job.is_exclusive, "constraint": bool(job.constraint), "partitions": len(job.partitions) > 1,
        "memory": job.memory_per_node_mib is not None or job.memory_per_cpu_mib is not None,
    }  # fmt: skip
    yield from (name for name, holds in special.items() if holds)
    yield f"qos {job.qos}"
    yield f"partition {','.join(job.partitions)}"


@dataclass
class OneStep:
    """The starts of a recording, and what the twin starts in the same second from the same history."""

    real: int = 0
    same: int = 0  # starts that both make
    same_nodes: int = 0  # of these, on the same nodes
    extra: int = 0  # starts that only the twin makes
    missed_rules: Counter[str] = field(default_factory=Counter)
    extra_rules: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)  # one a disagreement

    def __add__(self, other: OneStep) -> OneStep:
        """Return the sum of two checks."""
        return OneStep(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def summary(self) -> str:
        """Return the numbers in a line."""
        hits, nodes = 100 * self.same / max(self.real, 1), 100 * self.same_nodes / max(self.same, 1)
        return (
            f"{self.same} of {self.real} starts ({hits:.1f} %), {nodes:.1f} % of them on the same nodes, "
            f"{self.extra} extra ({100 * self.extra / max(self.real, 1):.1f} %)"
        )


def one_step(run: Run, site: Site) -> OneStep:
    """Ask the twin at each recorded start what it would start there."""
    result, labels = OneStep(), job_labels(site.jobs)
    for step in history_steps(in_order(run, site), recorded_phases(run, site)):
        real, twin = {one.job: one for one in step.real}, {one.job: one for one in step.twin}
        result.real += len(real)
        result.same += len(real.keys() & twin.keys())
        result.same_nodes += sum(set(real[job].nodes) == set(twin[job].nodes) for job in real.keys() & twin.keys())
        result.extra += len(twin.keys() - real.keys())
        for word, jobs, others, counts in (
            ("missed", real, twin, result.missed_rules),
            ("extra", twin, real, result.extra_rules),
        ):
            for job in jobs.keys() - others.keys():
                rules = [f"by {jobs[job].by or 'any pass'}", *rules_of(site.jobs[job])]
                counts.update(rules)
                result.lines.append(f"{run} {step.time - run.t0:7.0f} s {word:6} {labels[job]}: {', '.join(rules)}")
    return result


#: Length of a window in which the twin goes on from the record, seconds.
WINDOW_S = 600.0
#: Seconds within which a planned start counts as the same.
SAME_PLAN_S = 60.0


@dataclass
class Plans:
    """The starts of waiting jobs that squeue expected, and those of the twin's plan at the same moment."""

    expected: int = 0
    same: int = 0  # within SAME_PLAN_S
    unplanned: int = 0  # jobs that the twin does not plan
    lines: list[str] = field(default_factory=list)  # one a disagreement

    def __add__(self, other: Plans) -> Plans:
        """Return the sum of two checks."""
        return Plans(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def summary(self) -> str:
        """Return the numbers in a line."""
        return (
            f"{self.same} of {self.expected} within {SAME_PLAN_S:.0f} s ({100 * self.same / max(self.expected, 1):.1f} %), "
            f"{self.unplanned} without a plan"
        )


def planned(run: Run, site: Site) -> Plans:
    """Compare the planned starts in the samples of squeue with those of the twin."""
    result, rows = Plans(), {job.id: row for row, job in enumerate(site.jobs)}
    samples = dict[float, list[tuple[int, float]]]()
    for one in expected_starts(run):
        first = re.sub(r"\[(\d+)[^\]]*\]?", r"\1", one.id)  # of an array, the next task
        if first in rows:
            samples.setdefault(one.asked, []).append((rows[first], one.start))
    labels = job_labels(site.jobs)
    for time, starts in planned_starts(site, sorted(samples), recorded_phases(run, site)):
        for row, start in samples[time]:
            result.expected += 1
            result.unplanned += row not in starts
            is_same = row in starts and abs(starts[row] - start) <= SAME_PLAN_S
            result.same += is_same
            if not is_same:
                twin = f"{starts[row] - time:.0f} s later" if row in starts else "not planned"
                rules = ", ".join(rules_of(site.jobs[row]))
                result.lines.append(
                    f"{run} {time - run.t0:6.0f} s {labels[row]}: {start - time:.0f} s later, twin {twin}: {rules}"
                )
    return result


@dataclass(frozen=True)
class FreeRuns:
    """Mean waits of a case, s: of the recorded runs and of replays with other phases, over the same jobs."""

    case: str
    real: Sequence[float]
    twin: Sequence[float]
    missing: int  # jobs that started in all recorded runs, but not in all replays

    @property
    def error(self) -> float:
        """Return the relative error of the mean wait of the replays."""
        return mean(self.twin) / mean(self.real) - 1.0

    @property
    def noise(self) -> float:
        """Return two standard errors of `error`."""
        real = variance(self.real) / len(self.real) if len(self.real) > 1 else 0.0
        twin = variance(self.twin) / len(self.twin) if len(self.twin) > 1 else real * len(self.real)
        return 2.0 * sqrt(real + twin) / mean(self.real)

    def noise_of(self, spread: float) -> float:
        """Return two standard errors of `error` where recorded runs have this spread, see `real_spread`."""
        twin = variance(self.twin) / len(self.twin) / mean(self.real) ** 2 if len(self.twin) > 1 else spread**2
        return 2.0 * sqrt(spread**2 / len(self.real) + twin)

    def summary(self) -> str:
        """Return the numbers in a line."""
        spread = stdev(self.twin) if len(self.twin) > 1 else 0.0
        return (
            f"{self.case}: recorded {mean(self.real):.1f} s, twin {mean(self.twin):.1f} s (sd {spread:.1f}), error "
            f"{100 * self.error:+.1f} %, two standard errors {100 * self.noise:.1f} %, {self.missing} jobs missing"
        )


@dataclass(frozen=True)
class Windows:
    """Seconds that all jobs of a case waited in windows of its recorded runs, and in replays from their begin on."""

    real: Sequence[float] = ()
    twin: Sequence[float] = ()

    def __add__(self, other: Windows) -> Windows:
        """Return the windows of both."""
        return Windows([*self.real, *other.real], [*self.twin, *other.twin])

    @property
    def error(self) -> float:
        """Return the relative error of the waits of the replays."""
        return sum(self.twin) / sum(self.real) - 1.0

    @property
    def noise(self) -> float:
        """Return two standard errors of `error`, from the spread over the windows."""
        errors = [twin - real for real, twin in zip(self.real, self.twin, strict=True)]
        return 2.0 * stdev(errors) * sqrt(len(errors)) / sum(self.real)

    def summary(self) -> str:
        """Return the numbers in a line."""
        return (
            f"{len(self.real)} windows, error {100 * self.error:+.1f} %, two standard errors {100 * self.noise:.1f} %"
        )


def windows(run: Run, site: Site, seeds: Sequence[int]) -> Windows:
    """Follow the record of a run up to the begin of each window, and let the twin go on from there.

    In a free replay one start at another pass is followed by others, until the replay and the record have little in
    common but the jobs. In a window there is no time for it: a rule that is wrong shows as soon as its jobs wait.

    Args:
        run: the run.
        site: its site.
        seeds: of the phases of the clocks, one a replay; the windows have the mean of them.
    """
    site = completed(in_order(run, site))
    phases, fresh = recorded_phases(run, site), site_block(site, recorded_phases(run, site))
    firsts = [min((one.start for one in job.runs if one.start is not None), default=inf) for job in site.jobs]
    submits, starts = np.array([job.submit for job in site.jobs]), np.array(firsts)
    begin, result = float(submits.min()), Windows()

    def waits(times: Array) -> float:
        inside = np.minimum(times, begin + WINDOW_S) - np.maximum(submits, begin)
        return float(np.maximum(inside, 0.0)[np.isfinite(starts)].sum())

    while begin < starts[np.isfinite(starts)].max():
        record, replays = followed(site, begin, phases), list[float]()
        for seed in seeds:
            block, times = record.copy(), np.full(len(starts), inf)
            calculations = block.clock["next_period"].copy(), block.count["usage_aged"].copy()
            set_clocks(block, site, Phases.drawn(site, seed), begin, seed)
            block.clock["next_period"], block.count["usage_aged"] = calculations
            block.count["history"], block.count["wanted"] = 0, 1
            for name in ("epilog_least", "epilog_most"):
                block.rules[name] = fresh.rules[name]
            for start in starts_of(site, advanced(block, begin + WINDOW_S)):
                times[start.job] = min(times[start.job], start.start)
            replays.append(waits(times))
        if waits(starts) > 0:
            result += Windows([waits(starts)], [mean(replays)])
        begin += WINDOW_S
    return result


def free_runs(runs: Sequence[Run], folder: Path, seeds: Sequence[int]) -> FreeRuns:
    """Replay a case freely.

    The phase of PriorityCalcPeriod is that of the recording, which shows it: it decides whose share is the best. All
    other phases are drawn.

    Args:
        runs: its recorded runs; the replays take their submissions and run times in turn.
        folder: for the files of the sites.
        seeds: of the phases, one a replay.
    """
    records = [recorded_starts(run) for run in runs]
    jobs = set[str].intersection(*(set(record) for record in records))
    sites = [site_of(run, folder) for run in runs]
    waits = list[dict[str, float]]()
    for number, seed in enumerate(seeds):
        run, site = runs[number % len(runs)], sites[number % len(sites)]
        phases = replace(Phases.drawn(site, seed), period=recorded_phases(run, site).period)
        labels, replayed = job_labels(site.jobs), dict[str, float]()
        for start in replay_site(site, seed, phases).starts:
            replayed.setdefault(labels[start.job], start.start - site.jobs[start.job].submit)
        waits.append(replayed)
    common = jobs.intersection(*waits)
    real = [mean(record[job].start - record[job].submit for job in common) for record in records]
    return FreeRuns(runs[0].case, real, [mean(one[job] for job in common) for one in waits], len(jobs - common))


def real_spread(cases: Sequence[FreeRuns]) -> float:
    """Return the standard deviation of the mean wait of recorded runs, relative to their mean, pooled over all cases.

    Three runs of one case do not show it: their two standard errors hold the true mean in 82 % of cases, by Student's t.
    """
    repeated = [case for case in cases if len(case.real) > 1]
    weights = [len(case.real) - 1 for case in repeated]
    shares = [variance(case.real) / mean(case.real) ** 2 for case in repeated]
    return sqrt(sum(weight * share for weight, share in zip(weights, shares, strict=True)) / sum(weights))


def pooled(cases: Sequence[FreeRuns]) -> tuple[float, float]:
    """Return the mean of the errors of cases, and two standard errors of it."""
    return mean(case.error for case in cases), sqrt(sum(case.noise**2 for case in cases)) / len(cases)
