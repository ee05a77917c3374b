"""Jobs that compute and communicate, made from a trace that only has run times.

Rule: for a job that ran rp seconds on q processors, each processor computes rp * F_comp and sends rp * F_comm to each
processor (itself included, over no link). Its walltime is max(requested time, rp * F_w), large enough that no placement
makes it fail. Tiny jobs, jobs so long that one decides the makespan, and jobs wider than a cluster are left out; some
of the others are selected.
Source: M. Poquet, "Simulation approach for resource management", 2017, 5.5.1: comp = R_q * rp * F_comp with R_q a row
of q ones, comm = S_q * rp * F_comm with S_q a square of ones, wall = max(rwall, rp * F_w), all released at 0; 300 jobs
of 1 hour to 1 day (in 5.5.3 and 5.5.4: 1 to 4 hours) on at most 16 of 128 processors; F_comp 1e6, F_w 1e3, F_comm from
0 in 40 steps of 1e7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import ConfigError
from ..model.workload import Workload
from ..wording import count
from .models import generator


@dataclass(frozen=True, slots=True)
class Factors:
    """Value of a second of run time: operations of a processor, bytes between two processors, seconds of walltime."""

    computation: float = 1e6
    communication: float = 1e7
    walltime: float = 1e3


@dataclass(frozen=True, slots=True)
class JobSelection:
    """A selection of `jobs` jobs that ran `least` to `most` seconds on at most `largest` processors."""

    jobs: int = 300
    least: float = 3600.0
    most: float = 86400.0
    largest: int = 16

    def of(self, workload: Workload, seed: int) -> Workload:
        """Return the selected jobs in the trace's order, drawn uniformly. Raises ConfigError if there are too few."""
        run_time = workload.run_time
        fits = (run_time >= self.least) & (run_time <= self.most) & (workload.size <= self.largest)
        rows = np.flatnonzero(fits)
        if len(rows) < self.jobs:
            condition = f"{self.least:g} to {self.most:g} s on at most {count(self.largest, 'processor')}"
            allowed = f"a trace with at least {self.jobs:,}"
            raise ConfigError(workload.name, "", f"{len(rows):,} of its jobs ran {condition}", allowed)
        chosen = np.sort(rows[np.argsort(generator(seed).random(len(rows)), kind="stable")[: self.jobs]])
        return workload.take(chosen, "jobs that were not picked")


def communicating(workload: Workload, factors: Factors = Factors(), *, arrivals: bool = False) -> Workload:
    """Return the jobs with the columns `computation` (of each processor) and `communication` (of each pair).

    Args:
        workload: jobs with run times.
        factors: each 0 or more.
        arrivals: keep the trace's submit times; otherwise all jobs arrive at 0.
    """
    run_time = workload.run_time
    amounts = {"computation": run_time * factors.computation, "communication": run_time * factors.communication}
    return replace(
        workload,
        submit_time=workload.submit_time if arrivals else np.zeros(len(workload)),
        walltime=np.maximum(workload.walltime, run_time * factors.walltime),
        more={**workload.more, **amounts},
    )
