"""Workloads from one format to another, and what the other cannot say.

Rule: a replay of what is written is the replay of what was read, start by start. Whatever else is lost is counted; of
that, only walltimes that SWF cannot leave out would change a replay, and only delays what it draws.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import ConfigError
from ..workload import Workload
from .batsim import BatsimWorkload, batsim_text
from .batsim_jobs import KEPT, batsim_of
from .converted import Converted, some
from .swf_write import dump_swf


def swf_to_batsim(jobs: Workload, description: str) -> Converted:
    """The JSON of a trace: a `delay` for each run time. O(jobs)."""
    counts = {
        "computing: a delay draws what idle resources do": int((jobs.run_time > 0).sum()),
        "walltimes of 0: now the shortest there is": int((jobs.walltime == 0).sum()),
    }
    made = replace(batsim_of(jobs), more={"description": description})
    return Converted(batsim_text(made), _jobs(jobs), some(counts), jobs.left_out)


def batsim_to_swf(given: BatsimWorkload, jobs: Workload, note: str) -> Converted:
    """The SWF of a workload of which `jobs` are what can be replayed. O(jobs). Raises ConfigError: see `dump_swf`."""
    if jobs.programs is not None:
        where = "how long its jobs run depends on which resources they get, which differ in speed"
        raise ConfigError(jobs.name, "", where, "a --cluster whose resources are of one speed")
    endless, more = np.isinf(jobs.walltime), jobs.more
    counts = {
        "names of profiles": len(jobs),
        "flops: now the time that they take": int((more["computes"] & (jobs.run_time > 0)).sum()),
        "delays: jobs of SWF compute": int((~more["computes"]).sum()),
        "ids that are no numbers: now counted": len(jobs) * ("name" in more),
        "jobs without a walltime: now the time that they take": int(endless.sum()),
        "fields of users": sum(not job.more.keys() <= more.keys() for job in given.jobs),
    }
    columns = {name: more[name] for name in KEPT if name in more}
    if "returns" in more:
        columns["status"] = np.where(more["returns"] != 0, 0, 1)
    written = replace(jobs, walltime=np.where(endless, jobs.run_time, jobs.walltime), more=columns)
    return Converted(dump_swf(written, [note]), _jobs(jobs), some(counts), jobs.left_out)


def _jobs(jobs: Workload) -> str:
    return f"{len(jobs):,} jobs" + (f" for {jobs.machine:,} resources" if jobs.machine is not None else "")
