"""The jobs and profiles of a replay as Batsim describes them to a decision component.

Rule: the description of a job or a profile in a Batsim file is passed on unchanged. A job of another format gets a
`delay` profile of its run time, as when it is converted. Workloads are named w0, w1, ... in the order of the files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...simulate.errors import ConfigError
from ...simulate.model.workload import Workload
from ..documents.files import decode, parse_trace, read_bytes
from ..documents.unpack import unpacked
from .write import batsim_of, described

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Descriptions:
    """The view of a workload that a decision component is given.

    Args:
        ids: of the jobs, such as "w0!12", by row of the workload.
        jobs: their descriptions, by row.
        profiles: those that jobs use, also as parts of sequences, by workload and name.
        files: name of the file of each workload.
    """

    ids: list[str]
    jobs: list[Data]
    profiles: dict[str, dict[str, Data]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def describe(workload: Workload, files: Sequence[Path]) -> Descriptions:
    """Return the descriptions of all jobs of a replay. O(jobs, bytes of the files).

    Args:
        workload: the jobs, joined from all files.
        files: where they come from.

    Raises:
        ConfigError: two files or two jobs have one name.
    """
    contents = [_as_written(path) for path in files]
    raws = [raw for raw in contents if raw is not None]
    as_written = len(raws) == len(files)
    if not as_written:
        written = batsim_of(workload, {})
        profiles = {name: profile.written for name, profile in written.profiles.items()}
        raws = [{"jobs": [described(job) for job in written.jobs], "profiles": profiles}]
    names = {_stem(path): f"w{i}" for i, path in enumerate(files)} if as_written else {"": "w0"}
    if len(names) < len(raws):
        raise ConfigError(str(files[0]), "", "two workloads have the same file name", "different names")
    job_of = {f"w{i}!{job['id']}": job for i, raw in enumerate(raws) for job in raw["jobs"]}
    origins = workload.more["workload"].tolist() if as_written and len(files) > 1 else [""] * len(workload)
    ids = [
        f"{names[origin] if len(names) > 1 else 'w0'}!{job_id}"
        for origin, job_id in zip(origins, workload.more.get("name", workload.id).tolist(), strict=True)
    ]
    if len(set(ids)) < len(ids):
        raise ConfigError(workload.name, "", "two jobs have the same id", "each id once")
    jobs = [job_of[job_id] for job_id in ids]
    _change_to_replayed(jobs, ids, workload.submit_time.tolist())
    used_profiles = {
        f"w{i}": _with_parts(raw["profiles"], {job["profile"] for job in jobs if job["id"].startswith(f"w{i}!")})
        for i, raw in enumerate(raws)
    }
    return Descriptions(ids, jobs, used_profiles, {f"w{i}": str(path) for i, path in enumerate(files[: len(raws)])})


def _with_parts(profiles: Mapping[str, Data], used: set[str]) -> dict[str, Data]:
    """Return the profiles in use, and the parts of their sequences, in the order of the file."""
    names, pending = set[str](), [*used]
    while pending:
        if (name := pending.pop()) not in names:
            names.add(name)
            pending += profiles[name].get("seq", ())
    return {name: profile for name, profile in profiles.items() if name in names}


def _as_written(path: Path) -> Data | None:
    """Return the content of a file of Batsim; None: it has another format."""
    data = unpacked(read_bytes(path), str(path))
    if not data.lstrip().startswith(b"{"):
        return None
    document = parse_trace(decode(data, str(path)), str(path))
    return document if {"jobs", "profiles"} <= document.keys() and "schema" not in document else None


def _change_to_replayed(jobs: Sequence[Data], ids: Sequence[str], submits: Sequence[float]) -> None:
    """Give descriptions their full ids, and submit times that may have been changed, such as by a load."""
    for job, job_id, submit in zip(jobs, ids, submits, strict=True):
        job["id"] = job_id
        if job["subtime"] != submit and not math.isclose(job["subtime"], submit, rel_tol=0.0, abs_tol=1e-12):
            job["subtime"] = submit
        if job.get("walltime") == -1:
            del job["walltime"]


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".json")
