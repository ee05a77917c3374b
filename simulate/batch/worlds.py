"""The tables of a replay, as its policy's kernel wants them at the start, and with more room when it asks for it.

Rule: what may have to grow is a table of its own; all else is sized by the workload.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels.batch import tables
from ..kernels.batch.network.tables import NONE, Networked, NetworkedPowered, NetworkedReserving
from ..kernels.batch.powered.tables import Powered
from ..kernels.batch.tables import Replay, Reserving, RichReplay
from ..kernels.block import Block
from ..network import Network
from ..workload import Workload
from .dependents import held
from .endless import refuse_endless
from .networked import network_tables
from .orders import ranks, told_later
from .spec import Conservative, Easy, Strict

Array = npt.NDArray[Any]
World = Replay | RichReplay | Reserving | Networked | NetworkedReserving
ALLOCATIONS = {"basic": tables.BASIC, "contiguous": tables.CONTIGUOUS, "local": tables.LOCAL}
#: Jobs for which a profile has room at first.
FEW = 64


def easy(
    workload: Workload, machine: int, policy: Easy | Strict, seed: int, network: Network | None = None,
    decision_time: float = 0.0,
) -> World:  # fmt: skip
    """For EASY and strict order, on a network, whose decisions take so many seconds."""
    size, sorts = len(workload), told_later(workload, policy.order)
    levels = tables.tree_levels(max(size, 1))
    most = min(size, machine) + 1
    rich = decision_time > 0.0 or workload.dependencies is not None
    kind: type[World] = RichReplay if rich else Replay
    joined = {}
    if network is not None:
        kind, joined = Networked, network_tables(workload, network)
    world = kind(
        {"pieces": _pieces(size, machine), "levels": np.array(levels, np.int64), **held(workload), **joined},
        {
            "jobs": (size,),
            "ranked": (size,),
            "free": (-(-machine // 64),),
            "heap_time": (most,),
            "heap_job": (most,),
            "ends": (2 * most + 2,),
            "least": (levels[-1],),
            "decided": (most if decision_time > 0.0 else 1,),
            "queue": (size if sorts else 1,),
            "scores": (size if sorts else 1,),
            "count": (tables.CELLS,),
            "clock": (tables.CLOCKS,),
        },
    )
    _jobs(world, workload, ranks(workload, policy.order, seed))
    world.ranked[world.jobs["rank"]] = np.arange(size)
    world.least["size"], world.least["wall"] = tables.NOBODY, math.inf
    world.free[:] = all_of(machine)
    world.count[tables.FREE] = world.count[tables.MACHINE] = machine
    world.count[tables.IN_TURN] = int(policy.order == "fcfs")
    world.count[tables.ORDER] = sorts
    world.count[tables.FILLS] = int(policy.backfills)
    world.clock[tables.TAKES], world.clock[tables.BUSY] = decision_time, math.inf
    return world


def conservative(
    workload: Workload, machine: int, policy: Conservative, seed: int, groups: Sequence[tuple[int, int]],
    network: Network | None = None,
) -> World:  # fmt: skip
    """For conservative backfilling; `groups`: first and last resource of each cluster of the machine.

    Raises:
        ConfigError: a job has no walltime: behind it, no other could be promised a place; see `Groups`.
    """
    refuse_endless(workload, policy)
    size, words = len(workload), -(-machine // 64)
    most, variant = min(size, machine) + 1, policy.allocation.removeprefix("best-effort-")
    within = list(groups) if policy.local else []
    kind, joined = (Reserving, {}) if network is None else (NetworkedReserving, network_tables(workload, network))
    world = kind(
        {
            "pieces": _pieces(size, machine),
            "slices": np.zeros(2 * FEW, tables.SLICE),
            "blocks": np.zeros(2 * FEW // tables.SPAN, tables.EXTENT),
            "sets": np.zeros((FEW, words), np.uint64),
            "free_sets": np.arange(FEW)[::-1].copy(),
            "groups": np.array(within or [(0, machine - 1)], tables.PIECE),
            **held(workload),
            **joined,
        },
        {
            "jobs": (size,),
            "heap_time": (most,),
            "heap_job": (most,),
            "queue": (size + 1,),
            "free": (words,),
            "count": (tables.ALL_CELLS,),
            "clock": (tables.CLOCKS,),
        },
    )
    _jobs(world, workload, ranks(workload, policy.order, seed))
    count = world.count
    world.slices[0] = (-math.inf, machine, 1)
    world.free[:] = all_of(machine)
    count[tables.SLICES], count[tables.FREE_SETS] = 1, FEW
    count[tables.MACHINE], count[tables.ALLOCATION] = machine, ALLOCATIONS[variant]
    count[tables.ORDER] = told_later(workload, policy.order)
    count[tables.STRICT] = int(variant == policy.allocation and variant != "basic")
    world.clock[tables.DUE], world.clock[tables.FREED] = math.inf, -math.inf
    return world


def grown(world: Block) -> Any:
    """With twice the room in the tables that may grow."""
    fixed = dict(world.fixed)
    fixed["pieces"] = _twice(world.pieces)
    if isinstance(world, Powered | NetworkedPowered):
        fixed["jobs"] = _twice(world.jobs)
    if isinstance(world, NetworkedPowered):
        fixed["courses"] = _twice(world.courses)
        fixed["courses"]["program"][len(world.courses) :] = NONE
    if isinstance(world, Reserving | NetworkedReserving):
        rows = len(world.sets)
        for name in ("slices", "blocks", "sets", "free_sets"):
            fixed[name] = _twice(fixed[name])
        free = int(world.count[tables.FREE_SETS])
        fixed["free_sets"][free : free + rows] = np.arange(rows, 2 * rows)
        world.count[tables.FREE_SETS] = free + rows
    twin = type(world)(fixed, world.shapes)
    np.copyto(twin.buffer, world.buffer)
    return twin


def _twice(table: Array) -> Array:
    found = np.zeros((2 * len(table), *table.shape[1:]), table.dtype)
    found[: len(table)] = table
    return found


def _jobs(world: Block, workload: Workload, order: Array) -> None:
    jobs = world.jobs
    jobs["submit"], jobs["wall"], jobs["size"] = workload.submit_time, workload.walltime, workload.size
    jobs["run"] = np.minimum(workload.run_time, workload.walltime)
    jobs["rank"] = order
    world.clock[tables.BEGAN] = workload.submit_time[0] if len(workload) else 0.0


def _pieces(size: int, machine: int) -> Array:
    return np.zeros(2 * size + 2 * machine, tables.PIECE)


def all_of(machine: int) -> Array:
    """A bit for each resource."""
    words = np.full(-(-machine // 64), np.iinfo(np.uint64).max, np.uint64)
    if machine % 64:
        words[-1] = (1 << machine % 64) - 1
    return words
