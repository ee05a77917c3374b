"""Tasks of a workflow as a workload of rigid jobs that wait for each other.

Rule: a task is a job of as many resources as it has cores, which runs for its recorded time and is submitted when all
that it waits for have ended, the first ones at 0 s; its walltime is what the file says, else its run time. A task of
which no run time is recorded is an error with its name, or left out and counted where that is wanted.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ..dependencies import Dependencies
from ..errors import ConfigError
from ..workload import Workload
from .shape import from_source
from .tasks import Tasks
from .workflow import Profiles, read_tasks


def read_workflow_jobs(path: Path, *, profiles: Profiles | None = None, skip_invalid: bool = False) -> Workload:
    """The jobs of a workflow file of any kind, in its order. O(bytes).

    Args:
        profiles: see `read_workflow`.
        skip_invalid: leave out, and count, the tasks that cannot be replayed.

    Raises:
        ConfigError: it is none, or has a task that cannot be replayed.
        InvalidJobError: a task that is there twice, an unknown dependency or a cycle.
    """
    return jobs_of(read_tasks(path, profiles), skip_invalid=skip_invalid)


def jobs_of(given: Tasks, *, skip_invalid: bool = False) -> Workload:
    """See `read_workflow_jobs`. O(tasks + dependencies)."""
    tasks, name = given.tasks, Path(given.source.removesuffix(".gz")).stem
    known = np.array([task.time is not None for task in tasks], bool)
    if not skip_invalid and not known.all():
        task = tasks[int((~known).argmax())]
        problem = f"it has no run time ({int((~known).sum()):,} of {len(tasks):,} have none)"
        raise ConfigError(given.source, f"task {task.id}", problem, "one; or --skip-invalid")
    run = np.array([task.time or 0.0 for task in tasks], np.float64)
    wall = [time if task.walltime is None else task.walltime for task, time in zip(tasks, run.tolist(), strict=True)]
    more = {"name": np.array([task.id for task in tasks], object)}
    memory = np.array([task.memory / task.cores for task in tasks], np.float64)
    if memory.any():
        more["memory"] = memory
    place = {task.id: row for row, task in enumerate(tasks)}
    pairs = [(place[before], row) for row, task in enumerate(tasks) for before in dict.fromkeys(task.after)]
    before, after = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    make = partial(Workload, more=more, dependencies=Dependencies(before, after))
    columns = np.zeros(len(tasks)), run, np.array(wall, np.float64), np.array([task.cores for task in tasks], np.int64)
    workload = from_source(given.source, make, name, np.arange(1, len(tasks) + 1), *columns)
    return workload.take(known, "tasks without a run time")
