"""Replay a workload on a machine of numbered resources under a queue policy.

Rule: replays are exact, so schedules can be compared bit for bit.
The queue is ordered by submit time, then by position in the workload. At each instant all ends are processed, then all
submissions, then one scheduling pass. A job runs for the smaller of its run time and its walltime. A job that requests
more than the machine has is rejected. A job of zero run time ends at the instant at which it starts, and another pass
follows at that instant. Resources are allocated lowest numbers first. A job with dependencies is submitted when the
last of them has succeeded, or at its own submit time if that is later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ConfigError
from ..kernels import load
from ..kernels.queue import tables
from ..kernels.queue.network.tables import Networked, NetworkedPowered, NetworkedReserving
from ..model.network import Network
from ..model.workload import LONGEST, Workload
from . import power_tables, queue_tables, slices
from .machine import TAURUS_POWERS, Machine, MixedPowers, Powers
from .network_tables import network_for
from .policies import Conservative, Easy, Policy, Saving, Strict
from .python_loop import replay_with_python_policy
from .queue_tables import stranded
from .replay_result import Replayed, merge_pieces, pieces_by_job, without_switches
from .user_policy import QueuePolicy

#: Largest number of resources of a machine.
LARGEST = 2**31 - 64
ALLOWED = f"0; for easy and strict also seconds above 0, at most {LONGEST:g}"


def replay(
    workload: Workload,
    machine: int,
    policy: Policy | QueuePolicy = Easy(),
    *,
    seed: int = 0,
    groups: Sequence[tuple[int, int]] = (),
    powers: Powers | MixedPowers | None = TAURUS_POWERS,
    network: Callable[[], Network] | None = None,
    decision_time: float | None = 0.0,
    progress: Callable[[float], None] = lambda now: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Replayed:
    """Replay a workload and return the times and resources of each job.

    O(jobs x (log running + log queue)) with informative walltimes; orders that change with time cost O(queue) per pass.

    Args:
        workload: the jobs.
        machine: number of resources, 1 to LARGEST.
        policy: the queue policy.
        seed: seed of random choices.
        groups: first and last resource of each cluster of the machine, for allocations within a cluster; empty means
            one cluster.
        powers: power of the resources, for policies that need it.
        network: makes the network between the resources, for jobs whose run times depend on it.
        decision_time: simulated seconds that each decision takes, see `python_loop`; for EASY, strict order, and Python
            policies. None, for Python policies only: as long as the call took by `clock`.
        progress: called now and then with the simulated time.
        clock: returns seconds, for `simulation_time`.

    Raises:
        ConfigError: `machine` is out of range, or the policy does not allow `decision_time`; see also `network_for`.
        PolicyError: see `python_loop.replay_with_python_policy`.
    """
    if not 1 <= machine <= LARGEST:
        raise ConfigError("machine", "", f"{machine} resources", f"1 to {LARGEST}")
    net = network_for(workload, machine, policy, network)
    if not isinstance(policy, Policy):
        whole = Machine(machine, groups, powers)
        return replay_with_python_policy(
            workload, whole, policy, decision_time=decision_time, clock=clock, progress=progress
        )
    decision_s = _decision_seconds(policy, decision_time)
    rich = decision_s > 0.0 or workload.dependencies is not None
    kernel = load(str(kernel_of(policy, networked=net is not None, rich=rich)))
    world = _tables(workload, machine, policy, seed, groups, powers, net, decision_s)
    began = slice_began = clock()
    size = slices.FIRST
    while (answer := kernel(world.address, size)) != tables.DONE:
        if answer == tables.GROW:
            world = queue_tables.grow(world)
        else:
            size, slice_began = slices.next_slice(size, clock() - slice_began), clock()
            progress(float(world.clock[tables.NOW]))
    spent = clock() - began
    jobs, count = world.jobs[: len(workload)], world.count
    left = stranded(world.unmet, len(workload))
    rejected = (jobs["state"] == tables.REJECTED) | left
    start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
    pieces = world.pieces[: count[tables.PIECES]].copy(), jobs["piece0"].copy(), jobs["pieces"].copy()
    switches = without_switches(start)
    if isinstance(world, power_tables.PowerTables):
        owner, rows = pieces_by_job(*pieces)
        pieces = merge_pieces(owner, rows["first"], rows["last"], len(jobs))
        taken = np.where(rejected, math.nan, jobs["taken"])
        switches = {"taken_time": taken, "booted": power_tables.boots(world), "changes": power_tables.changes(world)}
    overran = (workload.run_time > workload.walltime) & ~rejected
    if isinstance(world, Networked | NetworkedReserving | NetworkedPowered):
        overran |= (world.courses["killed"][: len(workload)] == 1) & ~rejected
    return Replayed(
        workload, machine, jobs["submit"].copy(), start, finish, rejected, left, overran, *pieces,
        simulation_time=spent, instants=int(count[tables.INSTANTS]), **switches,
    )  # fmt: skip


def takes_time(policy: object, decision_time: float | None) -> bool:
    """Return whether a compiled policy supports this decision time.

    Args:
        policy: a built-in policy.
        decision_time: seconds; None means measured.
    """
    if decision_time == 0.0:
        return True
    return isinstance(policy, Easy | Strict) and decision_time is not None and 0.0 <= decision_time <= LONGEST


def _decision_seconds(policy: Policy, decision_time: float | None) -> float:
    """Return the seconds that each decision takes. Raises ConfigError if the policy does not support them."""
    if takes_time(policy, decision_time):
        return decision_time or 0.0
    what = "as measured" if decision_time is None else f"{decision_time:g}"
    raise ConfigError("decision_time", "", f"{what}, for a compiled policy", ALLOWED)


def kernel_of(policy: object, *, networked: bool = False, rich: bool = False) -> str | None:
    """Return the name of the compiled kernel for a policy; None for Python policies, which need none.

    Args:
        policy: the queue policy.
        networked: run times depend on where jobs run.
        rich: jobs have dependencies, or decisions take time.
    """
    if not isinstance(policy, Policy):
        return None
    if isinstance(policy, Saving):
        return "queue.power_networked" if networked else "queue.power.easy_power"
    kind = "conservative" if isinstance(policy, Conservative) else "easy"
    if networked:
        return f"queue.{kind}_networked"
    return "queue.easy_rich" if rich and kind == "easy" else f"queue.{kind}"


def _tables(
    workload: Workload, machine: int, policy: Policy, seed: int, groups: Sequence[tuple[int, int]],
    powers: Powers | MixedPowers | None, network: Network | None, decision_s: float,
) -> queue_tables.QueueTables | power_tables.PowerTables:  # fmt: skip
    if isinstance(policy, Saving):
        return power_tables.power_tables_for(workload, machine, policy, powers, seed, network)
    if isinstance(policy, Conservative):
        return queue_tables.conservative(workload, machine, policy, seed, groups, network)
    return queue_tables.easy(workload, machine, policy, seed, network, decision_s)
