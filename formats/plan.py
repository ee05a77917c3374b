"""Plans as JSON (schema pilotfish/plan/v1), and as shell scripts for Slurm (sbatch) or OAR (oarsub).

Rule: a script submits jobs in the order of their planned starts, each after its predecessors; every name is quoted for
the shell (and for SQL, with OAR).
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ..simulate.errors import InvalidJobError
from ..simulate.model.cluster import Cluster
from ..simulate.model.job import Job, Workflow
from ..simulate.model.plan import Plan, PlannedJob
from .quantities import clock
from .text import shell_words


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as a mapping for JSON: times in seconds from its start, energies in joules."""
    return {"schema": "pilotfish/plan/v1", **asdict(plan)}


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
        words = ["sbatch", "--parsable", f"--job-name={job.id}", f"--comment=pilotfish:{workflow.name}/{job.id}"]
        words += [f"--nodes={len(planned.nodes)}", f"--nodelist={','.join(planned.nodes)}", "--ntasks-per-node=1"]
        words.append(f"--cpus-per-task={_cores(planned, job, cluster)}")
        if memory := max(job.memory, job.profile.memory):
            words.append(f"--mem={math.ceil(memory / 2**20)}M")
        if job.walltime is not None:
            words.append(f"--time={clock(job.walltime)}")
        if job.directory is not None:
            words.append(f"--chdir={job.directory}")
        line = shell_words(words)
        if ids:
            line += f' --kill-on-invalid-dep=yes --dependency="afterok:{":".join(ids)}"'
        return f"$({line} {shell_words(['--wrap=' + _command(job)])})"

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
        where = ",".join("'" + name.replace("'", "''") + "'" for name in planned.nodes)
        limit = "" if job.walltime is None else f",walltime={clock(job.walltime, days=False)}"
        words = ["submit", f"--name=pilotfish:{workflow.name}/{job.id}", "-p", f"network_address in ({where})"]
        words += ["-l", f"/nodes={len(planned.nodes)}/core={_cores(planned, job, cluster)}{limit}"]
        if job.directory is not None:
            words += ["-d", job.directory]
        after = "".join(f' -a "{before}"' for before in ids)
        return f"$({shell_words(words)}{after} {shell_words([_command(job)])})"

    steps = ["submit() {", "    oarsub \"$@\" | sed -n 's/^OAR_JOB_ID=\\([0-9][0-9]*\\)$/\\1/p' | grep .", "}"]
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
    import networkx as nx

    planned = {job.id: job for job in plan.jobs}
    if unknown := next((identity for identity in planned if identity not in workflow.index), None):
        where = workflow.source or workflow.name
        raise InvalidJobError(f"{where}: the plan's job {unknown!r} is not a job of the workflow")

    def rank(identity: str) -> tuple[float, int]:
        return planned[identity].start_time, workflow.index[identity]

    variables: dict[str, str] = {}
    ordered = []
    for identity in nx.lexicographical_topological_sort(workflow.dag.subgraph(planned), rank):
        job = workflow.jobs[workflow.index[identity]]
        ids = [variables[before] for before in job.after if before in variables]
        ordered.append((planned[identity], job, ids))
        variables[identity] = f"$job_{len(variables)}"
    return ordered
