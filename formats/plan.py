"""Plans as JSON (schema pilotfish/plan/v1), and as shell scripts for Slurm (sbatch) or OAR (oarsub).

Rule: a plan that is written reads back as the same plan. A script submits jobs in the order of their planned starts,
each after its predecessors; every name is quoted for the shell (and for SQL, with OAR).
"""

from __future__ import annotations

import heapq
import math
import shlex
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ..simulate.errors import InvalidJobError
from ..simulate.model.cluster import Cluster
from ..simulate.model.job import Job, Workflow
from ..simulate.model.plan import Plan, PlannedJob, PredictionInterval, RunnerUp
from .files import check_schema
from .hostlist import expand
from .schema import (
    LARGEST,
    Convert,
    bad,
    build,
    clock,
    flag,
    found,
    from_source,
    listed,
    mapping,
    name,
    number,
    text,
    whole,
)

_amount = number(0, LARGEST)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as a mapping for JSON: times in seconds from its start, energies in joules."""
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
    "within": _or_none(lambda value: build(PredictionInterval, _WITHIN, value, _WITHIN)),
}
_JOB_NEEDS = tuple(key for key in _JOB if key not in ("energy_j", "why", "within"))
#: Keys of a job that are for people only: its class.
_FOR_PEOPLE = ("class", "class_why")


def _job(value: Any) -> PlannedJob:
    data = {key: part for key, part in mapping(value).items() if key not in _FOR_PEOPLE}
    job = build(PlannedJob, _JOB, data, _JOB_NEEDS)
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
    "truncated": flag,
    "evaluations": whole(0, 2**53),
    "jobs": _jobs,
    "warnings": listed(text),
    "makespan_within": _or_none(_pair),
}
_OPTIONAL: dict[str, Any] = {"evaluations": 0, "energy_j": None, "warnings": [], "makespan_within": None}


def parse_plan(data: dict[str, Any], source: str) -> Plan:
    """Return the plan that a mapping holds (schema pilotfish/plan/v1).

    Args:
        data: as read from the file, `schema` included.
        source: the file's name, for messages.

    Raises:
        ConfigError: names the key, what was found and what is allowed.
    """
    body = {**_OPTIONAL, **check_schema(data, "plan", source)}
    return from_source(source, lambda: build(Plan, _PLAN, body, _PLAN))


def export_slurm(plan: Plan, workflow: Workflow, cluster: Cluster | None = None) -> str:
    """Return a shell script of sbatch lines that pin each job to its nodes (sbatch(1)).

    Args:
        plan: the mapping; jobs that are not in it count as done.
        workflow: the jobs of the plan; a job without a command is submitted as a no-op.
        cluster: limits the requested cores to those of the nodes; None = one core for each thread.

    Raises:
        InvalidJobError: the plan has a job that the workflow does not have.
    """

    def submit(planned: PlannedJob, job: Job, ids: list[str]) -> str:
        words = [
            "sbatch",
            "--parsable",
            f"--job-name={job.id}",
            f"--comment=pilotfish:{workflow.name}/{job.id}",
            f"--nodes={len(planned.nodes)}",
            f"--nodelist={','.join(planned.nodes)}",
            "--ntasks-per-node=1",
            f"--cpus-per-task={_cores(planned, job, cluster)}",
        ]
        if memory := max(job.memory, job.profile.memory):
            words.append(f"--mem={math.ceil(memory / 2**20)}M")
        if job.walltime is not None:
            words.append(f"--time={clock(job.walltime)}")
        if job.directory is not None:
            words.append(f"--chdir={job.directory}")
        line = shlex.join(words)
        if ids:
            line += f' --kill-on-invalid-dep=yes --dependency="afterok:{":".join(ids)}"'
        return f"$({line} {shlex.quote('--wrap=' + _command(job))})"

    steps = [
        line
        for number, (planned, job, ids) in enumerate(_in_order(plan, workflow))
        for line in (f"job_{number}={submit(planned, job, ids)}", f"job_{number}=${{job_{number}%%;*}}")
    ]
    return _script(plan, workflow, steps)


def export_oar(plan: Plan, workflow: Workflow, cluster: Cluster | None = None) -> str:
    """Return a shell script of oarsub lines that pin each job to cores of its nodes (oarsub(1), OAR 2.5).

    OAR's -a waits for any end of a job, also a failed one. Arguments and errors as in `export_slurm`.
    """

    def submit(planned: PlannedJob, job: Job, ids: list[str]) -> str:
        quoted = (name.replace("'", "''") for name in planned.nodes)
        where = ",".join(f"'{name}'" for name in quoted)
        limit = "" if job.walltime is None else f",walltime={clock(job.walltime, days=False)}"
        words = [
            "submit",
            f"--name=pilotfish:{workflow.name}/{job.id}",
            "-p",
            f"network_address in ({where})",
        ]
        words += ["-l", f"/nodes={len(planned.nodes)}/core={_cores(planned, job, cluster)}{limit}"]
        if job.directory is not None:
            words += ["-d", job.directory]
        after = "".join(f' -a "{before}"' for before in ids)
        return f"$({shlex.join(words)}{after} {shlex.quote(_command(job))})"

    steps = [
        "submit() {",
        "    oarsub \"$@\" | sed -n 's/^OAR_JOB_ID=\\([0-9][0-9]*\\)$/\\1/p' | grep .",
        "}",
    ]
    steps += [
        f"job_{number}={submit(planned, job, ids)}"
        for number, (planned, job, ids) in enumerate(_in_order(plan, workflow))
    ]
    return _script(plan, workflow, steps)


def _cores(planned: PlannedJob, job: Job, cluster: Cluster | None) -> int:
    """Return the cores that a job requests on each of its nodes: one for each thread, at most those of the nodes."""
    here = [] if cluster is None else [cluster.nodes[cluster.index[name]].type.cores for name in planned.nodes]
    return min([job.profile.threads, *here])


def _script(plan: Plan, workflow: Workflow, steps: Iterable[str]) -> str:
    about = f"{workflow.name} on {plan.cluster}, mapped by pilotfish with {plan.policy}"
    head = ["#!/bin/sh", f"# {''.join(c if c.isprintable() else '?' for c in about)}"]
    head.append("# Nodes, cores and dependencies are the plan's; deliberate waits and shared cores are not expressed.")
    idle = sum(workflow.jobs[workflow.index[planned.id]].command is None for planned in plan.jobs)
    if idle:
        head.append(f"# {idle} of its jobs have no command: they are submitted as no-ops")
    return "\n".join([*head, "set -eu", *steps, ""])


def _command(job: Job) -> str:
    """Return the shell line that runs a job with its environment variables."""
    if job.command is None:
        return ":"
    variables = [f"{key}={value}" for key, value in job.environment]
    return shlex.join(["env", *variables, *job.command] if variables else job.command)


def _in_order(plan: Plan, workflow: Workflow) -> list[tuple[PlannedJob, Job, list[str]]]:
    """Return the jobs in the order of their starts, predecessors first.

    Each comes with the shell variables of the ids that it waits for.
    """
    planned = {job.id: job for job in plan.jobs}
    for identity in planned:
        if identity not in workflow.index:
            where = workflow.source or workflow.name
            raise InvalidJobError(f"{where}: the plan's job {identity!r} is not a job of the workflow")
    followers: dict[str, list[str]] = {identity: [] for identity in planned}
    waits = dict.fromkeys(planned, 0)
    for identity in planned:
        for before in set(workflow.jobs[workflow.index[identity]].after) & planned.keys():
            followers[before].append(identity)
            waits[identity] += 1

    def rank(identity: str) -> tuple[float, int, str]:
        return planned[identity].start_time, workflow.index[identity], identity

    ready = [rank(identity) for identity, count in waits.items() if not count]
    heapq.heapify(ready)
    variables: dict[str, str] = {}
    ordered = []
    while ready:
        identity = heapq.heappop(ready)[2]
        job = workflow.jobs[workflow.index[identity]]
        ids = [variables[before] for before in job.after if before in variables]
        ordered.append((planned[identity], job, ids))
        variables[identity] = f"$job_{len(variables)}"
        for follower in followers[identity]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready, rank(follower))
    return ordered
