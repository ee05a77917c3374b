"""Forecasts of a Slurm's queue by Slurm's own rules, from what its commands print.

Rule: pure; the same question has the same answer. Only a site that is fully known is forecast: what its scheduler rests
on was read, all jobs can be read, and preemption is followed. A start is the median of several draws of the run times
and of the phases of Slurm's clocks; intervals are of probability LEVEL. An array starts with the first of its waiting
tasks, and ends with the last. Jobs that will come are drawn from the accounting of the last day, if it is there.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from ...formats.site import scontrol_text
from ...formats.site.site_folder import read_site
from ...formats.text import count
from ...profiles.prediction.run_time_draws import RunTimeDraws
from ...simulate.errors import ConfigError
from ...simulate.model.plan import LEVEL
from ...simulate.slurm.arrivals import Arrivals, quantiles
from ...simulate.slurm.job_columns import SiteJobs
from ...simulate.slurm.present import Present, present_site
from ...simulate.slurm.site import SiteJob
from ...simulate.slurm.unfollowed import reasons_not_to_forecast
from .twin_messages import TwinAnswer, TwinQuestion

#: How far is looked ahead, seconds.
HORIZON_S = 2 * 86_400.0
#: Draws, at least and at most, and jobs that are simulated in all of them together.
FEWEST_DRAWS, DRAWS, SIMULATED = 5, 15, 30_000
#: Largest share of the jobs of Slurm's answer that may be unreadable.
UNREADABLE = 0.02
_JOB = re.compile(r"^JobId=(\d+)(?: ArrayJobId=(\d+) ArrayTaskId=(\S+))?", re.MULTILINE)
#: Accounting of the last day, from which jobs that come are drawn; without it none come.
PAST = "sacct.psv"
_NOTHING = (np.inf, np.inf, np.inf, -1)
_SHARES = re.compile(r"(?:FORCE|YES)(?::(\d+))?")


def forecast_site(question: TwinQuestion) -> TwinAnswer:
    """Forecast each waiting job. O(bytes of the texts + draws x the passes of HORIZON_S)."""
    texts, past = {**question.texts, PAST: ""}, question.texts.get(PAST, "")
    try:
        site = read_site(texts)
        ended = read_site({**question.texts, "scontrol_job.txt": ""}).jobs if past.strip() else ()
    except ConfigError as error:
        return TwinAnswer(why_not=str(error))
    numbers = _JobNumbers(question.texts["scontrol_job.txt"])
    unreadable = numbers.records - len({*map(numbers.of, site.jobs)})
    if unreadable > UNREADABLE * numbers.records:
        return TwinAnswer(why_not=f"{count(unreadable, 'job')} of {numbers.records} cannot be read")
    if why := next(reasons_not_to_forecast(site, question.missing), ""):
        return TwinAnswer(why_not=why)
    site = present_site(site)
    site = replace(site, jobs=SiteJobs.of(_planned(job, question.begins.get(numbers.of(job))) for job in site.jobs))
    arrivals = Arrivals((*ended, *site.jobs), question.time) if ended else None
    present = Present(site, question.time, arrivals)
    jobs = present.site.jobs
    owners = [numbers.of(job) for job in jobs]
    come = arrivals.past if arrivals else ()
    bounds = [question.runs.get(owner, _NOTHING) for owner in owners[: len(owners) - len(come)]]
    bounds += [_ran(job) or question.runs.get(numbers.of(job), _NOTHING) for job in come]
    rows = np.array(bounds).reshape(-1, 4)
    ran_s = np.where(present.runs, np.maximum(question.time - present.start, 1.0), 0.0)
    run_times = RunTimeDraws(rows[:, :3], present.limit_s, ran_s, 1 + rows[:, 3].astype(np.int64))
    draws = min(DRAWS, max(FEWEST_DRAWS, SIMULATED // max(len(jobs), 1)))
    outlooks = [present.outlook(run_times.drawn(seed), HORIZON_S, seed) for seed in range(draws)]
    waiting: dict[str, list[int]] = {}
    for row in np.flatnonzero(present.waits).tolist():
        waiting.setdefault(owners[row], []).append(row)
    sharing = _sharing_partitions(question.texts["scontrol_part.txt"])
    answer, unknown = dict[str, tuple[float, ...]](), dict[str, str]()
    starts = np.array([np.nan_to_num(one.start, nan=np.inf) for one in outlooks])
    ends = np.array([np.nan_to_num(one.finish, nan=np.inf) for one in outlooks])
    latest = question.time + HORIZON_S
    for number, tasks in waiting.items():
        shared = next((name for name in jobs[tasks[0]].partitions if name in sharing), "")
        start, end = (quantiles(times, LEVEL) for times in (starts[:, tasks].min(axis=1), ends[:, tasks].max(axis=1)))
        if shared:
            unknown[number] = f"jobs of partition {shared} share cores"
        elif not np.isfinite(start[1]) or not np.isfinite(end[1]):
            unknown[number] = f"it does not start within {HORIZON_S / 3600:.0f} hours"
        else:
            answer[number] = tuple(
                min(float(time), max(latest, float(middle)))
                for (low, middle, high) in (start, end)
                for time in (middle, low, high)
            )
    return TwinAnswer(answer, unknown, unfollowed=present.site.unknown)


def _ran(job: SiteJob) -> tuple[float, float, float, int] | None:
    """Return the run time of a job that has ended, as bounds; None if it has not."""
    run = job.runs[-1]
    return None if run.start is None or run.end is None else (*(run.end - run.start,) * 3, -1)


def _planned(job: SiteJob, begin: float | None) -> SiteJob:
    """Return the job; one that is handed over begins when it is planned to, whatever holds it until then."""
    return job if begin is None else replace(job, begin=begin, released=None)


def _sharing_partitions(text: str) -> frozenset[str]:
    """Return the partitions in which jobs share cores, by `scontrol -o show partition`."""
    shares = frozenset[str]()
    for _, words in scontrol_text.records(text, "PartitionName"):
        match = _SHARES.fullmatch(words.get("OverSubscribe", ""))
        if match and match[1] != "1":
            shares |= {words["PartitionName"]}
    return shares


class _JobNumbers:
    """JobId of each job, from `scontrol -o show job`; a list of waiting tasks has one for all.

    The components of a heterogeneous job have none.
    """

    def __init__(self, text: str) -> None:
        self._number_of, self._list_of = dict[str, str](), dict[str, str]()
        self.records = 0
        for number, array, tasks in _JOB.findall(text):
            self.records += 1
            if tasks and not tasks.isdigit():
                self._list_of[array] = number
            else:
                self._number_of[f"{array}_{tasks}" if array else number] = number

    def of(self, job: SiteJob) -> str:
        """Return the JobId of a job of the site; its id, if it has none."""
        return self._number_of.get(job.id) or self._list_of.get(job.array, job.id)
