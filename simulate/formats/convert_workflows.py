"""Workflows from one format to another, or to a trace, and what the other cannot say.

Rule: the tasks of what is written are those of what was read: run times, cores, who waits for whom. Whatever else is
lost is counted. A trace has submit times in place of dependencies, and in SWF one job before each.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..job import Workflow
from ..workload import Workload, in_order
from .converted import Converted, some
from .dax_write import dump_dax
from .swf_write import dump_swf
from .tasks import Tasks
from .unrolled import earliest
from .wfcommons_write import dump_wfcommons
from .workflow_jobs import jobs_of
from .workflow_write import dump_workflow


def to_wfcommons(given: Tasks, note: str) -> Converted:
    """A WfFormat instance. O(tasks + dependencies)."""
    return Converted(dump_wfcommons(given, note), _tasks(given), _lost(given, "CPU use", "memory"))


def to_dax(given: Tasks, note: str) -> Converted:
    """A DAX document. O(tasks + dependencies)."""
    return Converted(dump_dax(given, note), _tasks(given), _lost(given, "memory"))


def to_workflow(given: Tasks, workflow: Workflow, note: str) -> Converted:
    """A workflow file of ours, of the same tasks. O(tasks + dependencies)."""
    none = {
        "run times of 0: now the shortest there is": sum(task.time == 0 for task in given.tasks),
        "run times that are not there: now the default": sum(task.time is None for task in given.tasks),
    }
    kept = _lost(given, "CPU use", "memory")
    return Converted(dump_workflow(workflow, (note,)), _tasks(given), kept | some(none))


def to_swf(given: Tasks, machine: int | None, note: str, *, skip_invalid: bool) -> Converted:
    """A trace: who waits is submitted when all before it have ended on a machine without limits; its preceding job is
    the last of those to end. O(tasks log tasks + dependencies). Raises ConfigError: a task has no run time.

    Args:
        machine: resources; None = not said.
        skip_invalid: leave out, and count, tasks without a run time.
    """
    jobs = jobs_of(given, skip_invalid=skip_invalid)
    pairs = 0 if jobs.dependencies is None else len(jobs.dependencies)
    written = _submitted(replace(jobs, machine=machine), given)
    first = int((written.more["preceding"] > 0).sum())
    counts = {
        "dependencies: now submit times, as on a machine without limits": pairs,
        "dependencies beside the last to end: SWF has one preceding job": pairs - first,
        "ids that are no numbers: now counted": len(jobs),
    }
    what = f"{len(jobs):,} jobs" + (f" for {machine:,} resources" if machine is not None else "")
    lost = some(counts) | _lost(given, "walltimes")
    return Converted(dump_swf(written, [note]), what, lost, jobs.left_out)


def _submitted(jobs: Workload, given: Tasks) -> Workload:
    """The jobs with submit times and preceding jobs in place of dependencies, numbered from 1 in that order."""
    kept = set(jobs.more["name"].tolist())
    tasks = [replace(task, after=tuple(before for before in task.after if before in kept))
             for task in given.tasks if task.id in kept]  # fmt: skip
    times = earliest(tasks)
    submit = np.array([start for start, _ in times], np.float64)
    place = np.empty(len(tasks), np.int64)
    place[np.argsort(submit, kind="stable")] = np.arange(1, len(tasks) + 1)
    row = {task.id: i for i, task in enumerate(tasks)}
    last = [max((row[before] for before in task.after), key=lambda i: times[i][1], default=-1) for task in tasks]
    waits = np.array(last, np.int64) >= 0
    more = {"preceding": np.where(waits, place[last], -1), "think_time": np.where(waits, 0, -1)}
    return in_order(replace(jobs, id=place, submit_time=submit, more=more, dependencies=None))


def _tasks(given: Tasks) -> str:
    return f"{len(given.tasks):,} tasks, {sum(len(set(task.after)) for task in given.tasks):,} dependencies"


def _lost(given: Tasks, *kept: str) -> dict[str, int]:
    counts = {
        **given.beside,
        "CPU use": sum(task.busy is not None for task in given.tasks),
        "memory": sum(task.memory > 0 for task in given.tasks),
        "walltimes": sum(task.walltime is not None for task in given.tasks),
    }
    return some({what: count for what, count in counts.items() if what not in kept})
