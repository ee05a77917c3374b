"""Plans as JSON (schema pilotfish/plan/v1), and the parts of the scripts that adapters make of them.

Rule: a script submits jobs in the order of their planned starts, each after its predecessors; every name is quoted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ..simulate.errors import InvalidJobError
from ..simulate.model.cluster import Cluster
from ..simulate.model.job import Job, Workflow
from ..simulate.model.plan import Plan, PlannedJob
from .text import count


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as a mapping for JSON: times in seconds from its start, energies in joules."""
    document = {"schema": "pilotfish/plan/v1", **asdict(plan)}
    for of_queue in ("plain_finish_times", "recheck_s", "switches", "forecast_by"):  # its plan is not written to a file
        del document[of_queue]
    for job in document["jobs"]:
        del job["late_s"]  # of a queue, too
        if job["scored"] is None:
            del job["scored"]
    return document


def cores_of(planned: PlannedJob, job: Job, cluster: Cluster | None) -> int:
    """Return the cores that a job requests on each of its nodes: one for each thread, at most those of the nodes.

    Args:
        planned: where it runs.
        job: what runs.
        cluster: of the nodes; None = not known.
    """
    node_cores = [] if cluster is None else [cluster.nodes[cluster.index[name]].type.cores for name in planned.nodes]
    return min([job.profile.threads, *node_cores])


def plan_script(plan: Plan, workflow: Workflow, steps: Iterable[str]) -> str:
    """Return a shell script that names the plan from which it was made.

    Args:
        plan: the mapping.
        workflow: its jobs.
        steps: lines of the script.
    """
    about = f"{workflow.name} on {plan.cluster}, mapped by pilotfish with {plan.policy}"
    head = ["#!/bin/sh", f"# {''.join(c if c.isprintable() else '?' for c in about)}"]
    head.append("# Nodes, cores and dependencies are the plan's; deliberate waits and shared cores are not expressed.")
    idle = sum(workflow.jobs[workflow.index[planned.id]].command is None for planned in plan.jobs)
    if idle:
        head.append(f"# {count(idle, 'of its jobs has', 'of its jobs have')} no command: submitted as no-op")
    return "\n".join([*head, "set -eu", *steps, ""])


def shell_command(job: Job) -> str:
    """Return the shell line that runs a job with its environment variables."""
    if job.command is None:
        return ":"
    variables = [f"{key}={value}" for key, value in job.environment]
    return shlex.join(["env", *variables, *job.command] if variables else job.command)


def in_order(plan: Plan, workflow: Workflow) -> list[tuple[PlannedJob, Job, list[str]]]:
    """Return the jobs in the order of their starts, predecessors first.

    Each comes with the shell variables of the ids that it waits for.

    Args:
        plan: the mapping.
        workflow: its jobs.

    Raises:
        InvalidJobError: the plan has a job that the workflow does not have.
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
