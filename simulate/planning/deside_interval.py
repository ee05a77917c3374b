"""The interval simulation of the DESiDE paper: run a given mapping in 0.1 s intervals with jitter, seed by seed.

Rule: the fluid engine decides and this simulation executes (Chahal et al., "DESiDE", ICPE 2019, sections 4.3-4.4). A
thread's cycle is a busy part (u*T, jittered by its group's utilisation_std, dilated by memory contention) and an idle
part; it ends with the busy part that completes its service demand. Threads that start together with utilisation_std 0
stay in step, as in the paper's model. Multi-node jobs, memory shared between nodes, the piecewise-linear model and
measured co-run factors have no interval form and are refused.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array
from ..errors import ConfigError, InvalidJobError, InvariantError
from ..kernels import load
from ..kernels.deside.tables import Intervals
from ..kernels.mapping import layout
from ..model.cluster import Cluster, Contention
from ..model.job import Workflow
from .admission import fitting
from .simulation import Outcome, Simulation

#: Length T of an interval, seconds.
INTERVAL_S = 0.1
_ENGINE = "with the interval engine"
#: Note in a plan whose times come from here.
NOTE = "times come from one interval simulation; nodes, alternatives and the lower bound from the fluid model"


def rerun(simulation: Simulation, seed: int) -> Outcome:
    """Run the plan in a simulation's tables again, in intervals, and leave the result in the tables.

    The plan is its mapping, order of starts, extra waits and throttles. Ready jobs start in the order of the plan as
    soon as they fit; on each node the first that does not fit holds back those behind it. O(events * jobs on a node),
    about 20 events a thread and second.

    Args:
        simulation: holds the run of the plan; see `refuse_unmodelled`.
        seed: of the jitter; every thread draws from a stream of its own.

    Raises:
        InvalidJobError: a job can never start on its node.
    """
    world = simulation.world
    placed, start = world.placed.copy(), world.jobs["start"].copy()
    wait_for, cap = world.jobs["wait_for"].copy(), world.nodes["cap"].copy()
    simulation.reset()
    fits = [fitting(world, shape) for shape in world.classes]
    world.placed[:], world.jobs["wait_for"], world.nodes["cap"] = placed, wait_for, cap
    for i, job in enumerate(simulation.workflow.jobs):
        node = int(placed[world.jobs["place0"][i]])
        if world.jobs["state"][i] == layout.WAITING and not fits[world.jobs["cls"][i]][node]:
            name = simulation.cluster.nodes[node].name
            raise InvalidJobError(f"job {job.id!r} can never start on {name!r}: it does not fit there")
    own = _tables(simulation, start, seed)
    if load("deside.interval")(world.address, own.address, INTERVAL_S):
        raise InvariantError("interval simulation stopped with jobs that never started")
    powered = bool(world.count["powered"])
    energy = float(world.nodes["energy"].sum()) if powered else math.nan
    return Outcome(float(world.clock["now"]), energy, world.jobs["start"].copy(), world.jobs["finish"].copy(), 1)


def refuse_unmodelled(workflow: Workflow, cluster: Cluster) -> None:
    """Raise ConfigError for everything that has no interval form (see the rule of this module)."""
    where = cluster.source or cluster.name
    for kind in cluster.types:
        key, problem = f"node_types.{kind.name}", "has no interval form"
        if kind.contention is Contention.PIECEWISE_LINEAR:
            models = f"none, equal-share or max-min {_ENGINE}"
            raise ConfigError(where, f"{key}.contention", f"piecewise-linear {problem}", models)
        if kind.co_run_inflation:
            raise ConfigError(where, f"{key}.co_run_inflation", problem, f"none {_ENGINE}")
    if cluster.shared_memory is not None:
        problem = f"nodes share the memory {cluster.shared_memory!r}"
        allowed = f"a memory of its own for each node {_ENGINE}"
        raise ConfigError(where, "nodes.memory_domain", problem, allowed)
    for job in workflow.jobs:
        if job.nodes > 1:
            where = workflow.source or workflow.name
            raise ConfigError(where, f"jobs.{job.id}.nodes", f"{job.nodes} nodes", f"1 {_ENGINE}")


def _tables(simulation: Simulation, start: Array, seed: int) -> Intervals:
    """Return the kernel's tables: a seat a job, a lane for each of its phases, a row and heap places a thread."""
    world, cls = simulation.world, simulation.world.jobs["cls"]
    groups, classes = world.groups, world.classes
    last = groups[classes["group_start"] + classes["group_count"] - 1]
    lanes = (last["phase_start"] + last["phase_count"] - groups["phase_start"][classes["group_start"]])[cls]
    count, rows = int(classes["threads"][cls].sum()), int(lanes.sum())
    own = Intervals(
        {"order": np.argsort(start, kind="stable"), "sigma": _sigma(simulation)},
        {"seats": (len(cls),), "lanes": (rows,), "threads": (count,), "fresh": (count,),
         "keys": (2, count), "ids": (2, count)},
    )  # fmt: skip
    seats = own.seats
    seats["threads"], seats["lanes"] = classes["threads"][cls], lanes
    for first in ("thread", "lane"):
        seats[f"{first}0"] = np.cumsum(seats[f"{first}s"]) - seats[f"{first}s"]
    stream = np.random.Generator(np.random.PCG64(seed))
    own.threads["random"] = stream.integers(0, 2**64 - 1, count, np.uint64, endpoint=True)
    return own


def _sigma(simulation: Simulation) -> Array:
    """Return the jitter of each thread group, at most 1."""
    world, sigma = simulation.world, np.zeros(len(simulation.world.groups))
    starts = world.classes["group_start"][world.jobs["cls"]].tolist()
    for start, profile in dict(zip(starts, (job.profile for job in simulation.workflow.jobs), strict=True)).items():
        sigma[start : start + len(profile.groups)] = [min(1.0, group.utilisation_std) for group in profile.groups]
    return sigma
