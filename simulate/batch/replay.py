"""A workload replayed on a machine of numbered resources under a queue policy.

Rule: exact, so that schedules can be compared bit for bit. Queue order: submit time, then position. At each instant
all ends, then all submissions, then one pass; a job runs for the smaller of its run time and its walltime; one that
asks for more than the machine has is rejected; one that takes no time ends at the instant at which it starts, and
another pass follows at that instant. Resources are given out lowest numbers first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..kernels import load
from ..kernels.batch import tables
from ..kernels.batch.tables import Replay
from ..workload import Workload
from .orders import CHANGING, ranks
from .spec import Easy, Policy

Array = npt.NDArray[Any]
#: Instants between two looks at what the caller wants.
STEP = 200_000


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of each job, one row a job of the workload.

    Args:
        start_time, finish_time: seconds; nan where the job was rejected.
        rejected: it asks for more than there is.
        pieces: first and last of each run of resources, for all jobs; job i has `pieces[piece0[i]:][:piece_count[i]]`.
        simulation_time: seconds in the engine.
        instants: times at which something happened.
    """

    workload: Workload
    machine: int
    start_time: Array
    finish_time: Array
    rejected: Array
    pieces: Array
    piece0: Array
    piece_count: Array
    simulation_time: float
    instants: int


def replay(
    workload: Workload,
    machine: int,
    policy: Policy = Easy(),
    *,
    seed: int = 0,
    progress: Callable[[float], None] = lambda now: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Replayed:
    """What becomes of the jobs; see above. O(jobs x (log running + log queue)) where walltimes are of some use; orders
    that change with time cost O(queue) in each pass.

    Args:
        machine: resources, 1 or more.
        seed: of what is drawn at random.
        progress: called now and then with the simulated time.
        clock: seconds, for `simulation_time`.

    Raises:
        ConfigError: no such machine.
    """
    if machine < 1 or machine > 2**31 - 64:
        raise ConfigError("machine", "", f"{machine} resources", "1 or more")
    kernel, world = load("batch.easy"), _tables(workload, machine, policy, seed)
    began = clock()
    while (answer := kernel(world.address, STEP)) != tables.DONE:
        if answer == tables.GROW:
            world = _grown(world, machine)
        else:
            progress(float(world.clock[tables.NOW]))
    spent = clock() - began
    jobs, count = world.jobs, world.count
    rejected = jobs["state"] == tables.REJECTED
    start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
    return Replayed(
        *(workload, machine, start, finish, rejected),
        *(world.pieces[: count[tables.PIECES]].copy(), jobs["piece0"].copy(), jobs["pieces"].copy()),
        *(spent, int(count[tables.INSTANTS])),
    )


def _tables(workload: Workload, machine: int, policy: Policy, seed: int) -> Replay:
    size, order = len(workload), ranks(workload, policy.order, seed)
    sorts = policy.order in CHANGING
    levels = tables.tree_levels(max(size, 1))
    words, most = -(-machine // 64), min(size, machine) + 1
    world = Replay(
        {"pieces": np.zeros(2 * size + 2 * machine, tables.PIECE), "levels": np.array(levels, np.int64)},
        {
            "jobs": (size,),
            "ranked": (size,),
            "free": (words,),
            "heap_time": (most,),
            "heap_job": (most,),
            "ends": (2 * most + 2,),
            "least": (levels[-1],),
            "queue": (size if sorts else 1,),
            "scores": (size if sorts else 1,),
            "count": (tables.CELLS,),
            "clock": (2,),
        },
    )
    jobs = world.jobs
    jobs["submit"], jobs["wall"], jobs["size"] = workload.submit_time, workload.walltime, workload.size
    jobs["run"] = np.minimum(workload.run_time, workload.walltime)
    jobs["rank"] = np.arange(size) if order is None else order
    world.ranked[jobs["rank"]] = np.arange(size)
    world.least["size"], world.least["wall"] = tables.NOBODY, math.inf
    world.free[:] = np.iinfo(np.uint64).max
    if machine % 64:
        world.free[-1] = (1 << machine % 64) - 1
    world.count[tables.FREE] = world.count[tables.MACHINE] = machine
    world.count[tables.IN_TURN] = int(order is None)
    world.count[tables.ORDER] = CHANGING.get(policy.order, 0)
    world.count[tables.FILLS] = int(policy.backfills)
    return world


def _grown(world: Replay, machine: int) -> Replay:
    """With twice the room for pieces."""
    pieces = np.zeros(2 * len(world.pieces) + machine, tables.PIECE)
    pieces[: len(world.pieces)] = world.pieces
    twin = Replay({"pieces": pieces, "levels": world.levels}, world.shapes)
    np.copyto(twin.buffer, world.buffer)
    return twin
