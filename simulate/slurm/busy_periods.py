"""Busy periods of a site, in which jobs wait, and their makespans.

Rule: the record says when the site was busy, so that the periods and their jobs are the same on all sides. A period
lasts for as long as there is a job that waited WAITED_S or longer; its jobs are those that were submitted in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array

#: Least wait of a job that makes a site busy, seconds: shorter ones are the time of a pass of the scheduler.
WAITED_S = 60.0
#: Least jobs of a busy period: the makespan of one job is its turnaround.
LEAST_JOBS = 2


@dataclass(frozen=True, slots=True, eq=False)
class BusyPeriods:
    """The busy periods of a site.

    Args:
        number: of periods.
        job: rows of their jobs.
        period: of each of these jobs.
        begin: first submission of each period, epoch seconds.
        first: row of the job that was submitted first in each.
    """

    number: int
    job: Array
    period: Array
    begin: Array
    first: Array

    @classmethod
    def of(cls, submit: Array, wait_s: Array, counted: Array) -> BusyPeriods:
        """Return the periods. O(jobs log jobs).

        Args:
            submit: of each job, epoch seconds.
            wait_s: of each job, as recorded, seconds.
            counted: whether a job counts.
        """
        order = np.flatnonzero(counted)[np.argsort(submit[counted], kind="stable")]
        late = order[wait_s[order] >= WAITED_S]
        reach = np.maximum.accumulate(submit[late] + wait_s[late])
        is_first = np.ones(len(late), bool)
        is_first[1:] = submit[late[1:]] > reach[:-1]
        starts = submit[late[is_first]]
        ends = reach[np.append(is_first[1:], True)] if len(late) else starts
        period = np.searchsorted(starts, submit[order], side="right") - 1
        inside = period >= 0
        inside[inside] &= submit[order[inside]] <= ends[period[inside]]
        jobs, period = order[inside], period[inside]
        enough = np.bincount(period, minlength=len(starts)) >= LEAST_JOBS
        new_number = np.cumsum(enough) - 1
        jobs, period = jobs[enough[period]], new_number[period[enough[period]]]
        _, first = np.unique(period, return_index=True)
        return cls(int(enough.sum()), jobs, period, submit[jobs[first]], jobs[first])

    def makespans(self, ends: Array) -> Array:
        """Return the makespan of each period at the row of its first job, and NaN elsewhere, seconds.

        It is from the first submission to the last end.

        Args:
            ends: of each job in each replay, epoch seconds, [replays, jobs].
        """
        values = np.full(ends.shape, np.nan)
        for row, end in zip(values, ends, strict=True):
            last = np.full(self.number, -np.inf)
            np.maximum.at(last, self.period, end[self.job])
            row[self.first] = last - self.begin
        return values
