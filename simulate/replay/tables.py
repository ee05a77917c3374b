"""Initial state tables of the compiled replays, one function for each kind of world.

Rule: only tables that may have to grow are separate arrays; the size of all others follows from the workload. Policies
are the same with and without a network and see nothing of it. In the table of jobs of a replay with machine states, the
rows after the jobs record every switch of machines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..kernels.block import Block
from ..kernels.queue import tables
from ..kernels.queue.network import tables as networked
from ..kernels.queue.network.tables import Networked, NetworkedPowered, NetworkedReserving
from ..kernels.queue.power import tables as powered
from ..kernels.queue.power.tables import Powered
from ..kernels.queue.tables import Replay, Reserving, RichReplay, Stepwise
from ..model.machine import Machine, MixedPowers, Powers
from ..model.network import Network
from ..model.workload import Workload
from ..queue_policies.learned_order import UNKNOWN_USER, LearnedOrder
from ..queue_policies.order_ranks import dynamic_order, ranks
from ..queue_policies.policy_facts import PolicySpec
from ..queue_policies.policy_specs import Conservative, Easy, Policy, Strict
from ..world.job_dependencies import dependency_tables
from ..world.network_tables import network_tables
from .requirements import check_walltimes, limit_for, require_powers

Tables = Replay | RichReplay | Reserving | Networked | NetworkedReserving | Powered | NetworkedPowered
ALLOCATIONS = {"basic": tables.BASIC, "contiguous": tables.CONTIGUOUS, "local": tables.LOCAL}
#: Initial capacity of an availability profile, jobs, and of the changes of machines.
FEW = 64
#: Tables of a learned order.
_OF_LEARNED = ("learned", "filling", "features", "fill_scores", "traits", "lately")


@dataclass(frozen=True, slots=True)
class Setting:
    """The input of a replay, in addition to the policy."""

    workload: Workload
    machine: int  # number of resources
    seed: int = 0  # of a random order
    network: Network | None = None  # between the resources; None if run times do not depend on it
    groups: Sequence[tuple[int, int]] = ()  # first and last resource of each cluster of the machine
    powers: Powers | MixedPowers | None = None  # of the resources; None if not known
    decision_time: float = 0.0  # simulated seconds that each decision takes, 0 or more
    predicted: bool = False  # run times are predicted at the submissions; only for EASY and strict order
    log_power: bool = False  # see `network_tables`

    def of_network(self, rows: int | None = None) -> dict[str, Array]:
        """Return the tables of the network, if any; `rows` as in `network_tables`."""
        if self.network is None:
            return {}
        return network_tables(self.workload, self.network, self.powers, rows, log_power=self.log_power)


def tables_for(setting: Setting, policy: Policy) -> Tables:
    """Return the initial tables of a policy's kernel. Raises ConfigError, see `requirements`."""
    check_walltimes(setting.workload, policy)
    if policy.plain.family == "conservative":
        return _conservative(setting, policy)
    return _saving(setting, policy) if policy.saves else _easy(setting, policy.plain)


def _easy(setting: Setting, policy: Easy | Strict) -> Tables:
    size, machine, takes, predicted = len(setting.workload), setting.machine, setting.decision_time, setting.predicted
    order, most = policy.order, min(size, machine) + 1
    learned = _learned_tables(setting.workload, order) if isinstance(order, LearnedOrder) else {}
    rich = takes > 0.0 or setting.workload.dependencies is not None or predicted or bool(learned)
    kind = Networked if setting.network else RichReplay if rich else Replay
    world: Tables = _with_queue(
        kind, setting, policy, most, 2 * (size + machine), learned,
        {
            "jobs": (size,),
            **(dict.fromkeys(_OF_LEARNED, (0,)) if kind is RichReplay and not learned else {}),
            **dict.fromkeys(("expected", "ended"), (size if predicted else 0,)),
            "decided": (most if takes > 0.0 else 1,),
        },
    )  # fmt: skip
    if predicted:
        world.expected["limit"], world.jobs["wall"] = setting.workload.walltime, np.nan
    world.clock["takes"], world.clock["busy"] = takes, math.inf
    return world


def _learned_tables(workload: Workload, order: LearnedOrder) -> dict[str, Array]:
    """Return the tables of a learned order."""
    traits = np.zeros(len(workload), tables.TRAITS)
    users, traits["user"] = 0, -1
    if (column := workload.more.get("user")) is not None:
        names, rows = np.unique(column, return_inverse=True)
        users, traits["user"] = len(names), np.where(column == UNKNOWN_USER, -1, rows)
    return {
        "learned": np.array([*order.weights, order.max_wait]),
        "filling": np.array([*order.fill, order.max_wait] if order.fill else []),
        "fill_scores": np.zeros(len(workload) if order.fill else 0),
        "features": np.zeros(tables.FEATURE_COUNT),
        "traits": traits,
        "lately": np.zeros(users, tables.LATELY),
    }


