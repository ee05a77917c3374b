"""A plan as a shell script of sbatch lines.

Rule: nodes, cores and dependencies are the plan's; a limit is what the job requests, never what was measured or
forecast; every word is quoted for the shell.
Source: sbatch(1).
"""

from __future__ import annotations

from ...formats.documents.quantities import clock
from ...formats.plan import cores_of, in_order, plan_script, shell_command
from ...formats.text import count, shell_words
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Workflow
from ...simulate.model.plan import Plan, PlannedJob
from .submission import memory_option


def export(plan: Plan, workflow: Workflow, cluster: Cluster | None = None) -> str:
    """Return a shell script of sbatch lines that pin each job to its nodes (sbatch(1)).

    Args:
        plan: The mapping; jobs that are not in it count as done.
        workflow: The jobs of the plan; a job without a command is submitted as a no-op.
        cluster: Limits the requested cores to those of the nodes; None: one core for each thread.

    Raises:
        InvalidJobError: The plan has a job that the workflow does not have.
    """

    def submit(planned: PlannedJob, job: Job, ids: list[str]) -> str:
        words = ["sbatch", "--parsable", f"--job-name={job.id}", f"--comment=pilotfish:{workflow.name}/{job.id}"]
        words += [f"--nodes={len(planned.nodes)}", f"--nodelist={','.join(planned.nodes)}", "--ntasks-per-node=1"]
        words.append(f"--cpus-per-task={cores_of(planned, job, cluster)}")
        words += memory_option(job)
        if job.walltime is not None:
            words.append(f"--time={clock(job.walltime)}")
        if job.directory is not None:
            words.append(f"--chdir={job.directory}")
        line = shell_words(words)
        if ids:
            line += f' --kill-on-invalid-dep=yes --dependency="afterok:{":".join(ids)}"'
        return f"$({line} {shell_words(['--wrap=' + shell_command(job)])})"

    steps = [
        line
        for number, (planned, job, ids) in enumerate(in_order(plan, workflow))
        for line in (f"job_{number}={submit(planned, job, ids)}", f"job_{number}=${{job_{number}%%;*}}")
    ]
    planned = (workflow.jobs[workflow.index[job.id]] for job in plan.jobs)
    if measured := sum(job.profile.memory > 0 and not memory_option(job) for job in planned):
        steps.insert(
            0, f"# No --mem for {count(measured, 'job')} without the key memory: a measured peak is not a limit."
        )
    return plan_script(plan, workflow, steps)
