"""A workload replayed on a machine of numbered resources under a queue policy.

Rule: exact, so that schedules can be compared bit for bit. Queue order: submit time, then position. At each instant
all ends, then all submissions, then one pass; a job runs for the smaller of its run time and its walltime; one that
asks for more than the machine has is rejected; one that takes no time ends at the instant at which it starts, and
another pass follows at that instant. Resources are given out lowest numbers first. A job that waits for others is
submitted at the instant at which the last of them has ended well, or at its own submit time if that is later.
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
from ..kernels.batch.network.tables import Networked, NetworkedPowered, NetworkedReserving
from ..network import Network
from ..workload import LONGEST, Workload
from . import pace, powered, worlds
from .asking import ask
from .custom import OwnPolicy
from .dependents import stranded
from .machine import Machine
from .networked import network_for
from .powers import TAURUS, Mixed, Powers
from .spec import Conservative, Easy, Policy, Saving, Strict

Array = npt.NDArray[Any]
#: Most resources of a machine.
LARGEST = 2**31 - 64
ALLOWED = f"0; of easy and strict also seconds above 0, at most {LONGEST:g}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of each job, one row a job of the workload.

    Args:
        submit_time: seconds; of a job that waited for others, when it could be submitted.
        start_time, finish_time: seconds; nan where the job was rejected.
        rejected: it asks for more than there is, or its policy rejected it, or it is stranded.
        stranded: it was never submitted, for a job that it waits for was rejected, or did not end well.
        overran: it was ended by its walltime.
        pieces: first and last of each run of resources, for all jobs; job i has `pieces[piece0[i]:][:piece_count[i]]`.
        taken_time: when it was given its resources: before its start, where some of them, `booted`, had to boot.
        changes: of machines that were switched, see `powered.CHANGE`.
        simulation_time: seconds in the engine.
        instants: times at which something happened.
    """

    workload: Workload
    machine: int
    submit_time: Array
    start_time: Array
    finish_time: Array
    rejected: Array
    stranded: Array
    overran: Array
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
    policy: Policy | OwnPolicy = Easy(),
    *,
    seed: int = 0,
    groups: Sequence[tuple[int, int]] = (),
    powers: Powers | Mixed | None = TAURUS,
    network: Callable[[], Network] | None = None,
    decision_time: float | None = 0.0,
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
        powers: of the resources, where the policy looks at them.
        network: what joins the resources, where run times depend on it.
        decision_time: seconds of simulated time that each decision takes, see `asking`: of EASY, strict order, and
            policies of one's own; None, of the latter: as long as it took by `clock`.
        progress: called now and then with the simulated time.
        clock: seconds, for `simulation_time`.

    Raises:
        ConfigError: no such machine; no such time to decide, or of a policy that takes none; see `network_for`.
        PolicyError: see `ask`.
    """
    if not 1 <= machine <= LARGEST:
        raise ConfigError("machine", "", f"{machine} resources", f"1 to {LARGEST}")
    joined = network_for(workload, machine, policy, network)
    if not isinstance(policy, Policy):
        whole = Machine(machine, groups, powers)
        return _asked(workload, whole, policy, decision_time, progress, clock)
    takes = _takes(policy, decision_time)
    rich = takes > 0.0 or workload.dependencies is not None
    kernel = load(str(kernel_of(policy, networked=joined is not None, rich=rich)))
    world = _world(workload, machine, policy, seed, groups, powers, joined, takes)
    began = looked = clock()
    size = pace.FIRST
    while (answer := kernel(world.address, size)) != tables.DONE:
        if answer == tables.GROW:
            world = worlds.grown(world)
        else:
            size, looked = pace.next_slice(size, clock() - looked), clock()
            progress(float(world.clock[tables.NOW]))
    spent = clock() - began
    jobs, count = world.jobs[: len(workload)], world.count
    left = stranded(world.unmet, len(workload))
    rejected = (jobs["state"] == tables.REJECTED) | left
    start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
    pieces = world.pieces[: count[tables.PIECES]].copy(), jobs["piece0"].copy(), jobs["pieces"].copy()
    taken, booted, changed = start, np.zeros(len(jobs), np.int64), np.empty(0, powered.CHANGE)
    if isinstance(world, powered.PoweredWorld):
        pieces = powered.in_order(*pieces)
        taken, booted = np.where(rejected, math.nan, jobs["taken"]), powered.boots(world)
        changed = powered.changes(world)
    instants = int(count[tables.INSTANTS])
    overran = (workload.run_time > workload.walltime) & ~rejected
    if isinstance(world, Networked | NetworkedReserving | NetworkedPowered):
        overran |= (world.courses["killed"][: len(workload)] == 1) & ~rejected
    return Replayed(
        workload, machine, jobs["submit"].copy(), start, finish, rejected, left, overran, *pieces,
        taken, booted, changed, spent, instants,
    )  # fmt: skip


def _asked(
    workload: Workload, machine: Machine, policy: OwnPolicy, decision_time: float | None,
    progress: Callable[[float], None], clock: Callable[[], float],
) -> Replayed:  # fmt: skip
    if decision_time is not None and not 0.0 <= decision_time <= LONGEST:
        raise ConfigError("decision_time", "", f"{decision_time:g}", f"seconds from 0 to {LONGEST:g}")
    began = clock()
    done = ask(workload, machine, policy, decision_time=decision_time, clock=clock, progress=progress)
    overran = (workload.run_time > workload.walltime) & ~done.rejected
    columns = (done.submit_time, done.start_time, done.finish_time, done.rejected, done.stranded, overran,
               done.pieces, done.piece0, done.piece_count)  # fmt: skip
    unswitched = np.zeros(len(workload), np.int64), np.empty(0, powered.CHANGE)
    return Replayed(
        workload, machine.processors, *columns, done.start_time, *unswitched, clock() - began, done.instants
    )


def takes_time(policy: object, decision_time: float | None) -> bool:
    """Whether decisions of this compiled policy can take so many seconds (None: as long as they take)."""
    if decision_time == 0.0:
        return True
    return isinstance(policy, Easy | Strict) and decision_time is not None and 0.0 <= decision_time <= LONGEST


def _takes(policy: Policy, decision_time: float | None) -> float:
    """Seconds that each decision takes. Raises ConfigError."""
    if takes_time(policy, decision_time):
        return decision_time or 0.0
    what = "as long as it took" if decision_time is None else f"{decision_time:g}"
    raise ConfigError("decision_time", "", f"{what}, of a compiled policy", ALLOWED)


def kernel_of(policy: object, *, networked: bool = False, rich: bool = False) -> str | None:
    """The kernel that replays it; None: one of a user's own needs none.

    Args:
        networked: where jobs run decides how long they do.
        rich: jobs wait for others, or decisions take time.
    """
    if not isinstance(policy, Policy):
        return None
    if isinstance(policy, Saving):
        return "batch.network.powered" if networked else "batch.powered.easy"
    kind = "conservative" if isinstance(policy, Conservative) else "easy"
    if networked:
        return f"batch.network.{kind}"
    return "batch.rich_easy" if rich and kind == "easy" else f"batch.{kind}"


def _world(
    workload: Workload, machine: int, policy: Policy, seed: int, groups: Sequence[tuple[int, int]],
    powers: Powers | Mixed | None, network: Network | None, takes: float,
) -> worlds.World | powered.PoweredWorld:  # fmt: skip
    if isinstance(policy, Saving):
        return powered.powered_world(workload, machine, policy, powers, seed, network)
    if isinstance(policy, Conservative):
        return worlds.conservative(workload, machine, policy, seed, groups, network)
    return worlds.easy(workload, machine, policy, seed, network, takes)
