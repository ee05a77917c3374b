"""Batsim's JSON workloads: read and check them, and convert them to rigid jobs.

Rule: the whole file is read, checked and kept unchanged; unknown fields belong to the user and are kept. If
waiting or computing alone decides how long a job runs, on equal resources, that is its run time; otherwise its work
becomes a program for the replay, if the machine has what it needs. A job that cannot be replayed is an error with its
name, or is left out and counted on request. A job without a walltime has an infinite one.
Source: Batsim's documentation, "Workload".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...simulate.errors import ConfigError
from ...simulate.model.programs import ProgramBuilder
from ...simulate.model.workload import LONGEST, Workload, in_order
from ..documents.document_errors import bad, found, from_source, inside, shown
from ..documents.files import decode, parse_trace, read_bytes
from ..documents.quantities import checked_number, is_number, number, whole
from ..documents.schema import entries, is_text, mapping, one_of, require, text
from ..documents.unpack import unpacked
from ..replays.swf import COLUMNS
from .profiles import BatsimProfile, parse_profile
from .runs import BatsimRun, Runs, is_late

_seconds = number(0, LONGEST)
#: Most resources that a job can request.
MOST_RESOURCES = 2**31 - 64
_resources = whole(0, MOST_RESOURCES)
_JOB = ("id", "subtime", "res", "profile", "walltime")
_KNOWN_KEYS = ("nb_res", "jobs", "profiles")
#: Counted of jobs that are left out on request.
UNREADABLE = "jobs that cannot be replayed"
_NO_FIELDS: Mapping[str, Any] = {}


class BatsimJob(NamedTuple):
    """A job of the file.

    Args:
        id: as in the file: a number, or text such as "w0!12".
        subtime: submission time, seconds.
        res: requested resources; 0 if its profile only uses storages.
        profile: the name of its profile.
        walltime: seconds after which it is killed; None = never.
        more: fields of the user.
    """

    id: int | str
    subtime: float
    res: int
    profile: str
    walltime: float | None = None
    more: Mapping[str, Any] = _NO_FIELDS


@dataclass(frozen=True, slots=True)
class BatsimWorkload:
    """A whole file.

    Args:
        jobs: in file order.
        profiles: by name.
        nb_res: resources of the machine that it was made for; None = not stated.
        more: fields of the user.
        left_out: number of invalid jobs that were left out.
    """

    jobs: tuple[BatsimJob, ...]
    profiles: Mapping[str, BatsimProfile]
    nb_res: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    left_out: int = 0


def parse_batsim(data: Any, source: str, *, skip_invalid: bool = False) -> BatsimWorkload:
    """Return the workload that a JSON document holds. O(document).

    Args:
        data: the JSON document.
        source: the file's name, for messages.
        skip_invalid: leave out, and count, invalid jobs.

    Raises:
        ConfigError: not a Batsim workload; the key is named.
    """
    return from_source(source, _workload, data, skip_invalid)


def _workload(data: Any, skip_invalid: bool) -> BatsimWorkload:
    document = mapping(data)
    require(document, ("jobs", "profiles"), f"a Batsim workload: {', '.join(_KNOWN_KEYS)}")
    profiles = inside("profiles", entries, document["profiles"], lambda key, value: parse_profile(value))
    if not isinstance(document["jobs"], list):
        raise bad(found(document["jobs"]), "a list of jobs", key="jobs")
    jobs = tuple(_jobs(document["jobs"], profiles, skip_invalid=skip_invalid))
    nb_res = None if document.get("nb_res") is None else inside("nb_res", whole(1, 2**31 - 64), document["nb_res"])
    more = {key: value for key, value in document.items() if key not in _KNOWN_KEYS}
    return BatsimWorkload(jobs, profiles, nb_res, more, len(document["jobs"]) - len(jobs))


def _jobs(values: list[Any], profiles: Mapping[str, BatsimProfile], *, skip_invalid: bool) -> list[BatsimJob]:
    if (usual := _usual_jobs(values, profiles)) is not None:
        return usual
    jobs = list[BatsimJob]()
    for i, value in enumerate(values):
        try:
            jobs.append(inside(f"jobs[{i}]", _job, value, profiles))
        except ConfigError:
            if not skip_invalid:
                raise
    times = Counter(str(job.id) for job in jobs)
    if len(times) < len(jobs):
        twice = times.most_common(1)[0][0]
        raise bad(f"the id {twice[:60]!r} is given to {times[twice]} jobs", "each once", key="jobs")
    return jobs


def _usual_jobs(values: list[Any], profiles: Mapping[str, BatsimProfile]) -> list[BatsimJob] | None:
    """Return all jobs if each value of each column is usual; None: they have to be looked at one by one."""
    try:
        ids, submits, sizes, names = ([value[key] for value in values] for key in _JOB[:-1])
        walls = [value.get("walltime", -1) for value in values]
    except (TypeError, KeyError, AttributeError):
        return None
    whole_ids, numbers = set(map(type, ids)) <= {int}, {int, float}
    if not (
        {*map(type, submits), *map(type, walls)} <= numbers and set(map(type, sizes)) <= {int}
        and set(map(type, names)) <= {str} and profiles.keys() >= set(names)
        and (whole_ids or set(map(type, ids)) <= {str}) and len(set(ids)) == len(ids)
    ):  # fmt: skip
        return None
    if whole_ids:
        identified = min(ids, default=0) >= -(2**63) and max(ids, default=0) < 2**63
    else:
        identified = "" not in ids and is_text("".join(ids))
    if not identified or not all(
        (low <= min(column, default=high) and max(column, default=low) <= high)
        for column, low, high in ((submits, 0, LONGEST), (sizes, 0, MOST_RESOURCES), (walls, -1, LONGEST))
    ):
        return None
    ends = [None if wall == -1 else float(wall) for wall in walls]
    if any(wall is not None and not wall > 0 for wall in ends) or math.isnan(sum(submits) + sum(walls)):
        return None
    usual = 4 + ("walltime" in values[0]) if values else 0
    more = [
        _NO_FIELDS if len(value) == usual and ("walltime" in value) == (usual == 5)
        else {key: part for key, part in value.items() if key not in _JOB}
        for value in values
    ]  # fmt: skip
    columns = zip(ids, map(float, submits), sizes, names, ends, more, strict=True)
    return list(map(partial(tuple.__new__, BatsimJob), columns))  # a third of the time of BatsimJob(...)


def _job(value: Any, profiles: Mapping[str, BatsimProfile]) -> BatsimJob:
    data = mapping(value)
    require(data, _JOB[:-1])
    return BatsimJob(
        inside("id", _identity, data["id"]),
        inside("subtime", _seconds, data["subtime"]),
        inside("res", _resources, data["res"]),
        inside("profile", one_of, data["profile"], profiles, "the name of a profile of this file"),
        inside("walltime", _walltime, data["walltime"]) if "walltime" in data else None,
        {key: part for key, part in data.items() if key not in _JOB},
    )


def _identity(value: Any) -> int | str:
    if isinstance(value, str) and value:
        return text(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad(found(value), "a whole number, or text")
    if not -(2**63) <= value < 2**63:
        raise bad(found(value), f"a whole number from {-(2**63)} to {2**63 - 1}, or text")
    return value


def _walltime(value: Any) -> float | None:
    if is_number(value) and value == -1:
        return None
    return checked_number(value, f"seconds above 0, at most {LONGEST:g}, or -1 for none", 0, LONGEST, above=True)


Array = npt.NDArray[Any]
#: Columns of SWF that Batsim does not have, kept as user fields if they are numbers; -1 = unknown.
KEPT = tuple(
    name for name in COLUMNS
    if name not in ("job", "submit_time", "run_time", "allocated", "requested", "requested_time")
)  # fmt: skip


def load_batsim(path: Path) -> BatsimWorkload:
    """Return the workload in a file (JSON, may be gzipped) as it is there. O(bytes). Raises ConfigError."""
    source = str(path)
    text = decode(unpacked(read_bytes(path), source), source)
    return parse_batsim(parse_trace(text, source), source)


def workload_of(
    given: BatsimWorkload, path: Path, *, speeds: Collection[float] = (), storages: Collection[str] | None = None,
    skip_invalid: bool = False,
) -> Workload:  # fmt: skip
    """Return the jobs of a workload in the order of submission. O(jobs + profiles x sizes).

    Args:
        given: the workload as read.
        path: its file, for messages and for the files that its profiles name.
        speeds: flop/s of all resources of the machine; () = unknown.
        storages: names of the storages in the machine's network; None = the machine has no network.
        skip_invalid: leave out, and count, jobs that cannot be replayed.

    Raises:
        ConfigError: a job that cannot be replayed.
    """
    site, refused, runs = Runs(given.profiles, path.parent, speeds, storages), list[int](), list[BatsimRun]()
    for i, job in enumerate(given.jobs):
        try:
            runs.append(site.run(job.profile, job.res) if job.res else BatsimRun(0.0))
        except ConfigError as error:
            if not skip_invalid:
                raise _refusal(str(path), i, job, given.profiles[job.profile].type, error) from None
            refused.append(i)
            runs.append(BatsimRun(0.0))
    workload = _rigid_workload(path, given, runs, site.builder)
    readable = np.ones(len(runs), bool)
    readable[refused] = False
    workload = workload.take(readable, UNREADABLE)
    return in_order(workload.take(workload.size > 0, "jobs without resources"))


def _refusal(source: str, i: int, job: BatsimJob, type_: str, error: ConfigError) -> ConfigError:
    """Return the error of a job's profile, naming the job."""
    problem = ": ".join(filter(None, (error.source, error.key, error.problem)))
    return ConfigError(
        source, f"jobs[{i}]", f"job {job.id}, profile {shown(job.profile)!r} ({type_}): {problem}", error.allowed
    )


