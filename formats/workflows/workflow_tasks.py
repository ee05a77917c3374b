"""Tasks of a workflow as a format records them, and what all readers of workflows share.

Rule: recorded values are kept to the last bit; a value that is not recorded is None or 0, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any

from ...simulate.errors import ConfigError
from ...simulate.model.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow, check_graph
from ..documents.document_errors import bad
from ..documents.schema import name
from ..profile import parse_profile
from ..text import count
from .job_rules import check_jobs

#: Service demand of a task whose recorded run time is zero, seconds.
TINY_S = 1e-6
#: The least utilisation of a task.
LEAST_UTILISATION = 1e-3


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a workflow.

    Args:
        id: unique in its workflow.
        time: run time in seconds, 0 or more; None: not recorded.
        after: ids of the tasks that must have ended before.
        cores: cores on all its nodes together, 1 or more.
        busy: average CPU use, percent of one core; None: all its cores are busy.
        memory: bytes, on all its nodes together; 0: not recorded.
        walltime: time limit in seconds; None: no limit.
        name: name of its program.
    """

    id: str
    time: float | None
    after: tuple[str, ...] = ()
    cores: int = 1
    busy: float | None = None
    memory: float = 0.0
    walltime: float | None = None
    name: str = ""

    @property
    def busy_cores(self) -> float:
        """Average number of busy cores."""
        return self.cores if self.busy is None else self.busy / 100


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a workflow in file order.

    Args:
        name: name of the workflow.
        tasks: in file order.
        source: the file's name, for messages.
        extras: what else the file records -> for how many tasks.
        warnings: what a plan of these tasks has to assume.
        origin: of the profiles that are made of the tasks.
        doubts: a sentence for each kind of implausible quantity in the file.
    """

    name: str
    tasks: tuple[Task, ...]
    source: str
    extras: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    origin: Provenance = DEFAULT_PROFILE.provenance
    doubts: tuple[str, ...] = ()


def title(value: Any) -> str:
    """Return the name of a workflow from any text; `workflow` if it cannot be one."""
    try:
        return name(value.replace("/", "-").strip()) if isinstance(value, str) else "workflow"
    except ConfigError:
        return "workflow"


def workflow_of(given: Tasks) -> Workflow:
    """Return tasks as jobs of one node each. O(tasks + dependencies).

    Threads are the task's cores, utilisation is its average CPU use over them, and service demand is that share of its
    run time. No memory bandwidth is recorded; it is taken as 0. Memory is what a task used, so it is the profile's and
    becomes no limit; without a run time there is no profile, and it is the job's.

    Raises:
        InvalidJobError: a duplicate task, an unknown predecessor or a cycle.
    """
    pool = ProfilePool()
    jobs = (
        Job(
            task.id,
            pool.one(_profile(task, given.origin)),
            task.after,
            memory=task.memory if task.time is None else 0.0,
        )
        for task in given.tasks
    )
    return check_workflow(Workflow(given.name, tuple(jobs), given.source, given.warnings))


def _profile(task: Task, origin: Provenance) -> Profile:
    if task.time is None:
        return DEFAULT_PROFILE
    utilisation = min(1.0, max(LEAST_UTILISATION, task.busy_cores / task.cores))
    group = ThreadGroup(task.cores, max(task.time, TINY_S) * utilisation, utilisation)
    return Profile((group,), memory=task.memory, provenance=origin)


def tasks_of(workflow: Workflow) -> Tasks:
    """Return the tasks of a workflow: alone on their nodes, with mean demands, without assumed run times."""
    jobs = workflow.jobs
    extras = {
        "memory bandwidth": sum(any(map(_uses_bandwidth, job.profile.groups)) for job in jobs),
        "commands": sum(job.command is not None for job in jobs),
        "nodes: now cores": sum(job.nodes > 1 for job in jobs),
    }
    assumed = default_warning([job.id for job in jobs if job.profile.provenance.source == "default"])
    doubts = tuple(text for text in workflow.warnings if text not in assumed)
    return Tasks(workflow.name, tuple(map(_task, jobs)), workflow.source, extras, doubts=doubts)


def _task(job: Job) -> Task:
    profile = job.profile
    is_known = profile.provenance.source != "default"
    busy = 100 * job.nodes * sum(group.count * group.demand for group in profile.groups)
    time, cores = profile.isolated_time, job.nodes * profile.threads
    used = min(busy / time, 100.0 * cores) if is_known and time > 0 else None
    return Task(
        job.id, time if is_known else None, job.after, cores, None if used == 100.0 * cores else used,
        max(job.memory, profile.memory) * job.nodes, job.walltime,
    )  # fmt: skip


def _uses_bandwidth(group: ThreadGroup) -> bool:
    return group.bandwidth > 0 or any(phase.bandwidth > 0 for phase in group.phases)


def earliest(tasks: Sequence[Task]) -> list[tuple[float, float]]:
    """Return (start, end) of each task in seconds if every task starts when its predecessors have ended.

    O(tasks + dependencies).

    Args:
        tasks: of a sound graph; a task without a run time takes 0 s.
    """
    times = dict[str, tuple[float, float]]()
    task_of = {task.id: task for task in tasks}
    for identity in topological(tasks):
        start = max((times[before][1] for before in task_of[identity].after), default=0.0)
        lasts, limit = task_of[identity].time or 0.0, task_of[identity].walltime
        times[identity] = start, start + (lasts if limit is None else min(lasts, limit))
    return [times[task.id] for task in tasks]


def topological(tasks: Sequence[Task]) -> list[str]:
    """Return the ids of the tasks of a sound graph, predecessors first. O(tasks + dependencies)."""
    return list(TopologicalSorter({task.id: task.after for task in tasks}).static_order())


def default_warning(jobs: list[str]) -> tuple[str, ...]:
    """Return a warning that names the jobs planned with the default profile."""
    names = ", ".join(jobs[:5]) + (", ..." if len(jobs) > 5 else "")
    assumed = DEFAULT_PROFILE.provenance.note
    have = "has no profile and is" if len(jobs) == 1 else "have no profile and are"
    return (f"{count(len(jobs), 'job')} {have} planned with the default ({assumed}): {names}",)


class ProfilePool:
    """Make equal profiles one object, and parse each spelling of a profile only once."""

    def __init__(self) -> None:
        self.parsed: dict[str, Profile] = {}
        self.equal: dict[Profile, Profile] = {}

    def parse(self, value: Any) -> Profile:
        """Return the profile that a mapping or list describes. Raises ConfigError."""
        try:
            spelling = repr(value)
        except RecursionError:
            raise bad("nested too deep", "a profile") from None
        if spelling not in self.parsed:
            self.parsed[spelling] = self.one(parse_profile(value))
        return self.parsed[spelling]

    def one(self, profile: Profile) -> Profile:
        """Return the first profile seen that equals this one."""
        return self.equal.setdefault(profile, profile)


def check_workflow(workflow: Workflow) -> Workflow:
    """Return `workflow` if each job can be planned and the graph is sound. O(jobs + dependencies).

    Raises:
        InvalidJobError: a job that breaks a rule of `job_rules`, a duplicate job, an unknown dependency or a cycle.
    """
    check_jobs(workflow.jobs, workflow.source or workflow.name)
    check_graph(workflow)
    return workflow


def checked_tasks(given: Tasks) -> Tasks:
    """Return `given` if its graph is sound; errors as in `check_workflow`."""
    jobs = tuple(Job(task.id, DEFAULT_PROFILE, task.after) for task in given.tasks)
    check_workflow(Workflow(given.name, jobs, given.source))
    return given
