"""Tasks of a workflow as a format records them, whoever wants to plan, replay or write them.

Rule: what is recorded is kept to the last bit; what is not is None, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..job import DEFAULT_PROFILE, Job, Workflow


@dataclass(frozen=True, slots=True)
class Task:
    """One of them.

    Args:
        id: unique in its workflow.
        time: seconds that it ran, 0 or more; None: not recorded.
        after: ids of the tasks that must have ended before.
        cores: that it has, on all its nodes, 1 or more.
        busy: percent of a core that it uses in the mean; None: all of its cores.
        memory: bytes, on all its nodes; 0: not recorded.
        walltime: seconds after which it is ended; None: never.
        name: of what it runs.
    """

    id: str
    time: float | None
    after: tuple[str, ...] = ()
    cores: int = 1
    busy: float | None = None
    memory: float = 0.0
    walltime: float | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tasks:
    """Those of a workflow, in file order; `beside`: what else the file says, and of how many."""

    name: str
    tasks: tuple[Task, ...]
    source: str
    beside: Mapping[str, int] = field(default_factory=dict)

    def graph(self) -> Workflow:
        """A workflow of which only ids and dependencies mean something."""
        jobs = tuple(Job(task.id, DEFAULT_PROFILE, task.after) for task in self.tasks)
        return Workflow(self.name, jobs, self.source)


def tasks_of(workflow: Workflow) -> Tasks:
    """The tasks of a workflow of ours: alone on their nodes, with their mean demand; assumed run times are none."""
    return Tasks(workflow.name, tuple(map(_task, workflow.jobs)), workflow.source, _beside(workflow))


def _task(job: Job) -> Task:
    profile = job.profile
    known = profile.provenance.source != "default"
    busy = 100 * job.nodes * sum(group.count * group.demand for group in profile.groups)
    time, cores = profile.isolated_time, job.nodes * profile.threads
    used = min(busy / time, 100.0 * cores) if known and time > 0 else None
    return Task(
        job.id, time if known else None, job.after, cores, None if used == 100.0 * cores else used,
        max(job.memory, profile.memory) * job.nodes, job.walltime,
    )  # fmt: skip


def _beside(workflow: Workflow) -> dict[str, int]:
    jobs = workflow.jobs
    return {
        "memory bandwidth": sum(_moves(job) for job in jobs),
        "commands": sum(job.command is not None for job in jobs),
        "nodes: now cores": sum(job.nodes > 1 for job in jobs),
    }


def _moves(job: Job) -> bool:
    groups = job.profile.groups
    return any(group.bandwidth > 0 or any(phase.bandwidth > 0 for phase in group.phases) for group in groups)