def _rigid_workload(path: Path, batsim: BatsimWorkload, runs: list[BatsimRun], builder: ProgramBuilder) -> Workload:
    """Return all jobs in file order."""
    jobs = batsim.jobs
    more = {
        **_kept_columns(jobs),
        "profile": np.array([job.profile for job in jobs], object),
        "computes": np.array([run.computes for run in runs], bool),
        "work": np.array([run.work for run in runs], object),
        "late": np.array([is_late(run, job.walltime) for run, job in zip(runs, jobs, strict=True)], bool),
    }
    numbered = all(isinstance(job.id, int) for job in jobs)
    if not numbered:
        more["name"] = np.array([str(job.id) for job in jobs], object)
    volume, memory = [run.moved for run in runs], [batsim.profiles[job.profile].memory for job in jobs]
    if any(volume) or any(memory):
        more["volume"], more["memory"] = np.array(volume, np.float64), np.array(memory, np.float64)
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
        machine=batsim.nb_res,
        programs=builder.programs() if placed else None,
        left_out={UNREADABLE: batsim.left_out} if batsim.left_out else {},
    )


def _kept_columns(jobs: Sequence[BatsimJob]) -> dict[str, Array]:
    names = set[str]().union(*(job.more for job in jobs if job.more))
    columns = {name: [job.more.get(name, -1) for job in jobs] for name in KEPT if name in names}
    return {name: np.array(column, np.float64) for name, column in columns.items() if all(map(_counts, column))}


def _counts(value: Any) -> bool:
    return is_number(value) and abs(value) <= 2**53
