"""A workload replayed on processors whose tasks contend for memory.

Rule: exact, as all replays. A job is as many independent one-core tasks as its size, which may sit on any cores; each
takes its run time on the slowest processor there is, less on faster ones, more beside others. A job holds its cores and
its memory from its start until the last of its tasks ends, or its walltime is over: then all that is left is killed.
Tasks move what they move at an even rate; pairs of profiles (co-run inflation) are not looked at.
Source: IRMaSim (Herrera et al., CCGrid 2021), III and V.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import load
from ..kernels.batch.contended import tables
from ..kernels.batch.contended.tables import Contended as World
from ..platform import Cluster
from ..workload import Workload
from . import pace
from .dependents import stranded
from .networked import network_for
from .pairs import Contending
from .powered import CHANGE
from .processors import Processors, processors_of
from .replay import Replayed
from .tasks import contended_world, pieces_of

Array = npt.NDArray[Any]
KERNEL = "batch.contended.run"


@dataclass(frozen=True, slots=True)
class Contended(Replayed):
    """What became of each job, and of its tasks.

    Args:
        joules: of the machine, from the first submission to the last end; None: what it draws is not known.
        jobs_joules: of each job: its own, and its part in what its processors and nodes draw anyway; nan: not known.
        task_job, task_core, task_end: one row a task, in the order in which they began.
        processors: the machine.
    """

    joules: float | None
    jobs_joules: Array
    task_job: Array
    task_core: Array
    task_end: Array
    processors: Processors


def replay_contended(
    workload: Workload,
    cluster: Cluster,
    policy: Contending,
    *,
    seed: int = 0,
    progress: Callable[[float], None] = lambda now: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Contended:
    """What becomes of the jobs; see above. O(tasks x (cores of a processor + log processors) + jobs log queue); the
    resource `random`, rules of nodes, and memory that runs short cost O(processors) instead of their logarithm.

    Args:
        workload: `more` may have, a task each: `volume`, bytes that it moves to and from memory, and `memory`, bytes
            that it needs; `asked`, seconds that users requested.
        cluster: whose cores are the resources.
        seed: of what is drawn at random.
        progress, clock: as in `replay`.

    Raises:
        ConfigError: the policy needs to know of the machine what is not known, or it shares memory between nodes.
    """
    machine = processors_of(cluster)
    network_for(workload, machine.cores, policy, None)
    kernel, world = load(KERNEL), contended_world(workload, machine, policy, seed)
    began = looked = clock()
    size = pace.FIRST
    while kernel(world.address, size) != tables.DONE:
        size, looked = pace.next_slice(size, clock() - looked), clock()
        progress(float(world.clock[tables.NOW]))
    return _result(workload, machine, world, clock() - began)


def _result(workload: Workload, machine: Processors, world: World, spent: float) -> Contended:
    jobs = world.jobs
    left = stranded(world.unmet, len(jobs))
    rejected = (jobs["state"] == tables.REJECTED) | left
    start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
    count = int(world.count[tables.TASKS])
    core, end = world.tasks["core"][:count].copy(), world.tasks["end"][:count].copy()
    began = np.flatnonzero(~rejected)
    began = began[np.argsort(jobs["task0"][began], kind="stable")]
    owner = np.repeat(began, workload.size[began])
    span = max(float(np.nanmax(np.append(finish, -math.inf))) - float(workload.submit_time[0]), 0.0) if count else 0.0
    known = machine.powered
    return Contended(
        workload, machine.cores, jobs["submit"].copy(), start, finish, rejected, left, jobs["overran"] == 1,
        *pieces_of(owner, core, len(jobs)),
        taken_time=start, booted=np.zeros(len(jobs), np.int64), changes=np.empty(0, CHANGE),
        simulation_time=spent, instants=int(world.count[tables.INSTANTS]),
        joules=machine.joules(world.processors["busy"], world.processors["awake"], span) if known else None,
        jobs_joules=np.where(rejected, math.nan, jobs["joules"]) if known else np.full(len(jobs), math.nan),
        task_job=owner, task_core=core, task_end=end, processors=machine,
    )  # fmt: skip
