"""Initial state tables of the compiled replays under EASY, strict order and conservative backfilling.

Rule: only tables that may have to grow are separate arrays; the size of all others follows from the workload.
Rule: jobs that depend on a rejected, killed or failed job are stranded. Failures are known before the run, except for
tasks that contend, so failed jobs have no followers in the tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..kernels.block import Block
from ..kernels.queue import tables
from ..kernels.queue.network.tables import NONE, Networked, NetworkedPowered, NetworkedReserving
from ..kernels.queue.power.tables import Powered
from ..kernels.queue.tables import HELD, Replay, Reserving, RichReplay
from ..model.machine import MixedPowers, Powers
from ..model.network import Network
from ..model.workload import Workload
from ..queue_policies.policy_specs import Conservative, Easy, Saving, Strict, dynamic_order, ranks
from .network_tables import network_tables

QueueTables = Replay | RichReplay | Reserving | Networked | NetworkedReserving
ALLOCATIONS = {"basic": tables.BASIC, "contiguous": tables.CONTIGUOUS, "local": tables.LOCAL}
#: Initial capacity of an availability profile, jobs.
FEW = 64


@dataclass(frozen=True, slots=True)
class Setting:
    """What a replay starts from, in addition to the policy."""

    workload: Workload
    machine: int  # number of resources
    seed: int = 0  # of a random order
    network: Network | None = None  # between the resources; None if run times do not depend on it
    groups: Sequence[tuple[int, int]] = ()  # first and last resource of each cluster of the machine
    powers: Powers | MixedPowers | None = None  # of the resources; None if not known
    decision_time: float = 0.0  # simulated seconds that each decision takes, 0 or more
    predicted: bool = False  # run times are predicted at the submissions; only for EASY and strict order
    log_power: bool = False  # see `network_tables`

    def network_tables(self, rows: int | None = None) -> dict[str, Array]:
        """Return the tables of the network, if any; `rows` as in the function of this name."""
        if self.network is None:
            return {}
        return network_tables(self.workload, self.network, self.powers, rows, log_power=self.log_power)


def easy(setting: Setting, policy: Easy | Strict) -> QueueTables:
    """Return the tables of EASY backfilling or strict order."""
    workload, machine, decision_time = setting.workload, setting.machine, setting.decision_time
    size, order = len(workload), dynamic_order(workload, policy.order, predicted=setting.predicted)
    levels = tables.tree_levels(max(size, 1))
    most = min(size, machine) + 1
    rich = decision_time > 0.0 or workload.dependencies is not None or setting.predicted
    kind: type[QueueTables] = Networked if setting.network else RichReplay if rich else Replay
    world = kind(
        {
            "pieces": np.zeros(2 * (size + machine), tables.PIECE),
            "levels": np.array(levels, np.int64),
            **dependency_tables(workload),
            **setting.network_tables(),
        },
        {
            **dict.fromkeys(("jobs", "ranked"), (size,)),
            **dict.fromkeys(("heap_time", "heap_job"), (most,)),
            **dict.fromkeys(("queue", "scores"), (size if order else 1,)),
            "free": (-(-machine // 64),),
            "ends": (2 * most + 2,),
            "least": (levels[-1],),
            **dict.fromkeys(("expected", "ended"), (size if setting.predicted else 0,)),
            "decided": (most if decision_time > 0.0 else 1,),
        },
    )
    fill_queue(world, setting, policy)
    world.clock["takes"], world.clock["busy"] = decision_time, math.inf
    return world


def fill_queue(world: Any, setting: Setting, policy: Easy | Strict) -> None:
    """Fill what the tables of all kernels for EASY and strict order have in common.

    Args:
        world: the tables.
        setting: what the replay starts from.
        policy: the policy and its order.
    """
    workload = setting.workload
    _fill_jobs(world, setting, policy)
    world.ranked[world.jobs["rank"][: len(workload)]] = np.arange(len(workload))
    world.least["size"], world.least["wall"] = tables.NO_JOB, math.inf
    world.count["free"] = setting.machine
    world.count["in_turn"], world.count["fills"] = policy.order == "fcfs", policy.backfills


def conservative(setting: Setting, policy: Conservative) -> QueueTables:
    """Return the tables of conservative backfilling. Raises ConfigError, see `check_walltimes` and `SplitGroups`."""
    workload, machine = setting.workload, setting.machine
    check_walltimes(workload, policy)
    size, words = len(workload), -(-machine // 64)
    most, variant = min(size, machine) + 1, policy.allocation.removeprefix("best-effort-")
    within = list(setting.groups) if policy.local else []
    world = (NetworkedReserving if setting.network else Reserving)(
        {
            "pieces": np.zeros(2 * (size + machine), tables.PIECE),
            "times": np.full(4 * FEW, -math.inf),
            "spare": np.full(4 * FEW + tables.SPAN, machine, np.int32),
            "users": np.ones(4 * FEW, np.int32),
            "sets": np.zeros((FEW, words), np.uint64),
            "free_sets": np.arange(FEW)[::-1].copy(),
            "groups": np.array(within or [(0, machine - 1)], tables.PIECE),
            **dependency_tables(workload),
            **setting.network_tables(),
        },
        {
            **dict.fromkeys(("heap_time", "heap_job"), (most,)),
            "jobs": (size,),
            "queue": (size + 1,),
            "free": (words,),
        },
    )
    _fill_jobs(world, setting, policy)
    count = world.count
    count["slices"], count["free_sets"], count["allocation"] = 1, FEW, ALLOCATIONS[variant]
    count["strict"] = int(variant == policy.allocation and variant != "basic")
    world.clock["due"], world.clock["freed"] = math.inf, -math.inf
    return world


def grow(world: Block) -> Any:
    """Return a copy with twice the capacity in the tables that may grow."""
    fixed = dict(world.fixed)
    fixed["pieces"] = _twice(world.pieces)
    if isinstance(world, Powered | NetworkedPowered):
        fixed["jobs"] = _twice(world.jobs)
    if isinstance(world, NetworkedPowered):
        fixed["courses"] = _twice(world.courses)
        fixed["courses"]["program"][len(world.courses) :] = NONE
    if isinstance(world, Reserving | NetworkedReserving):
        rows = len(world.sets)
        for name in ("times", "spare", "users", "sets", "free_sets"):
            fixed[name] = _twice(fixed[name])
        free = int(world.count["free_sets"])
        fixed["free_sets"][free : free + rows] = np.arange(rows, 2 * rows)
        world.count["free_sets"] = free + rows
    twin = type(world)(fixed, world.shapes)
    np.copyto(twin.buffer, world.buffer)
    return twin


def _twice(table: Array) -> Array:
    found = np.zeros((2 * len(table), *table.shape[1:]), table.dtype)
    found[: len(table)] = table
    return found


def _fill_jobs(world: Any, setting: Setting, policy: Easy | Strict | Conservative) -> None:
    workload, machine = setting.workload, setting.machine
    jobs = world.jobs[: len(workload)]
    jobs["submit"], jobs["wall"], jobs["size"] = workload.submit_time, workload.walltime, workload.size
    jobs["run"] = np.minimum(workload.run_time, workload.walltime)
    jobs["rank"] = ranks(workload, policy.order, setting.seed, predicted=setting.predicted)
    if setting.predicted:
        world.expected["limit"][: len(workload)], jobs["wall"] = workload.walltime, np.nan
    world.clock["began"] = workload.submit_time[0] if len(workload) else 0.0
    order = dynamic_order(workload, policy.order, predicted=setting.predicted)
    world.count["total"], world.count["machine"], world.count["order"] = len(workload), machine, order
    world.free[:] = np.iinfo(np.uint64).max  # one bit per resource: all are free
    if machine % 64:
        world.free[-1] = (1 << machine % 64) - 1


def dependency_tables(workload: Workload, ends_well: Array | None = None) -> dict[str, Array]:
    """Return the dependency tables of a kernel. O(jobs + dependencies log dependencies).

    Args:
        workload: the jobs.
        ends_well: [jobs], which jobs can succeed; None: those that end within their walltime and return success.
    """
    given, size = workload.dependencies, len(workload)
    if given is None:
        return {name: np.zeros(0, np.int64) for name in HELD}
    returns = workload.more.get("returns", np.zeros(size, np.int64))
    well = ~workload.overruns & (returns == 0) if ends_well is None else ends_well
    before, after = given.before[well[given.before]], given.after[well[given.before]]
    return {
        "unmet": np.bincount(given.after, minlength=size).astype(np.int64),
        "followers": after[np.lexsort((after, before))],
        "follower0": np.concatenate([[0], np.cumsum(np.bincount(before, minlength=size))]).astype(np.int64),
        "released": np.zeros(size, np.int64),
        "given": np.zeros(size, np.int64),
    }


def stranded(unmet: Array, jobs: int) -> Array:
    """Return which jobs never ran because of an unmet dependency.

    Args:
        unmet: unmet dependencies of each job after the replay; empty if the workload has none.
        jobs: number of jobs.
    """
    return unmet > 0 if len(unmet) else np.zeros(jobs, bool)


class DependencyTracker:
    """Dependencies of jobs, followed one job end at a time (for the Python loop)."""

    def __init__(self, workload: Workload) -> None:
        tables = dependency_tables(workload)
        self.unmet: list[int] = tables["unmet"].tolist()
        self._followers: list[int] = tables["followers"].tolist()
        self._first: list[int] = tables["follower0"].tolist()
        self._released: list[int] = []

    def job_ended(self, number: int, upcoming: int) -> None:
        """Record the end of job `number`; the submit times from job `upcoming` on have not come yet."""
        for follower in self._followers[self._first[number] : self._first[number + 1]] if self.unmet else ():
            self.unmet[follower] -= 1
            if not self.unmet[follower] and follower < upcoming:
                heappush(self._released, follower)

    def is_blocked(self, number: int) -> bool:
        """Return whether a job has an unmet dependency."""
        return bool(self.unmet) and self.unmet[number] > 0

    def pop_released(self) -> list[int]:
        """Remove and return the jobs that are submitted now because their last dependency was met, in row order."""
        return [heappop(self._released) for _ in range(len(self._released))]


def kind_needing_walltimes(policy: object) -> str:
    """Return a description of the policy if it needs finite walltimes, else ""."""
    if isinstance(policy, Conservative):
        return "conservative backfilling"
    if isinstance(policy, Saving) and (policy.limit or policy.keeper):
        return "a policy that limits power or keeps machines off"
    return ""


def check_walltimes(workload: Workload, policy: object) -> None:
    """Check that all jobs have finite walltimes if the policy needs them, for reservations. Raises ConfigError."""
    kind, endless = kind_needing_walltimes(policy), np.flatnonzero(np.isinf(workload.walltime))
    if kind and len(endless):
        which = workload.more.get("name", workload.id)[endless[0]]
        problem = f"it has no walltime ({len(endless):,} of {len(workload):,} jobs), and {kind} needs walltimes"
        raise ConfigError(workload.name, f"job {which}", problem, "walltimes, or another policy")
