"""Write Batsim workloads: traces with a profile for each run time, and jobs that communicate with a profile each.

Rule: numbers keep their full precision, and fields of users are written as they were read.
Source: Batsim's documentation, "Workload": `parallel` has a row of amounts and a matrix, row by row;
`parallel_homogeneous` one amount for each processor and one for each pair of processors.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ...simulate.errors import ConfigError
from ...simulate.model.workload import Workload
from ..documents.quantities import plain
from .profiles import parse_profile
from .workload import KEPT, BatsimJob, BatsimWorkload

#: Largest total size of the matrices of a file, numbers.
MOST_NUMBERS = 10_000_000
#: The shortest walltime: Batsim does not allow 0, and its messages have six decimals.
SHORTEST_S = 1e-6


def batsim_text(workload: BatsimWorkload) -> str:
    """Return the text of a file, one line for each job and each profile. O(jobs)."""
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in workload.more.items()]
    if workload.nb_res is not None:
        parts.append(f'"nb_res": {workload.nb_res}')
    profiles = (f"{json.dumps(name)}: {json.dumps(profile.written)}" for name, profile in workload.profiles.items())
    parts.append(f'"jobs": [\n{_lines(json.dumps(described(job)) for job in workload.jobs)}]')
    parts.append(f'"profiles": {{\n{_lines(profiles)}}}')
    return f"{{\n{_lines(parts)}}}\n"


def _lines(parts: Iterable[str]) -> str:
    lines = list(parts)
    return ",\n".join(lines) + "\n" * bool(lines)


def described(job: BatsimJob) -> dict[str, Any]:
    """Return a job as the file has it."""
    description: dict[str, Any] = {"id": job.id, "subtime": plain(job.subtime), "res": job.res, "profile": job.profile}
    if job.walltime is not None:
        description["walltime"] = plain(job.walltime)
    return {**description, **job.more}


def batsim_of(workload: Workload, about: Mapping[str, str]) -> BatsimWorkload:
    """Return a workload as Batsim's, with a `delay` profile for each run time. O(jobs).

    Batsim has no delay and no walltime of 0: a job without run time computes nothing instead, and a walltime below the
    shortest possible one becomes that.

    Args:
        workload: the jobs.
        about: further keys of the file.
    """
    runs: list[float] = workload.run_time.tolist()
    names = {run: _name(run) for run in sorted(set(runs))}
    profiles = {name: _delay(run) for run, name in names.items()}
    fields: list[dict[str, Any]] = [{} for _ in range(len(workload))]
    for name in KEPT:
        for more, value in zip(fields, workload.more.get(name, ()), strict=False):
            if value != -1:
                more[name] = plain(float(value))
    return _batsim(workload, profiles, [names[run] for run in runs], fields, about)


def _name(seconds: float) -> str:
    return f"delay_{plain(seconds)}" if seconds else "nothing"


def _delay(seconds: float) -> dict[str, Any]:
    nothing = {"type": "parallel_homogeneous", "cpu": 0, "com": 0}
    return {"type": "delay", "delay": plain(seconds)} if seconds else nothing


def batsim_communicating(workload: Workload, about: Mapping[str, str], matrices: bool = False) -> BatsimWorkload:
    """Return the workload for `batsim_text`. O(jobs), with matrices O(sum of sizes^2).

    Args:
        workload: with the columns `computation` and `communication` (see `generate.communication`).
        about: further keys of the file.
        matrices: write `parallel` profiles instead of `parallel_homogeneous`.

    Raises:
        ConfigError: two jobs share a name, or the matrices are too large.
    """
    ids, sizes, more = workload.more.get("name", workload.id).tolist(), workload.size.tolist(), workload.more
    twice = next((name for name, times in Counter(ids).items() if times > 1), None)
    if twice is not None:
        raise ConfigError(workload.name, f"job {twice}", "given twice", "each once")
    numbers = sum(size * size for size in sizes)
    if matrices and numbers > MOST_NUMBERS:
        raise ConfigError(workload.name, "", f"its matrices have {numbers:,} numbers", f"at most {MOST_NUMBERS:,}")
    names, profiles = list(map(str, ids)), dict[str, dict[str, Any]]()
    amounts = more["computation"].tolist(), more["communication"].tolist()
    for name, size, cpu, com in zip(names, sizes, *amounts, strict=True):
        if matrices:
            profiles[name] = {"type": "parallel", "cpu": [cpu] * size, "com": [com] * (size * size)}
        else:
            profiles[name] = {"type": "parallel_homogeneous", "cpu": cpu, "com": com}
    return _batsim(workload, profiles, names, [{}] * len(names), about)


def _batsim(
    workload: Workload, profiles: Mapping[str, dict[str, Any]], names: Iterable[str], fields: Iterable[dict[str, Any]],
    about: Mapping[str, str],
) -> BatsimWorkload:  # fmt: skip
    """Return the workload whose jobs have the profiles `names` and further `fields`, and walltimes from SHORTEST_S."""
    columns = (workload.more.get("name", workload.id), workload.submit_time, workload.size, workload.walltime)
    jobs = tuple(
        BatsimJob(identity, submit, size, profile, None if wall == math.inf else max(wall, SHORTEST_S), more)
        for profile, more, identity, submit, size, wall in zip(
            names, fields, *(column.tolist() for column in columns), strict=True
        )
    )
    parsed = {name: parse_profile(written) for name, written in profiles.items()}
    return BatsimWorkload(jobs, parsed, workload.machine, about)
