"""The twin's priorities and fair-share factors next to those that a site's own commands printed.

Rule: the record is followed up to the time at which they were printed, and only what runs and waits then is compared.
The phase of the calculations is not known, so the age of a job may be off by up to PriorityCalcPeriod.
Complexity: O(runs of the record) and the calculations of priorities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..kernels.slurm.tables import PENDING, Slurm
from .job_columns import SiteJobs
from .site import Site
from .site_tables import Phases, completed
from .twin import followed

#: A number is near another one within this share of it, and a factor within this much.
NEAR_SHARE, NEAR_FACTOR = 0.05, 0.05


@dataclass(frozen=True, slots=True)
class PrintedNumbers:
    """The numbers that sprio and sshare printed at a time.

    Args:
        at: epoch seconds; None: not known, with the last record.
        priorities: job or array, and partition -> its priority.
        factors: account and user -> FairShare.
    """

    at: float | None
    priorities: Mapping[tuple[str, str], int]
    factors: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class NumbersCheck:
    """The distance of the twin's numbers from the printed ones.

    Args:
        number: how many were compared.
        near: share of them that are near, see NEAR_SHARE and NEAR_FACTOR; 0 without any.
        difference: mean |difference|; of priorities, by the printed one.
    """

    number: int
    near: float
    difference: float


@dataclass(frozen=True, slots=True)
class PrintedChecks:
    """The checks of a site: of the priorities of waiting jobs, and of the fair-share factors of users."""

    priorities: NumbersCheck
    factors: NumbersCheck


def printed_checks(site: Site, printed: PrintedNumbers, phases: Phases | None = None) -> PrintedChecks:
    """Follow the record of a site, and compare its priorities and factors with what was printed.

    Args:
        site: the site; the runs of its jobs say when they started.
        printed: the numbers.
        phases: of Slurm's clocks, where they are known.
    """
    site = completed(site)
    columns = SiteJobs.of(site.jobs)
    at = printed.at
    if at is None:
        times = (columns.submit, columns.runs.start, columns.runs.end)
        at = max(float(np.nanmax(time, initial=0.0)) for time in times)
    block = followed(site, at, phases)
    return PrintedChecks(_priorities(site, block, printed), _factors(site, block, printed))


def _priorities(site: Site, block: Slurm, printed: PrintedNumbers) -> NumbersCheck:
    columns, jobs = SiteJobs.of(site.jobs), block.jobs
    names = [part.name for part in site.partitions]
    differences, compared = list[float](), set[tuple[str, str]]()
    for row in np.flatnonzero(jobs["state"] == PENDING).tolist() if printed.priorities else ():
        for slot in range(int(jobs["part0"][row]), int(jobs["part0"][row] + jobs["parts"][row])):
            part = names[int(block.job_parts[slot])]
            for key in ((columns.ids[row], part), (columns.arrays[row], part)):
                if key in printed.priorities and key not in compared:
                    compared.add(key)
                    priority = printed.priorities[key]
                    differences.append((float(block.part_priority[slot]) - priority) / max(priority, 1))
    return _check(differences, NEAR_SHARE)


def _factors(site: Site, block: Slurm, printed: PrintedNumbers) -> NumbersCheck:
    factors = block.associations["factor"].tolist()
    differences = [
        factor - printed.factors[row.account, row.user]
        for row, factor in zip(site.associations, factors, strict=True)
        if row.user and (row.account, row.user) in printed.factors
    ]
    return _check(differences, NEAR_FACTOR)


def _check(differences: list[float], near: float) -> NumbersCheck:
    distances = np.abs(np.array(differences, np.float64))
    if not len(distances):
        return NumbersCheck(0, 0.0, 0.0)
    return NumbersCheck(len(distances), float((distances <= near).mean()), float(distances.mean()))
