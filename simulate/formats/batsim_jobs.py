"""Batsim's workloads as workloads of rigid jobs, and the other way round.

Rule: where waiting or computing alone decides how long a job runs, on resources that are alike, that is its run time;
else what it does is laid out for the replay, if the machine has what it needs. What cannot be replayed is an error with
the job's name, or left out and counted where that is wanted. A job without a walltime may run
for ever, as far as a scheduler knows: its walltime is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..phases import Laying
from ..workload import Workload, in_order
from .batsim import BatsimWorkload, Job, parse_batsim, plain
from .batsim_runs import Run, Runs
from .batsim_types import parse_profile
from .documents import parse_json
from .reading import decode, read_bytes, unpacked
from .shape import shown
from .swf import COLUMNS

Array = npt.NDArray[Any]
#: The shortest walltime: Batsim knows none of 0.
SHORTEST_S = math.ulp(0.0)
#: What SWF knows of a job and Batsim does not: fields of a user's own, where they are numbers; -1 = not known.
KEPT = tuple(
    name for name in COLUMNS
    if name not in ("job", "submit_time", "run_time", "allocated", "requested", "requested_time")
)  # fmt: skip


def load_batsim(path: Path) -> BatsimWorkload:
    """The workload in a file (JSON, also gzipped), as it is there. O(bytes). Raises ConfigError."""
    source = str(path)
    text = decode(unpacked(read_bytes(path), source), source)
    return parse_batsim(parse_json(text, source), source)


def read_batsim(
    path: Path, *, speeds: Collection[float] = (), storages: Collection[str] | None = None, skip_invalid: bool = False
) -> Workload:
    """The jobs of a Batsim workload, in the order of submission. O(bytes).

    Args:
        speeds: flop/s of the machine's resources, all that there are; () = not known.
        storages: names of the storages in the machine's network; None = it has no network.
        skip_invalid: leave out, and count, the jobs that cannot be replayed.

    Raises:
        ConfigError: it is none, or has a job that cannot be replayed.
    """
    return workload_of(load_batsim(path), path, speeds=speeds, storages=storages, skip_invalid=skip_invalid)


def workload_of(
    given: BatsimWorkload, path: Path, *, speeds: Collection[float] = (), storages: Collection[str] | None = None,
    skip_invalid: bool = False,
) -> Workload:  # fmt: skip
    """See `read_batsim`. O(jobs + profiles x sizes)."""
    site, refused, runs = Runs(given.profiles, path.parent, speeds, storages), list[int](), list[Run]()
    for i, job in enumerate(given.jobs):
        try:
            runs.append(site.run(job.profile, job.res) if job.res else Run(0.0))
        except ConfigError as error:
            if not skip_invalid:
                raise _refusal(str(path), i, job, given.profiles[job.profile].type, error) from None
            refused.append(i)
            runs.append(Run(0.0))
    workload = _workload(path, given, runs, site.laying)
    kept = np.ones(len(runs), bool)
    kept[refused] = False
    workload = workload.take(kept, "jobs that cannot be replayed")
    return in_order(workload.take(workload.size > 0, "jobs that ask for no resources"))


def _refusal(source: str, i: int, job: Job, type_: str, error: ConfigError) -> ConfigError:
    """What is wrong with a job's profile, and whose it is."""
    what = ": ".join(filter(None, (error.source, error.key, error.problem)))
    return ConfigError(
        source, f"jobs[{i}]", f"job {job.id}, profile {shown(job.profile)!r} ({type_}): {what}", error.allowed
    )


def _workload(path: Path, given: BatsimWorkload, runs: list[Run], laying: Laying) -> Workload:
    """All jobs, in the file's order."""
    jobs = given.jobs
    more = {
        **_kept(jobs),
        "profile": np.array([job.profile for job in jobs], object),
        "computes": np.array([run.computes for run in runs], bool),
    }
    numbered = all(isinstance(job.id, int) for job in jobs)
    if not numbered:
        more["name"] = np.array([str(job.id) for job in jobs], object)
    if any(run.status for run in runs):
        more["returns"] = np.array([run.status for run in runs], np.int64)
    placed = any(run.program >= 0 for run in runs)
    if placed:
        more["program"] = np.array([run.program for run in runs], np.int64)
    return Workload(
        path.name.removesuffix(".gz").removesuffix(".json"),
        np.array([job.id for job in jobs] if numbered else np.arange(1, len(jobs) + 1), np.int64),
        np.array([job.subtime for job in jobs], np.float64),
        np.array([run.seconds for run in runs], np.float64),
        np.array([math.inf if job.walltime is None else job.walltime for job in jobs], np.float64),
        np.array([job.res for job in jobs], np.int64),
        more=more,
        machine=given.nb_res,
        programs=laying.programs() if placed else None,
    )


def _kept(jobs: Sequence[Job]) -> dict[str, Array]:
    given = set[str]().union(*(job.more for job in jobs if job.more))
    columns = {name: [job.more.get(name, -1) for job in jobs] for name in KEPT if name in given}
    return {name: np.array(column, np.float64) for name, column in columns.items() if all(map(_counts, column))}


def _counts(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 2**53


def batsim_of(workload: Workload) -> BatsimWorkload:
    """A workload in Batsim's words: a `delay` for each run time. O(jobs).

    A job that takes no time computes nothing instead, as Batsim has no delay of 0; one that asks for no time asks for
    the shortest there is.
    """
    profiles = {name: parse_profile(value) for name, value in map(_profile, np.unique(workload.run_time).tolist())}
    names = workload.more.get("name", workload.id).tolist()
    kept: list[dict[str, Any]] = [{} for _ in names]
    for name in KEPT:
        for fields, value in zip(kept, workload.more.get(name, ()), strict=False):
            if value != -1:
                fields[name] = plain(float(value))
    columns = (workload.submit_time, workload.run_time, workload.walltime, workload.size)
    jobs = tuple(
        Job(name, submit, size, _profile(run)[0], None if wall == math.inf else wall or SHORTEST_S, fields)
        for name, fields, submit, run, wall, size in zip(
            names, kept, *(column.tolist() for column in columns), strict=True
        )
    )
    return BatsimWorkload(jobs, profiles, workload.machine)


def _profile(seconds: float) -> tuple[str, dict[str, Any]]:
    """Name and content of the profile of a run time."""
    if seconds == 0:
        return "nothing", {"type": "parallel_homogeneous", "cpu": 0, "com": 0}
    return f"delay_{plain(seconds)}", {"type": "delay", "delay": plain(seconds)}
