"""The tables of a replay with contention: its jobs, and the resources that each had.

Rule: what a job's own numbers decide is known before the run: its rank, and whether it could ever start.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..kernels.batch.contended import tables
from ..kernels.batch.contended.tables import Contended
from ..kernels.batch.tables import PIECE
from ..workload import Workload
from .dependents import held
from .orders import ranked_by
from .pairs import Contending, Nodes, Pairs
from .processors import Processors

Array = npt.NDArray[Any]
#: Bytes and bytes/s; more than any machine has, and still no end of a task is never.
MOST = 2e18
_RULES = {
    "random": tables.RANDOM,
    "high_gflops": tables.GFLOPS,
    "high_core": tables.CORES,
    "high_mem": tables.MEMORY,
    "high_mem_bw": tables.BANDWIDTH,
    "low_power": tables.POWER,
}


def contended_world(workload: Workload, machine: Processors, policy: Contending, seed: int) -> Contended:
    """All tables. Raises ConfigError: see `refuse_unpowered`."""
    refuse_unpowered(policy, machine)
    size, many = len(workload), len(machine.processors)
    order, whole = np.arange(len(machine.nodes)), isinstance(policy, Nodes)
    jobs, ranked = _jobs(workload, policy)
    jobs["state"] = np.where(_fits(jobs, machine, whole=whole), tables.WAITS, tables.REJECTED)
    if isinstance(policy, Nodes):
        by = machine.nodes["cores"] if policy.rule == "biggest" else machine.speeds
        order, rule = np.argsort(-by, kind="stable"), tables.ORDERED_NODE
        rule = tables.RANDOM_NODE if policy.rule == "random" else rule
    else:
        rule = _RULES[policy.resource]
    processors = machine.processors.copy()
    if size:
        processors["since"] = workload.submit_time[0]
    world = Contended(
        {
            "ranked": ranked,
            "order": order,
            "nodes": machine.nodes.copy(),
            "processors": processors,
            "cores": machine.core_table.copy(),
            "jobs": jobs,
            "tasks": np.zeros(int(jobs["size"][jobs["state"] == tables.WAITS].sum()), tables.TASK),
            "random": np.array([seed], np.uint64),
            **held(workload, np.ones(size, bool)),
        },
        {
            "queue": (size,),
            "ends": (many,),
            "next_end": (2 * many,),
            "scores": (many,),
            "best": (2 * many,),
            "count": (tables.CELLS,),
            "clock": (tables.CLOCKS,),
        },
    )
    world.ends[:] = math.inf
    world.scores[:] = _scores(processors, machine, rule)
    world.count[tables.FREE], world.count[tables.RULE] = machine.cores, rule
    world.count[tables.DRAWS] = int(policy.job == "random")
    return world


def refuse_unpowered(policy: Contending, machine: Processors) -> None:
    """Raises ConfigError: the policy looks at power, and it is not known."""
    if isinstance(policy, Pairs) and policy.resource == "low_power" and not machine.powered:
        raise ConfigError("policy", "pairs:resource", "what this machine draws is not known", "nodes with power")


def _scores(processors: Array, machine: Processors, rule: int) -> Array:
    """Of processors on which nothing runs, as the kernel has them."""
    found = {
        tables.GFLOPS: -processors["flops"],
        tables.CORES: -1.0 * processors["free"],
        tables.MEMORY: -1.0 * machine.nodes["memory"][processors["node"]],
        tables.BANDWIDTH: -processors["bandwidth"],
        tables.POWER: processors["common"] * processors["idle_share"],
    }
    return np.asarray(found.get(rule, np.zeros(len(processors))))


def _jobs(workload: Workload, policy: Contending) -> tuple[Array, Array]:
    """The jobs, and rank -> job."""
    jobs, run = np.zeros(len(workload), tables.JOB), workload.run_time
    nothing = np.zeros(len(workload))
    jobs["submit"], jobs["work"], jobs["wall"] = workload.submit_time, run, workload.walltime
    jobs["size"], jobs["memory"] = workload.size, np.ceil(np.minimum(workload.more.get("memory", nothing), MOST))
    moved = np.asarray(workload.more.get("volume", nothing), np.float64)
    with np.errstate(over="ignore"):
        demand = np.divide(moved, run, out=np.zeros(len(workload)), where=run > 0)
    jobs["demand"] = np.minimum(demand, MOST)
    keys = {
        "shortest": workload.more.get("asked", workload.walltime),
        "smallest": workload.size,
        "low_mem": jobs["memory"],
        "low_mem_bw": jobs["demand"],
    }
    jobs["rank"] = ranked_by(workload, keys.get(policy.job, nothing))
    ranked = np.zeros(len(workload), np.int64)
    ranked[jobs["rank"]] = np.arange(len(workload))
    return jobs, ranked


def _fits(jobs: Array, machine: Processors, *, whole: bool) -> Array:
    """Which jobs fit on the machine, or, whole, on one of its nodes."""
    fits = np.zeros(len(jobs), bool)
    for memory in np.unique(jobs["memory"]):
        room = machine.nodes["cores"]
        if memory > 0:
            room = np.minimum(room, machine.nodes["memory"] // memory)
        mine = jobs["memory"] == memory
        fits[mine] = jobs["size"][mine] <= (room.max() if whole else room.sum())
    return fits


def pieces_of(owner: Array, core: Array, jobs: int) -> tuple[Array, Array, Array]:
    """The cores of each job as runs of neighbours: first and last of each, where a job's begin, and how many it has.

    Args:
        owner, core: of each task.
        jobs: how many there are.
    """
    placed = np.lexsort((core, owner))
    core, owner = core[placed], owner[placed]
    begins = np.ones(len(core), bool)
    begins[1:] = (core[1:] != core[:-1] + 1) | (owner[1:] != owner[:-1])
    at = np.flatnonzero(begins)
    pieces = np.zeros(len(at), PIECE)
    pieces["first"] = core[at]
    pieces["last"] = core[np.append(at[1:], len(core))[: len(at)] - 1]
    count = np.bincount(owner[at], minlength=jobs).astype(np.int64)
    return pieces, np.cumsum(count) - count, count
