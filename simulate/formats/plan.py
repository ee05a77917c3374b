"""The plan as JSON (schema pilotfish/plan/v1): what `plan --json` prints and the daemon keeps.

Rule: what is written can be read back as the same plan.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..plan import Plan, PlannedJob, RunnerUp, Within
from .hostlist import expand
from .reading import check_schema
from .shape import Convert, build, from_source, listed, mapping, name, number, text, whole
from .units import LARGEST, bad, found

_amount = number(0, LARGEST)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as a mapping ready for JSON: times in seconds from its start, energies in joules."""
    jobs = [
        {
            "id": job.id,
            "nodes": list(job.nodes),
            "start_time": job.start_time,
            "finish_time": job.finish_time,
            "isolated_run_time": job.isolated_run_time,
            "contention_slowdown": job.contention_slowdown,
            "energy_j": job.energy_j,
            "why": None if job.why is None else {"nodes": list(job.why.nodes), "cost_s": job.why.cost_s},
            "within": None if job.within is None else asdict(job.within),
        }
        for job in plan.jobs
    ]
    return {
        "schema": "pilotfish/plan/v1",
        **{key: getattr(plan, key) for key in _PLAN if key not in ("jobs", "warnings", "makespan_within")},
        "jobs": jobs,
        "warnings": list(plan.warnings),
        "makespan_within": None if plan.makespan_within is None else list(plan.makespan_within),
    }


def _or_none(convert: Convert[Any]) -> Convert[Any]:
    return lambda value: None if value is None else convert(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise bad(found(value), "true or false")
    return value


def _node(value: Any) -> str:
    names = expand(value)
    if len(names) != 1:
        raise bad(found(value), "the name of one node")
    return names[0]


_nodes = listed(_node, least=1)

def _pair(value: Any) -> tuple[float, float]:
    bounds = listed(_amount)(value)
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        raise bad(found(value), "[low, high], seconds")
    return bounds[0], bounds[1]


_WITHIN: dict[str, Convert[Any]] = dict.fromkeys(("earliest", "latest", "shortest", "longest"), _amount)
_RUNNER_UP: dict[str, Convert[Any]] = {"nodes": _nodes, "cost_s": number(-LARGEST, LARGEST)}
_JOB: dict[str, Convert[Any]] = {
    "id": name,
    "nodes": _nodes,
    "start_time": _amount,
    "finish_time": _amount,
    "isolated_run_time": _amount,
    "contention_slowdown": _amount,
    "energy_j": _or_none(_amount),
    "why": _or_none(lambda value: build(RunnerUp, _RUNNER_UP, value, _RUNNER_UP)),
    "within": _or_none(lambda value: build(Within, _WITHIN, value, _WITHIN)),
}
_JOB_NEEDS = tuple(key for key in _JOB if key not in ("energy_j", "why", "within"))
#: What may stand beside a job for those who read it: its class.
_TOLD = ("class", "class_why")


def _job(value: Any) -> PlannedJob:
    told = {key: part for key, part in mapping(value).items() if key not in _TOLD}
    job = build(PlannedJob, _JOB, told, _JOB_NEEDS)
    if job.finish_time < job.start_time:
        raise bad(found(job.finish_time), f"at least start_time, {job.start_time:g}", key="finish_time")
    return job


def _jobs(value: Any) -> tuple[PlannedJob, ...]:
    jobs = listed(_job)(value)
    seen: set[str] = set()
    for i, job in enumerate(jobs):
        if job.id in seen:
            raise bad(f"job {job.id!r} is planned twice", "each job once", key=f"[{i}].id")
        seen.add(job.id)
    return jobs


_PLAN: dict[str, Convert[Any]] = {
    "workflow": name,
    "cluster": name,
    "policy": name,
    "seed": whole(-(2**63), 2**63),
    "makespan": _amount,
    "energy_j": _or_none(_amount),
    "lower_bound": _amount,
    "simulated_in": _amount,
    "truncated": _flag,
    "evaluations": whole(0, 2**53),
    "jobs": _jobs,
    "warnings": listed(text),
    "makespan_within": _or_none(_pair),
}
_OPTIONAL: dict[str, Any] = {"evaluations": 0, "energy_j": None, "warnings": [], "makespan_within": None}


def parse_plan(data: dict[str, Any], source: str) -> Plan:
    """Return the plan that a mapping holds (formats: plan).

    Args:
        data: as read from the file, `schema` included.
        source: the file's name, for messages.

    Raises:
        ConfigError: naming the key, what was found and what is allowed.
    """
    body = {**_OPTIONAL, **check_schema(data, "plan", source)}
    return from_source(source, lambda: build(Plan, _PLAN, body, _PLAN))
