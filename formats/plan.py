"""A plan as a shell script that hands the same mapping to another scheduler: Slurm's sbatch, OAR's oarsub.

Rule: jobs are submitted in the order in which the plan starts them, each after those it waits for; every name
goes through the quoting of the shell (and of SQL, for OAR), so that no name can be read as anything else.
"""

from __future__ import annotations

import heapq
import math
import shlex
from collections.abc import Iterable

from ..errors import InvalidJobError
from ..job import Job, Workflow
from ..plan import Plan, PlannedJob
from ..platform import Cluster
from .units import clock


def export_slurm(plan: Plan, workflow: Workflow, cluster: Cluster | None = None) -> str:
    """Return a shell script of sbatch lines that pin each job to its nodes (sbatch(1)).

    Args:
        plan: the mapping; jobs that are not in it count as done, nobody waits for them.
        workflow: the jobs that the plan is for; one without a command is submitted as a no-op.
        cluster: no job asks for more cores than its nodes have there, however many threads it has.

    Raises:
        InvalidJobError: the plan has a job that the workflow has not.
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

    OAR's -a waits for any end of a job, also a failed one. Arguments and errors as of `export_slurm`.
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
    """Cores that a job asks for on each of its nodes: one a thread, as far as there are."""
    here = [] if cluster is None else [cluster.nodes[cluster.index[name]].type.cores for name in planned.nodes]
    return min([job.profile.threads, *here])


def _script(plan: Plan, workflow: Workflow, steps: Iterable[str]) -> str:
    about = f"{workflow.name} on {plan.cluster}, mapped by pilotfish with {plan.policy}"
    head = ["#!/bin/sh", f"# {''.join(c if c.isprintable() else '?' for c in about)}"]
    head.append("# Nodes, cores and dependencies are the plan's; waits on purpose and shared cores are not expressed.")
    idle = sum(workflow.jobs[workflow.index[planned.id]].command is None for planned in plan.jobs)
    if idle:
        head.append(f"# {idle} of its jobs have no command: they are submitted as no-ops")
    return "\n".join([*head, "set -eu", *steps, ""])


def _command(job: Job) -> str:
    """The shell line that runs a job, its variables set."""
    if job.command is None:
        return ":"
    variables = [f"{key}={value}" for key, value in job.environment]
    return shlex.join(["env", *variables, *job.command] if variables else job.command)


def _in_order(plan: Plan, workflow: Workflow) -> list[tuple[PlannedJob, Job, list[str]]]:
    """The jobs as they start, none before one that it waits for, with the variables that hold whose ids."""
    planned = {job.id: job for job in plan.jobs}
    for identity in planned:
        if identity not in workflow.index:
            where = workflow.source or workflow.name
            raise InvalidJobError(f"{where}: the plan's job {identity!r} is not a job here")
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
