"""The tables of a replay on machines that can be off, and what is read from them when it is done.

Rule: the rows behind the jobs' are all that ever happened to a machine beside its jobs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..kernels.batch import tables
from ..kernels.batch.network.tables import NetworkedPowered
from ..kernels.batch.powered import tables as powered
from ..kernels.batch.powered.tables import Clock, Count, Powered
from ..network import Network
from ..workload import Workload
from .dependents import held
from .endless import refuse_endless
from .networked import network_tables
from .orders import ranks, told_later
from .powers import Mixed, Powers
from .saving import EnergyBudget, Inertial, Opportunistic, PowerCap, Proportional, ReducePC
from .spec import Saving
from .worlds import all_of

Array = npt.NDArray[Any]
PoweredWorld = Powered | NetworkedPowered
#: Rows for changes of machines at first, beside one for each job.
FEW = 64
#: Periods and stages of a replay; these take minutes.
MOST_OFTEN = 1e10
#: A change of machines: to what, when it began, how many.
CHANGE = np.dtype([("kind", np.int64), ("time", np.float64), ("until", np.float64), ("size", np.int64)])


def powered_world(
    workload: Workload, machine: int, policy: Saving, powers: Powers | Mixed | None, seed: int,
    network: Network | None = None,
) -> PoweredWorld:  # fmt: skip
    """Raises ConfigError: the machine cannot do what the policy wants of it, or a job has no walltime to plan with."""
    refuse_endless(workload, policy)
    refuse_countless(workload, policy)
    powers = known_powers(policy, powers)
    size, words = len(workload), -(-machine // 64)
    levels, most = tables.tree_levels(max(size, 1)), machine + 4
    sorts = told_later(workload, policy.base.order)
    rows = 2 * size + FEW
    kind: type[PoweredWorld] = Powered if network is None else NetworkedPowered
    world = kind(
        {
            **({} if network is None else network_tables(workload, network, rows)),
            "jobs": np.zeros(rows, powered.ROW),
            "pieces": np.zeros(4 * size + 6 * machine, tables.PIECE),
            "levels": np.array(levels, np.int64),
            **held(workload),
        },
        {
            "ranked": (size,),
            "free": (words,),
            "off": (words,),
            "kept": (words,),
            "tired": (words,),
            "since": (machine,),
            "heap_time": (most,),
            "heap_job": (most,),
            "ends": (2 * most + 2,),
            "least": (levels[-1],),
            "areas": (levels[-1],),
            "queue": (size if sorts else 1,),
            "scores": (size if sorts else 1,),
            "count": (Count.CELLS,),
            "clock": (Clock.CELLS,),
        },
    )
    jobs = world.jobs[:size]
    jobs["submit"], jobs["wall"], jobs["size"] = workload.submit_time, workload.walltime, workload.size
    jobs["run"] = np.minimum(workload.run_time, workload.walltime)
    jobs["rank"] = ranks(workload, policy.base.order, seed)
    world.ranked[jobs["rank"]] = np.arange(size)
    world.least["size"], world.least["wall"] = tables.NOBODY, math.inf
    world.areas[:] = math.inf
    world.free[:] = all_of(machine)
    world.clock[[tables.BEGAN, Clock.FIRST, Clock.SEEN]] = workload.submit_time[0] if size else 0.0
    count = world.count
    count[tables.FREE] = count[tables.MACHINE] = count[Count.IDLE] = machine
    count[tables.IN_TURN], count[tables.FILLS] = int(policy.base.order == "fcfs"), int(policy.base.backfills)
    count[tables.ORDER] = sorts
    count[Count.TOTAL] = count[Count.ROWS] = size
    count[[Count.LOWEST_OFF, Count.LOWEST_KEPT]] = words
    count[[Count.FIRST_IDLE, Count.FIRST_BOOT, Count.AHEAD]] = -1
    world.clock[[tables.NOW, Clock.CREDITED, Clock.MEASURED, Clock.REACHED]] = -math.inf
    _set_powers(world, policy, powers)
    _set_limit(world, workload, policy.limit, powers)
    _set_keeper(world, policy)
    return world


def refuse_countless(workload: Workload, policy: Saving) -> None:
    """Raises ConfigError: the policy is to act more often than can be waited for. O(jobs)."""
    if not len(workload):
        return
    if policy.keeper:
        longest = np.fmax.reduce(np.minimum(workload.run_time, workload.walltime), initial=0.0)
        lasts = float(workload.submit_time[-1] - workload.submit_time[0] + longest)
        _refuse_countless(workload, "period", policy.keeper.period, lasts)
    if isinstance(policy.limit, EnergyBudget) and (window := policy.limit.window(workload)):
        _refuse_countless(workload, "stage", policy.limit.stage, window[1] - window[0])


def _refuse_countless(workload: Workload, key: str, every: float, lasts: float) -> None:
    if lasts > every * MOST_OFTEN:
        problem = f"{every:g} seconds, and {workload.name} lasts {lasts:.3g}"
        raise ConfigError("policy", key, problem, f"{lasts / MOST_OFTEN:.3g} or more")


def known_powers(policy: Saving, powers: Powers | Mixed | None) -> Powers:
    """What resources draw. Raises ConfigError: not all of it is known that the policy needs."""
    if powers is None:
        known = "a cluster file that says it, or --procs"
        raise ConfigError("policy", "", "what this machine draws is not known", known)
    if isinstance(powers, Mixed):
        problem = "what resources of this machine draw differs, and here they have to be alike"
        raise ConfigError("policy", "", problem, "a policy to which nothing is added with +, or nodes of one power")
    if (policy.shutdown or policy.keeper) and powers.off is None:
        problem = "it is not known what resources of this machine draw when they are off, and how they get there"
        raise ConfigError("policy", "", problem, "nodes with power off, switch_on and switch_off, or --procs")
    return powers


def _set_powers(world: PoweredWorld, policy: Saving, powers: Powers) -> None:
    clock = world.clock
    clock[Clock.WATTS_IDLE], clock[Clock.WATTS_COMPUTING] = powers.idle, powers.computing
    clock[Clock.WATTS_ON], clock[Clock.WATTS_ENDING] = powers.on_w, powers.off_w
    clock[Clock.WATTS_OFF] = powers.off or 0.0
    clock[Clock.ON_S], clock[Clock.OFF_S] = powers.on_s, powers.off_s
    if isinstance(policy.shutdown, Opportunistic) and policy.shutdown.t_idle < math.inf:
        world.count[Count.SHUTS], clock[Clock.IDLE_FOR] = 1, policy.shutdown.t_idle
    clock[Clock.BASE] = int(world.count[tables.MACHINE]) * powers.budget_idle
    clock[Clock.EXTRA] = powers.budget_computing - powers.budget_idle


def _set_limit(world: PoweredWorld, workload: Workload, limit: PowerCap | EnergyBudget | None, powers: Powers) -> None:
    window = limit.window(workload) if limit else None
    if limit is None or window is None:
        return
    count, clock, machine = world.count, world.clock, int(world.count[tables.MACHINE])
    begin, end = clock[Clock.BEGIN], clock[Clock.END] = window
    full = machine * powers.budget_computing
    if isinstance(limit, PowerCap):
        above, extra = limit.cap.of(full) - float(clock[Clock.BASE]), float(clock[Clock.EXTRA])
        count[Count.LIMIT] = powered.CAP
        count[Count.ALLOWED] = machine if above >= extra * machine else max(0, math.floor(above / extra))
        return
    budget = limit.budget.of(full * (end - begin))
    clock[Clock.RATE], clock[Clock.TIE] = budget / (end - begin), powered.TIE * budget
    clock[Clock.STAGE_S] = limit.stage
    count[Count.LIMIT] = powered.REDUCED if isinstance(limit, ReducePC) else powered.BUDGET


def _set_keeper(world: PoweredWorld, policy: Saving) -> None:
    keeper, count, clock = policy.keeper, world.count, world.clock
    if keeper is None:
        return
    clock[Clock.PERIOD_S] = keeper.period
    count[Count.LATER], count[Count.PASSES] = keeper.switches == "later", keeper.passes == "period"
    if isinstance(keeper, Proportional):
        count[Count.KEEPER] = powered.PROPORTIONAL
        count[Count.USABLE] = math.floor(keeper.rho * int(count[tables.MACHINE]))
    elif isinstance(keeper, Inertial):
        count[Count.KEEPER], count[Count.PERIOD] = powered.INERTIAL, 1
        count[Count.DOUBLES], clock[Clock.BOUND] = keeper.growth == "double", keeper.v_ub


def changes(world: PoweredWorld) -> Array:
    """Every change of machines, in the order in which they began."""
    rows = world.jobs[world.count[Count.TOTAL] : world.count[Count.ROWS]]
    rows = rows[np.isin(rows["state"], (powered.TO_OFF, powered.TO_KEPT, powered.TO_IDLE))]
    found = np.empty(len(rows), CHANGE)
    for name, field in (("kind", "state"), ("time", "taken"), ("until", "finish"), ("size", "size")):
        found[name] = rows[field]
    return found


def boots(world: PoweredWorld) -> Array:
    """How many resources had to boot for each job."""
    jobs = world.jobs[: world.count[Count.TOTAL]]
    pieces = world.pieces[: world.count[tables.PIECES]]
    sums = np.concatenate([[0], np.cumsum(pieces["last"].astype(np.int64) - pieces["first"] + 1)])
    ran = jobs["state"] == tables.ENDED
    return np.where(ran, sums[jobs["piece0"] + jobs["pieces"]] - sums[np.where(ran, jobs["booted"], 0)], 0)


def in_order(pieces: Array, piece0: Array, counts: Array) -> tuple[Array, Array, Array]:
    """The jobs' pieces alone, each job's in order, neighbours joined. O(pieces log pieces)."""
    owner = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    mine = pieces[np.repeat(piece0, counts) + within]
    mine = mine[np.lexsort((mine["first"], owner))]
    joined = np.zeros(len(mine), bool)
    joined[1:] = (owner[1:] == owner[:-1]) & (mine["first"][1:] == mine["last"][:-1] + 1)
    first = np.flatnonzero(~joined)
    found = mine[first]
    found["last"] = mine["last"][np.append(first[1:], len(mine)) - 1] if len(mine) else found["last"]
    number = np.bincount(owner[first], minlength=len(counts))
    return found, np.cumsum(number) - number, number
