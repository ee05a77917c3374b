"""IRMaSim's workloads (JSON) as workloads of rigid jobs, with what their tasks move and need.

Rule: as IRMaSim, keys that it does not know are passed over. A task takes its instructions / (IPC x frequency), here on
the slowest core there is; mem (MB) and mem_vol (MB) are a task's own. What users requested, req_time, ends no job
there, so that there are no walltimes here: rules of jobs look at it (`asked`).
Source: IRMaSim's paper (Herrera et al., CCGrid 2021), III-A; the examples beside its code.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..errors import ConfigError
from ..workload import LONGEST, Workload, in_order
from .shape import Convert, from_source, inside, listed, mapping, name, number, shown, whole
from .units import bad, found

_MB = 1e6
_COUNT = whole(1, 2**53)
#: Of a profile, or of a job itself; `cpu` is what the paper calls req_ops.
_TASK: dict[str, Convert[Any]] = {
    "req_ops": number(),
    "cpu": number(),
    "ipc": number(above=True),
    "req_time": number(),
    "mem": number(),
    "mem_vol": number(),
}
_JOB: dict[str, Convert[Any]] = {
    "id": name,
    "subtime": number(0, LONGEST),
    "res": _COUNT,
    "nodes": _COUNT,
    "ntasks": _COUNT,
    "ntasks_per_node": _COUNT,
    **_TASK,
}


@dataclass(frozen=True, slots=True)
class _Job:
    """Seconds, MB, MB and seconds are a task's."""

    called: str
    profile: str
    submit: float
    tasks: int
    run: float
    memory: float
    volume: float
    asked: float


def is_irmasim(data: Any) -> bool:
    """Whether a document is a workload of IRMaSim's: its jobs, or their profiles, count instructions."""
    if not isinstance(data, dict):
        return False
    profiles, jobs = data.get("profiles"), data.get("jobs")
    parts = [*(profiles.values() if isinstance(profiles, dict) else ()), *(jobs if isinstance(jobs, list) else ())]
    return any(isinstance(part, dict) and "type" not in part and ("req_ops" in part or "ipc" in part) for part in parts)


def parse_irmasim(
    data: Mapping[str, Any], path: Path, *, speeds: Collection[float] = (), skip_invalid: bool = False
) -> Workload:
    """The jobs of a document, in the order of submission. O(jobs).

    Args:
        speeds: cycles/s of the machine's cores, all that there are.
        skip_invalid: leave out, and count, what is not a job.

    Raises:
        ConfigError: something is no job; how fast the cores are is not known.
    """
    return from_source(str(path), _workload, data, path, speeds, skip_invalid)


def _workload(data: Mapping[str, Any], path: Path, speeds: Collection[float], skip_invalid: bool) -> Workload:
    if not speeds:
        why = "its jobs count instructions, and nobody says how fast a core is"
        raise bad(why, "--cluster with the speed of its node types, cycles/s of a core")
    profiles = {
        key: inside(f"profiles.{shown(key)}", _known, part, _TASK)
        for key, part in inside("profiles", mapping, data.get("profiles", {})).items()
    }
    jobs, refused, slowest = list[_Job](), 0, min(speeds)
    for i, part in enumerate(inside("jobs", listed(lambda each: each), data.get("jobs"))):
        try:
            jobs.append(inside(f"jobs[{i}]", _job, part, i, profiles, slowest))
        except ConfigError:
            if not skip_invalid:
                raise
            refused += 1
    times = np.array([[job.submit, job.run, job.memory, job.volume, job.asked] for job in jobs], np.float64)
    submit, run, memory, volume, asked = times.reshape(-1, 5).T.copy()
    more: dict[str, Any] = {
        "name": np.array([job.called for job in jobs], object),
        "profile": np.array([job.profile or job.called for job in jobs], object),
        "memory": memory * _MB,
        "volume": volume * _MB,
        "asked": asked,
    }
    machine = inside("nb_res", _COUNT, data["nb_res"]) if "nb_res" in data else None
    left_out = {"jobs that cannot be replayed": refused} if refused else {}
    return in_order(
        Workload(
            path.name.removesuffix(".gz").removesuffix(".json"), np.arange(1, len(jobs) + 1), submit,
            run, np.full(len(jobs), math.inf), np.array([job.tasks for job in jobs], np.int64),
            more=more, machine=machine, left_out=left_out,
        )
    )  # fmt: skip


def _known(value: Any, table: Mapping[str, Convert[Any]]) -> dict[str, Any]:
    return {key: inside(key, table[key], part) for key, part in mapping(value).items() if key in table}


def _job(value: Any, i: int, profiles: Mapping[str, Mapping[str, Any]], speed: float) -> _Job:
    given = _known(value, _JOB)
    profile, task = value.get("profile", ""), cast("Mapping[str, Any]", given)
    if profile:
        if not isinstance(profile, str) or profile not in profiles:
            raise bad(found(profile), "a profile of this file", key="profile")
        task = dict(profiles[profile])
    work = next((task[key] for key in ("req_ops", "cpu") if key in task), None)
    for key, part in (("subtime", given.get("subtime")), ("req_ops", work), ("ipc", task.get("ipc"))):
        if part is None:
            raise bad("missing", "subtime, and of the job or its profile req_ops and ipc", key=key)
    seconds = work / task["ipc"] / speed
    if seconds > LONGEST:
        raise bad(f"it takes {seconds:g} seconds", f"at most {LONGEST:g}", key="req_ops")
    asked, memory, volume = task.get("req_time", math.inf), task.get("mem", 0.0), task.get("mem_vol", 0.0)
    return _Job(given.get("id", f"job{i}"), profile, given["subtime"], _tasks(given), seconds, memory, volume, asked)


def _tasks(given: Mapping[str, Any]) -> int:
    """How many: said outright, or as nodes and tasks on each."""
    if "res" in given:
        return int(given["res"])
    if "ntasks" in given:
        return int(given["ntasks"])
    if "nodes" not in given:
        raise bad("missing", "res, or ntasks, or nodes", key="res")
    return int(given["nodes"] * given.get("ntasks_per_node", 1))
