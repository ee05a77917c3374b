"""The usage of associations when the period of a site begins, which Slurm does not record.

Rule: `sshare.psv`, printed at the begin, counts first; then the runs of the time before, if their accounting is there;
then `sshare_end.psv`, printed at the end, less what the period itself used. What it was is always said, but for the
first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...simulate.slurm.job_columns import SiteJobs
from ...simulate.slurm.past_usage import decay_over, period_begin, usage_at_begin, usage_of_runs
from ...simulate.slurm.site import Site, SiteAssociation
from ..slurm_values import MOST
from ..text import percent
from .bar_table import BarTable

#: Seconds from the last submission in the accounting until shares that were printed later are not its end.
_LATE_S = 6 * 3600.0
_DAY_S = 86_400.0
_ZERO = "usage when the period begins is taken as 0"
Usage = tuple[tuple[float, ...], str]


def usage_from_shares(table: BarTable, associations: Sequence[SiteAssociation]) -> tuple[float, ...]:
    """Return the RawUsage of each association from `sshare -a -l`; 0 for those that are not in the table."""
    usage: dict[tuple[str, str], float] = {}
    for record in table.records():
        try:
            raw = float(record.text("rawusage") or 0.0)
        except ValueError:
            raw = -1.0
        if not 0 <= raw < MOST:
            table.left_out["usages that cannot be read"] += 1
            continue
        usage[record.text("account"), record.text("user")] = raw
    return tuple(usage.get((row.account, row.user), 0.0) for row in associations)


def usage_from_runs(site: Site, before: SiteJobs) -> Usage:
    """Return the usage that earlier jobs leave, and how much of it is missing at most.

    Args:
        site: the site.
        before: jobs that ran before its period; those that its period has, too, do not count twice.
    """
    at, ids = period_begin(site), set(SiteJobs.of(site.jobs).ids)
    jobs = tuple(job for job in before if job.id not in ids)
    ends = [run.end for job in jobs for run in job.runs if run.end is not None]
    last = max([at, *ends])  # of jobs that ended before the period, but after its first submission
    usage = usage_of_runs(replace(site, jobs=jobs, usage=()), last)[: len(site.associations)]
    remains = decay_over(site.rules.priority, last - at)
    if remains <= 0.0:
        days = (last - at) / _DAY_S
        return (), f"{_ZERO}: a job of sacct_before.psv ends {days:,.0f} days after the period begins"
    usage = usage / remains
    starts = before.runs.start[~np.isnan(before.runs.start)]
    seconds = max(at - float(starts.min(initial=at)), 0.0)
    missing = percent(decay_over(site.rules.priority, seconds))
    sentence = f"from the jobs of {seconds / _DAY_S:.0f} days before, without up to {missing} of it"
    return tuple(usage.tolist()), f"usage when the period begins: {sentence}"


def usage_from_end(site: Site, table: BarTable, printed: float | None) -> Usage:
    """Return the usage with which the period began, from that at its end; () if that is not possible, and why.

    Args:
        site: the site.
        table: `sshare -a -l` at the end of its period.
        printed: when it was printed, epoch seconds; None: not known, with the last record.
    """
    columns = SiteJobs.of(site.jobs)
    if not len(columns):
        return (), ""
    times = (columns.submit, columns.runs.start, columns.runs.end)
    last = max(float(np.nanmax(time, initial=-math.inf)) for time in times)
    at = last if printed is None else printed
    if at - float(columns.submit.max()) > _LATE_S:
        return (), f"{_ZERO}: sshare_end.psv is later than the jobs in the accounting"
    end = np.array(usage_from_shares(table, site.associations))
    usage = usage_at_begin(site, end, at)
    if usage is None:
        return (), f"{_ZERO}: sshare_end.psv does not say it where usage is reset, or has decayed to nothing"
    older = decay_over(site.rules.priority, at - period_begin(site)) * float(usage[0])
    share = percent(older / float(end[0])) if end[0] > 0 else percent(0.0)
    sentence = f"sshare_end.psv less what its jobs used; {share} of the usage there is older"
    return tuple(usage.tolist()), f"usage when the period begins: {sentence}"
