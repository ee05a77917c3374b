"""A workload replayed on a machine of numbered resources under a queue policy.

Rule: exact, so that schedules can be compared bit for bit. Queue order: submit time, then position. At each instant
all ends, then all submissions, then one pass; a job runs for the smaller of its run time and its walltime; one that
asks for more than the machine has is rejected; one that takes no time ends at the instant at which it starts, and
another pass follows at that instant. Resources are given out lowest numbers first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..kernels import load
from ..kernels.batch import tables
from ..kernels.batch.powered.tables import Powered
from ..workload import Workload
from . import powered, worlds
from .powers import TAURUS, Powers
from .spec import Conservative, Easy, Policy, Saving

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
        taken_time: when it was given its resources: before its start, where some of them, `booted`, had to boot.
        changes: of machines that were switched, see `powered.CHANGE`.
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
    taken_time: Array
    booted: Array
    changes: Array
    simulation_time: float
    instants: int


def replay(
    workload: Workload,
    machine: int,
    policy: Policy = Easy(),
    *,
    seed: int = 0,
    groups: Sequence[tuple[int, int]] = (),
    powers: Powers | None = TAURUS,
    progress: Callable[[float], None] = lambda now: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Replayed:
    """What becomes of the jobs; see above. O(jobs x (log running + log queue)) where walltimes are of some use; orders
    that change with time cost O(queue) in each pass.

    Args:
        machine: resources, 1 or more.
        seed: of what is drawn at random.
        groups: first and last resource of each cluster of the machine, for allocations that look at them; none: it is
            one cluster.
        powers: of a resource, where the policy looks at them.
        progress: called now and then with the simulated time.
        clock: seconds, for `simulation_time`.

    Raises:
        ConfigError: no such machine.
    """
    if machine < 1 or machine > 2**31 - 64:
        raise ConfigError("machine", "", f"{machine} resources", "1 or more")
    kernel, world = load(kernel_of(policy)), _world(workload, machine, policy, seed, groups, powers)
    began = clock()
    while (answer := kernel(world.address, STEP)) != tables.DONE:
        if answer == tables.GROW:
            world = worlds.grown(world)
        else:
            progress(float(world.clock[tables.NOW]))
    spent = clock() - began
    jobs, count = world.jobs[: len(workload)], world.count
    rejected = jobs["state"] == tables.REJECTED
    start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
    pieces = world.pieces[: count[tables.PIECES]].copy(), jobs["piece0"].copy(), jobs["pieces"].copy()
    taken, booted, changed = start, np.zeros(len(jobs), np.int64), np.empty(0, powered.CHANGE)
    if isinstance(world, Powered):
        pieces = powered.in_order(*pieces)
        taken, booted = np.where(rejected, math.nan, jobs["taken"]), powered.boots(world)
        changed = powered.changes(world)
    instants = int(count[tables.INSTANTS])
    return Replayed(
        workload, machine, start, finish, rejected, *pieces, taken, booted, changed, spent, instants
    )


def kernel_of(policy: Policy) -> str:
    """The kernel that replays it."""
    if isinstance(policy, Conservative):
        return "batch.conservative"
    return "batch.powered.easy" if isinstance(policy, Saving) else "batch.easy"


def _world(
    workload: Workload, machine: int, policy: Policy, seed: int, groups: Sequence[tuple[int, int]],
    powers: Powers | None,
) -> worlds.World | Powered:  # fmt: skip
    if isinstance(policy, Saving):
        return powered.powered_world(workload, machine, policy, powers, seed)
    if isinstance(policy, Conservative):
        return worlds.conservative(workload, machine, policy, seed, groups)
    return worlds.easy(workload, machine, policy, seed)
