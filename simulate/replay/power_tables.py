"""State tables of replays on machines that can be switched off, or under a limit of power or energy.

Rule: in the table of jobs, the rows after the jobs record every switch of machines.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..kernels.queue import tables
from ..kernels.queue.network.tables import NetworkedPowered
from ..kernels.queue.power import tables as powered
from ..kernels.queue.power.tables import Powered
from ..model.machine import MixedPowers, Powers, equal_powers
from ..model.workload import Workload
from ..queue_policies.energy.power_policies import (
    EnergyBudget,
    Inertial,
    Opportunistic,
    PowerCap,
    Proportional,
    ReducePC,
)
from ..queue_policies.policy_specs import Saving, dynamic_order
from .queue_tables import Setting, check_walltimes, dependency_tables, fill_queue
from .replay_result import CHANGE, SWITCH, pieces_by_job

PowerTables = Powered | NetworkedPowered
#: Initial rows for changes of machines, in addition to one per job.
FEW = 64
#: Largest number of periods or stages in a replay; it takes minutes.
MOST_OFTEN = 1e10


def power_tables_for(setting: Setting, policy: Saving) -> PowerTables:
    """Return the initial tables of a policy with energy-saving parts. Raises ConfigError, see the checks."""
    workload, machine = setting.workload, setting.machine
    check_walltimes(workload, policy)
    check_decision_count(workload, policy)
    powers = require_powers(policy, setting.powers)
    size, words = len(workload), -(-machine // 64)
    levels, most = tables.tree_levels(max(size, 1)), machine + 4
    sorts, rows = dynamic_order(workload, policy.base.order), 2 * size + FEW
    kind: type[PowerTables] = NetworkedPowered if setting.network else Powered
    world = kind(
        {
            **setting.network_tables(rows),
            "jobs": np.zeros(rows, powered.ROW),
            "pieces": np.zeros(4 * size + 6 * machine, tables.PIECE),
            "levels": np.array(levels, np.int64),
            **dependency_tables(workload),
        },
        {
            **dict.fromkeys(("free", "off", "kept", "tired"), (words,)),
            **dict.fromkeys(("heap_time", "heap_job"), (most,)),
            **dict.fromkeys(("least", "areas"), (levels[-1],)),
            **dict.fromkeys(("queue", "scores"), (size if sorts else 1,)),
            "ranked": (size,),
            "since": (machine,),
            "ends": (2 * most + 2,),
        },
    )
    fill_queue(world, setting, policy.base)
    world.areas[:] = math.inf
    count, clock = world.count, world.clock
    clock["first"] = clock["seen"] = clock["began"]
    count["idle"] = machine
    count["rows"] = size
    count["lowest_off"] = count["lowest_kept"] = words
    count["ahead"] = world.became_idle["first"] = world.boots["first"] = -1
    clock["now"] = clock["credited"] = clock["measured"] = clock["reached"] = -math.inf
    _set_powers(world, policy, powers)
    _set_limit(world, workload, policy.limit, powers)
    _set_keeper(world, policy)
    return world


def check_decision_count(workload: Workload, policy: Saving) -> None:
    """Check that there are at most MOST_OFTEN periods and stages of a policy. Raises ConfigError. O(jobs)."""
    if policy.keeper and len(workload):
        longest = np.fmax.reduce(np.minimum(workload.run_time, workload.walltime), initial=0.0)
        lasts = float(workload.submit_time[-1] - workload.submit_time[0] + longest)
        _check_interval(workload, "period", policy.keeper.period, lasts)
    if isinstance(policy.limit, EnergyBudget) and (window := policy.limit.window(workload)):
        _check_interval(workload, "stage", policy.limit.stage, window[1] - window[0])


def _check_interval(workload: Workload, key: str, every: float, lasts: float) -> None:
    if lasts > every * MOST_OFTEN:
        problem = f"{every:g} seconds, and {workload.name} lasts {lasts:.3g}"
        raise ConfigError("policy", key, problem, f"{lasts / MOST_OFTEN:.3g} or more")


def require_powers(policy: Saving, powers: Powers | MixedPowers | None, *, of_nodes: bool = False) -> Powers:
    """Return the power of each resource.

    Args:
        policy: the policy.
        powers: power of the resources.
        of_nodes: they are the cores of nodes, which are switched as a whole.

    Raises:
        ConfigError: they lack what the policy needs.
    """
    found = equal_powers(powers)
    if (policy.shutdown or policy.keeper) and found.together > 1 and not of_nodes:
        problem = "it switches nodes, and the resources of this machine are cores"
        raise ConfigError("policy", "", problem, "nodes as resources, or cores of nodes that jobs share")
    if (policy.shutdown or policy.keeper) and found.off is None:
        problem = "the power of this machine when it is off or being switched is not known"
        raise ConfigError("policy", "", problem, "nodes with power off, switch_on and switch_off, or --procs")
    return found


def refuse_saving(
    policy: Saving, workload: Workload, powers: Powers | MixedPowers | None, *, of_nodes: bool = False
) -> tuple[float, float] | None:
    """Check a policy that decides in Python. Return begin and end of its limit, seconds; None if it has none.

    Args:
        policy: the policy.
        workload: the jobs.
        powers: power of the resources.
        of_nodes: see `require_powers`.

    Raises:
        ConfigError: the policy cannot schedule these jobs, or not with this power.
    """
    check_walltimes(workload, policy)
    check_decision_count(workload, policy)
    require_powers(policy, powers, of_nodes=of_nodes)
    return policy.limit.window(workload) if policy.limit else None


def _set_powers(world: PowerTables, policy: Saving, powers: Powers) -> None:
    clock = world.clock
    clock["watts_idle"], clock["watts_computing"], clock["watts_off"] = powers.idle, powers.computing, powers.off or 0.0
    clock["watts_on"], clock["on_s"] = powers.on_w, powers.on_s
    clock["watts_ending"], clock["off_s"] = powers.off_w, powers.off_s
    if isinstance(policy.shutdown, Opportunistic) and policy.shutdown.t_idle < math.inf:
        world.count["shuts"], clock["idle_for"] = 1, policy.shutdown.t_idle
    clock["base"] = int(world.count["machine"]) * powers.budget_idle
    clock["extra"] = powers.budget_computing - powers.budget_idle


def _set_limit(world: PowerTables, workload: Workload, limit: PowerCap | EnergyBudget | None, powers: Powers) -> None:
    window = limit.window(workload) if limit else None
    if limit is None or window is None:
        return
    count, clock, machine = world.count, world.clock, int(world.count["machine"])
    begin, end = clock["begin"], clock["end"] = window
    full = machine * powers.budget_computing
    if isinstance(limit, PowerCap):
        above, extra = limit.cap.absolute(full) - float(clock["base"]), float(clock["extra"])
        count["limit"] = powered.CAP
        count["allowed"] = machine if above >= extra * machine else max(0, math.floor(above / extra))
        return
    budget = limit.budget.absolute(full * (end - begin))
    clock["rate"], clock["tie"] = budget / (end - begin), powered.TIE * budget
    clock["stage_s"] = limit.stage
    count["limit"] = powered.REDUCED if isinstance(limit, ReducePC) else powered.BUDGET


def _set_keeper(world: PowerTables, policy: Saving) -> None:
    keeper, count, clock = policy.keeper, world.count, world.clock
    if keeper is None:
        return
    clock["period_s"] = keeper.period
    count["later"], count["passes"] = keeper.switches == "later", keeper.passes == "period"
    if isinstance(keeper, Proportional):
        count["keeper"] = powered.PROPORTIONAL
        count["usable"] = math.floor(keeper.rho * int(count["machine"]))
    elif isinstance(keeper, Inertial):
        count["keeper"], count["period"] = powered.INERTIAL, 1
        count["doubles"], clock["bound"] = keeper.growth == "double", keeper.v_ub


def changes(world: PowerTables) -> Array:
    """Return every change of machines, in the order of their begin."""
    rows = world.jobs[world.count["total"] : world.count["rows"]]
    rows = rows[np.isin(rows["state"], (powered.TO_OFF, powered.TO_KEPT, powered.TO_IDLE))]
    found = np.empty(len(rows), CHANGE)
    for name, field in (("kind", "state"), ("time", "taken"), ("until", "finish"), ("size", "size")):
        found[name] = rows[field]
    return found


def switched(world: PowerTables) -> Array:
    """Return which machines were switched, those that booted for jobs, too, in the order of time. O(rows log rows)."""
    rows, total = world.jobs[: world.count["rows"]], int(world.count["total"])
    of_job = np.arange(len(rows)) < total
    kinds = (powered.TO_OFF, powered.TO_KEPT, powered.TO_IDLE)
    rows_switch = np.where(of_job, rows["state"] == tables.ENDED, np.isin(rows["state"], kinds))
    first = np.where(of_job, rows["booted"], rows["piece0"])
    counts = np.where(rows_switch, rows["piece0"] + rows["pieces"] - first, 0)
    owner, pieces = pieces_by_job(world.pieces, first, counts)
    found = np.empty(len(owner), SWITCH)
    found["kind"] = np.where(of_job, powered.TO_IDLE, rows["state"])[owner]
    found["time"], found["until"] = rows["taken"][owner], np.where(of_job, rows["start"], rows["finish"])[owner]
    found["first"], found["last"] = pieces["first"], pieces["last"]
    return found[np.lexsort((found["first"], owner, found["kind"], found["time"]))]


def boots(world: PowerTables) -> Array:
    """Return the number of resources that had to boot for each job."""
    jobs = world.jobs[: world.count["total"]]
    pieces = world.pieces[: world.count["pieces"]]
    sums = np.concatenate([[0], np.cumsum(pieces["last"].astype(np.int64) - pieces["first"] + 1)])
    ran = jobs["state"] == tables.ENDED
    return np.where(ran, sums[jobs["piece0"] + jobs["pieces"]] - sums[np.where(ran, jobs["booted"], 0)], 0)
