"""A plan as a shell script of oarsub lines.

Rule: nodes and cores are the plan's; every word is quoted for the shell, and names of nodes for SQL as well.
Source: oarsub(1) of OAR 2.5.
"""

from __future__ import annotations

from ...formats.documents.quantities import clock
from ...formats.plan import cores_of, in_order, plan_script, shell_command
from ...formats.text import shell_words
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Workflow
from ...simulate.model.plan import Plan, PlannedJob


def export(plan: Plan, workflow: Workflow, cluster: Cluster | None = None) -> str:
    """Return a shell script of oarsub lines that pin each job to cores of its nodes (oarsub(1), OAR 2.5).

    OAR's -a waits for any end of a job, also a failed one. Arguments and errors as in
    `registry.export`.
    """

    def submit(planned: PlannedJob, job: Job, ids: list[str]) -> str:
        where = ",".join("'" + name.replace("'", "''") + "'" for name in planned.nodes)
        limit = "" if job.walltime is None else f",walltime={clock(job.walltime, days=False)}"
        words = ["submit", f"--name=pilotfish:{workflow.name}/{job.id}", "-p", f"network_address in ({where})"]
        words += ["-l", f"/nodes={len(planned.nodes)}/core={cores_of(planned, job, cluster)}{limit}"]
        if job.directory is not None:
            words += ["-d", job.directory]
        after = "".join(f' -a "{before}"' for before in ids)
        return f"$({shell_words(words)}{after} {shell_words([shell_command(job)])})"

    steps = ["submit() {", "    oarsub \"$@\" | sed -n 's/^OAR_JOB_ID=\\([0-9][0-9]*\\)$/\\1/p' | grep .", "}"]
    steps += [
        f"job_{number}={submit(planned, job, ids)}"
        for number, (planned, job, ids) in enumerate(in_order(plan, workflow))
    ]
    return plan_script(plan, workflow, steps)