def stepwise_tables(workload: Workload, machine: int) -> Stepwise:
    """Return the initial tables of a replay under a policy in Python on a machine of `machine` resources."""
    size, most = len(workload), min(len(workload), machine) + 1
    shapes = {"jobs": size, "expected": 0, "ended": 0, "decided": 1, "chosen": 2 * most, "log": 2 * size}
    shapes |= {"asked": 10, "times": 3}
    world: Stepwise = _with_queue(
        Stepwise, Setting(workload, machine), Strict(), most, 2 * (size + machine), {},
        {name: (rows,) for name, rows in shapes.items()},
    )  # fmt: skip
    return world


def _saving(setting: Setting, policy: PolicySpec) -> Tables:
    workload, machine, size = setting.workload, setting.machine, len(setting.workload)
    powers = require_powers(policy, setting.powers)
    rows, words = 2 * size + FEW, -(-machine // 64)
    world: Tables = _with_queue(
        NetworkedPowered if setting.network else Powered, setting, policy.plain, machine + 4, 4 * size + 6 * machine,
        {"jobs": np.zeros(rows, powered.ROW)},
        {
            **dict.fromkeys(("off", "kept", "tired"), (words,)),
            "areas": (tables.tree_levels(max(size, 1))[-1],),
            "since": (machine,),
        },
    )  # fmt: skip
    world.areas[:] = math.inf
    count, clock = world.count, world.clock
    clock["first"] = clock["seen"] = clock["began"]
    count["idle"], count["rows"] = machine, size
    count["lowest_off"] = count["lowest_kept"] = words
    count["ahead"] = world.became_idle["first"] = world.boots["first"] = -1
    clock["now"] = clock["credited"] = clock["measured"] = clock["reached"] = -math.inf
    _set_powers(world, policy, powers)
    limit_for(policy, workload, Machine(machine, (), powers)).write(count, clock)
    _set_keeper(world, policy)
    return world


def _with_queue(
    kind: type[Any], setting: Setting, policy: Easy | Strict, most: int, pieces: int, fixed: dict[str, Array],
    shapes: dict[str, tuple[int, ...]],
) -> Any:  # fmt: skip
    """Return tables with what EASY and strict order need in all worlds.

    Args:
        kind: the block.
        setting: what the replay starts from.
        policy: the policy and its order.
        most: most jobs and switches of machines that go on at once, plus 1.
        pieces: rows of that table.
        fixed: other tables that may grow.
        shapes: those of other tables.
    """
    workload, size, levels = setting.workload, len(setting.workload), tables.tree_levels(max(len(setting.workload), 1))
    sorts = dynamic_order(workload, policy.order, predicted=setting.predicted)
    world = kind(
        {
            "pieces": np.zeros(pieces, tables.PIECE),
            "levels": np.array(levels, np.int64),
            **dependency_tables(workload),
            **setting.of_network(len(fixed["jobs"]) if "jobs" in fixed else None),
            **fixed,
        },
        {
            "ranked": (size,),
            **dict.fromkeys(("heap_time", "heap_job"), (most,)),
            **dict.fromkeys(("queue", "scores"), (size if sorts else 1,)),
            "free": (-(-setting.machine // 64),),
            "ends": (2 * most + 2,),
            "least": (levels[-1],),
            **shapes,
        },
    )
    _fill_jobs(world, setting, policy)
    world.ranked[world.jobs["rank"][:size]] = np.arange(size)
    world.least["size"], world.least["wall"] = tables.NO_JOB, math.inf
    world.count["free"] = setting.machine
    world.count["in_turn"], world.count["fills"] = policy.order == "fcfs", policy.backfills
    return world


def _conservative(setting: Setting, whole: Policy) -> Tables:
    """Raises ConfigError, see `SplitGroups`."""
    policy: Conservative = whole.plain
    workload, machine = setting.workload, setting.machine
    size, words = len(workload), -(-machine // 64)
    most, variant = min(size, machine) + 1, policy.allocation.removeprefix("best-effort-")
    within = list(setting.groups) if policy.local else []
    profile = _first_slices(setting, whole)
    rows = 4 * FEW + 2 * (len(profile) - 1)
    world = (NetworkedReserving if setting.network else Reserving)(
        {
            "pieces": np.zeros(2 * (size + machine), tables.PIECE),
            "times": np.full(rows, -math.inf),
            "spare": np.full(rows + tables.SPAN, machine, np.int32),
            "users": np.ones(rows, np.int32),
            "sets": np.zeros((FEW, words), np.uint64),
            "free_sets": np.arange(FEW)[::-1].copy(),
            "crossing": np.zeros(FEW, tables.END),
            "groups": np.array(within or [(0, machine - 1)], tables.PIECE),
            **dependency_tables(workload),
            **setting.of_network(),
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
    for i, (begin, spare) in enumerate(profile):
        world.times[i], world.spare[i] = begin, spare
    count["slices"], count["free_sets"], count["allocation"] = len(profile), FEW, ALLOCATIONS[variant]
    count["strict"] = int(variant == policy.allocation and variant != "basic")
    world.clock["due"], world.clock["freed"] = math.inf, -math.inf
    return world


def _first_slices(setting: Setting, policy: Policy) -> list[tuple[float, int]]:
    """Return begin and number of free resources of each slice of an empty profile. Raises ConfigError.

    Rule: a power cap is a reservation that no job owns: its boundaries stay until they are past.
    """
    slices = [(-math.inf, setting.machine)]
    if policy.saves:
        limit = limit_for(policy, setting.workload, Machine(setting.machine, (), setting.powers))
        times = [time for time in limit.changes() if time < math.inf]
        slices += zip(times, limit.allowed(np.array(times)).tolist(), strict=True)
    return slices


def _fill_jobs(world: Any, setting: Setting, policy: Easy | Strict | Conservative) -> None:
    workload, machine = setting.workload, setting.machine
    jobs = world.jobs[: len(workload)]
    jobs["submit"], jobs["wall"], jobs["size"] = workload.submit_time, workload.walltime, workload.size
    jobs["run"] = np.minimum(workload.run_time, workload.walltime)
    jobs["rank"] = ranks(workload, policy.order, setting.seed, predicted=setting.predicted)
    world.clock["began"] = workload.submit_time[0] if len(workload) else 0.0
    order = dynamic_order(workload, policy.order, predicted=setting.predicted)
    world.count["total"], world.count["machine"], world.count["order"] = len(workload), machine, order
    world.free[:] = np.iinfo(np.uint64).max  # one bit per resource: all are free
    if machine % 64:
        world.free[-1] = (1 << machine % 64) - 1


def grow(world: Block) -> Any:
    """Return a copy with twice the capacity in the tables that may grow."""
    fixed = dict(world.fixed)
    fixed["pieces"] = _twice(world.pieces)
    if isinstance(world, Powered | NetworkedPowered):
        fixed["jobs"] = _twice(world.jobs)
    if isinstance(world, NetworkedPowered):
        fixed["courses"] = _twice(world.courses)
        fixed["courses"]["program"][len(world.courses) :] = networked.NONE
    if isinstance(world, Reserving | NetworkedReserving):
        rows = len(world.sets)
        for name in ("times", "spare", "users", "sets", "free_sets", "crossing"):
            fixed[name] = _twice(fixed[name])
        free = int(world.count["free_sets"])
        fixed["free_sets"][free : free + rows] = np.arange(rows, 2 * rows)
        world.count["free_sets"] = free + rows
    twin = type(world)(fixed, world.shapes)
    np.copyto(twin.buffer, world.buffer)
    return twin


def _twice(table: Array) -> Array:
    result = np.zeros((2 * len(table), *table.shape[1:]), table.dtype)
    result[: len(table)] = table
    return result


# --- machine states ---
def _set_powers(world: Any, policy: PolicySpec, powers: Powers) -> None:
    clock = world.clock
    clock["watts_idle"], clock["watts_computing"], clock["watts_off"] = powers.idle, powers.computing, powers.off or 0.0
    clock["watts_on"], clock["on_s"] = powers.on_w, powers.on_s
    clock["watts_ending"], clock["off_s"] = powers.off_w, powers.off_s
    if policy.shutdown is not None and policy.shutdown.t_idle < math.inf:
        world.count["shuts"], clock["idle_for"] = 1, policy.shutdown.t_idle


def _set_keeper(world: Any, policy: PolicySpec) -> None:
    keeper, count, clock = policy.keeper, world.count, world.clock
    if keeper is None:
        return
    clock["period_s"] = keeper.period
    count["later"], count["passes"] = keeper.switches == "later", keeper.passes == "period"
    keeper.write(count, clock)
