"""Batsim's JSON workloads: jobs, and the profiles that they have.

Rule: all of it is read, checked, and written back as it was; fields that Batsim does not know are its users', and kept.
Source: Batsim's documentation, "Workload".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..workload import LONGEST
from .batsim_profiles import Profile
from .batsim_types import parse_profile
from .shape import from_source, inside, mapping, nearest, number, shown, text, whole
from .units import bad, found

_seconds = number(0, LONGEST)
_resources = whole(0, 2**31 - 64)
_JOB = ("id", "subtime", "res", "profile", "walltime")
_KNOWN = ("nb_res", "jobs", "profiles")


@dataclass(frozen=True, slots=True)
class Job:
    """What a job asks for.

    Args:
        id: as it is in the file: a number, or text such as "w0!12".
        subtime: when it is submitted, seconds.
        res: resources that it asks for; 0 where its profile uses storages only.
        profile: the name of its profile.
        walltime: seconds after which it is killed; None = never.
        more: fields of its user.
    """

    id: int | str
    subtime: float
    res: int
    profile: str
    walltime: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatsimWorkload:
    """A whole file.

    Args:
        nb_res: resources of the machine that it was made for; None = not said.
        more: fields of its user.
    """

    jobs: tuple[Job, ...]
    profiles: Mapping[str, Profile]
    nb_res: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def parse_batsim(data: Any, source: str) -> BatsimWorkload:
    """The workload that a JSON document holds. O(document).

    Raises:
        ConfigError: it is not one; the key is named.
    """
    return from_source(source, _workload, data)


def _workload(data: Any) -> BatsimWorkload:
    given = mapping(data)
    for key in ("jobs", "profiles"):
        if key not in given:
            raise bad("missing", "a Batsim workload: nb_res, jobs, profiles", key=key)
    profiles = {
        key: inside(f"profiles.{shown(key)}", parse_profile, value)
        for key, value in inside("profiles", mapping, given["profiles"]).items()
    }
    if not isinstance(given["jobs"], list):
        raise bad(found(given["jobs"]), "a list of jobs", key="jobs")
    jobs = tuple(_jobs(given["jobs"], profiles))
    nb_res = None if given.get("nb_res") is None else inside("nb_res", whole(1, 2**31 - 64), given["nb_res"])
    return BatsimWorkload(jobs, profiles, nb_res, {key: value for key, value in given.items() if key not in _KNOWN})


def _jobs(values: list[Any], profiles: Mapping[str, Profile]) -> list[Job]:
    jobs = [inside(f"jobs[{i}]", _job, value, profiles) for i, value in enumerate(values)]
    times = Counter(str(job.id) for job in jobs)
    if len(times) < len(jobs):
        twice = times.most_common(1)[0][0]
        raise bad(f"the id {twice[:60]!r} is given to {times[twice]} jobs", "each once", key="jobs")
    return jobs


def _job(value: Any, profiles: Mapping[str, Profile]) -> Job:
    data = mapping(value)
    for key in _JOB[:-1]:
        if key not in data:
            raise bad("missing", f"required of a job: {', '.join(_JOB[:-1])}", key=key)
    profile = data["profile"]
    if not isinstance(profile, str) or profile not in profiles:
        near = nearest(profile, profiles) if isinstance(profile, str) else ""
        raise bad(found(profile) + near, "the name of a profile of this file", key="profile")
    return Job(
        inside("id", _identity, data["id"]),
        inside("subtime", _seconds, data["subtime"]),
        inside("res", _resources, data["res"]),
        profile,
        inside("walltime", _walltime, data["walltime"]) if "walltime" in data else None,
        {key: part for key, part in data.items() if key not in _JOB},
    )


def _identity(value: Any) -> int | str:
    if isinstance(value, str) and value:
        return text(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise bad(found(value), "a whole number, or text")
    return value


def _walltime(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value == -1 or 0 < value <= LONGEST):
        raise bad(found(value), f"seconds above 0, at most {LONGEST:g}, or -1 for none")
    return None if value == -1 else float(value)


def dump_batsim(workload: BatsimWorkload) -> dict[str, Any]:
    """The mapping that `parse_batsim` reads back as this workload. O(jobs)."""
    return {
        **workload.more,
        **({} if workload.nb_res is None else {"nb_res": workload.nb_res}),
        "jobs": [_dump_job(job) for job in workload.jobs],
        "profiles": {name: dict(profile.written) for name, profile in workload.profiles.items()},
    }


def batsim_text(workload: BatsimWorkload) -> str:
    """The text of a file, a line for each job and each profile. O(jobs)."""
    parts = []
    for key, value in dump_batsim(workload).items():
        if key == "jobs":
            text = f"[\n{_lines(map(json.dumps, value))}]"
        elif key == "profiles":
            text = f"{{\n{_lines(f'{json.dumps(name)}: {json.dumps(part)}' for name, part in value.items())}}}"
        else:
            text = json.dumps(value)
        parts.append(f"{json.dumps(key)}: {text}")
    return f"{{\n{_lines(parts)}}}\n"


def _lines(parts: Iterable[str]) -> str:
    lines = list(parts)
    return ",\n".join(lines) + "\n" * bool(lines)


def _dump_job(job: Job) -> dict[str, Any]:
    walltime = {} if job.walltime is None else {"walltime": plain(job.walltime)}
    asked = {"id": job.id, "subtime": plain(job.subtime), "res": job.res, "profile": job.profile}
    return {**asked, **walltime, **job.more}


def plain(seconds: float) -> float:
    """A whole number without a point."""
    return int(seconds) if seconds.is_integer() else seconds
