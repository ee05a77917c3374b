"""The interval simulation of the DESiDE paper: run a given mapping in 0.1 s intervals with jitter, seed by seed.

Rule: the fluid engine decides and this simulation executes (Chahal et al., "DESiDE", ICPE 2019, sections 4.3-4.4). A
thread's cycle is a busy part (u*T, jittered by its group's utilisation_std, dilated by memory contention) and an idle
part; it ends with the busy part that completes its service demand. Threads that start together with utilisation_std 0
stay in step, as in the paper's model. Multi-node jobs, memory shared between nodes, the piecewise-linear model and
measured co-run factors have no interval form and are refused.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError, InvalidJobError, InvariantError
from ..kernels import load
from ..kernels.deside.tables import Intervals
from ..kernels.mapping import layout
from ..model.cluster import Cluster, Contention
from ..model.job import Workflow
from ..model.plan import RunningJob
from .admission import fitting
from .simulation import Outcome, Simulation

Array = npt.NDArray[Any]
INTERVAL_S = 0.1
#: Note in a plan whose times come from here.
NOTE = "times come from one interval simulation; nodes, alternatives and the lower bound from the fluid model"


def interval_run(
    workflow: Workflow,
    cluster: Cluster,
    placement: Mapping[str, Sequence[str]],
    *,
    order: Mapping[str, float] | None = None,
    seed: int = 0,
    interval_s: float = INTERVAL_S,
    underway: Sequence[RunningJob] = (),
    done: Collection[str] = (),
) -> Outcome:
    """Run a given mapping in intervals. O(events * jobs on a node), about 20 events a thread and second.

    Args:
        workflow: the jobs.
        cluster: the nodes.
        placement: job id -> its node's name, as a sequence of one; jobs in `done` need none.
        order: job id -> key; ready jobs start in this order (smaller first, then file order) as soon as they fit, and
            on each node the first that does not fit holds back those behind it. None: file order.
        seed: of the jitter; every thread draws from a stream of its own.
        interval_s: length T of an interval, seconds, at least 1e-6.
        underway: running jobs, see `Simulation`.
        done: ids of ended jobs, see `Simulation`.

    Raises:
        ConfigError: an incomplete mapping, an unknown node, or something that intervals do not model.
        InvalidJobError: a malformed workflow, or a job that can never start on its node.
    """
    refuse_unmodelled(workflow, cluster)
    simulation = Simulation(workflow, cluster, underway=underway, done=done)
    world, settled = simulation.world, {u.id for u in underway} | set(done)
    for i, job in enumerate(workflow.jobs):
        if job.id in settled:
            continue
        nodes = placement.get(job.id, ())
        if len(nodes) != 1 or nodes[0] not in cluster.index:
            found = ", ".join(nodes) or "nothing"
            raise ConfigError("placement", job.id, f"found {found}", f"one node of {cluster.name}")
        world.placed[world.jobs["place0"][i]] = cluster.index[nodes[0]]
    world.jobs["start"] = 0.0 if order is None else [order.get(job.id, 0.0) for job in workflow.jobs]
    return rerun(simulation, seed, interval_s)


def rerun(simulation: Simulation, seed: int, interval_s: float = INTERVAL_S) -> Outcome:
    """Run the plan in a simulation's tables again, in intervals, and leave the result in the tables.

    The plan is its mapping, order of starts, extra waits and throttles.

    Args:
        simulation: holds the run of the plan.
        seed: see `interval_run`.
        interval_s: see `interval_run`.

    Raises:
        ConfigError: see `interval_run`.
        InvalidJobError: see `interval_run`.
    """
    if not (math.isfinite(interval_s) and interval_s >= 1e-6):
        raise ConfigError("interval_s", "", f"found {interval_s!r}", "a number of seconds, 1e-6 or more")
    refuse_unmodelled(simulation.workflow, simulation.cluster)
    world = simulation.world
    kept = world.placed, world.jobs["start"], world.jobs["wait_for"], world.nodes["cap"]
    placed, start, wait_for, cap = (table.copy() for table in kept)
    simulation.reset()
    fits = [fitting(world, shape) for shape in world.classes]
    world.placed[:], world.jobs["wait_for"], world.nodes["cap"] = placed, wait_for, cap
    for i, job in enumerate(simulation.workflow.jobs):
        node = int(placed[world.jobs["place0"][i]])
        if world.jobs["state"][i] == layout.WAITING and not fits[world.jobs["cls"][i]][node]:
            name = simulation.cluster.nodes[node].name
            raise InvalidJobError(f"job {job.id!r} can never start on {name!r}: it does not fit there")
    own = _tables(simulation, start, seed)
    if load("deside.interval")(world.address, own.address, interval_s):
        raise InvariantError("interval simulation stopped with jobs that never started")
    powered = bool(world.count[layout.POWERED])
    energy = float(world.nodes["energy"].sum()) if powered else math.nan
    return Outcome(float(world.clock[0]), energy, world.jobs["start"].copy(), world.jobs["finish"].copy(), 1)


def refuse_unmodelled(workflow: Workflow, cluster: Cluster) -> None:
    """Raise ConfigError for everything that has no interval form (see the rule of this module)."""
    where = cluster.source or cluster.name
    domains = [node.memory_domain for node in cluster.nodes if node.memory_domain]
    for kind in cluster.types:
        if kind.contention is Contention.PIECEWISE_LINEAR:
            raise ConfigError(
                where, f"node_types.{kind.name}.contention", "piecewise-linear has no interval form",
                "none, equal-share or max-min with the interval engine",
            )  # fmt: skip
        if kind.co_run_inflation:
            raise ConfigError(where, f"node_types.{kind.name}.co_run_inflation", "has no interval form",
                              "none with the interval engine")  # fmt: skip
    if len(domains) != len(set(domains)):
        shared = next(name for name in domains if domains.count(name) > 1)
        raise ConfigError(where, "nodes.memory_domain", f"nodes share the memory {shared!r}",
                          "a memory of its own for each node with the interval engine")  # fmt: skip
    for job in workflow.jobs:
        if job.nodes > 1:
            raise ConfigError(workflow.source or workflow.name, f"jobs.{job.id}.nodes", f"{job.nodes} nodes",
                              "1 with the interval engine")  # fmt: skip


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
    world = simulation.world
    sigma, seen = np.zeros(len(world.groups)), set()
    for job, c in zip(simulation.workflow.jobs, world.jobs["cls"].tolist(), strict=True):
        if c not in seen:
            seen.add(c)
            first = int(world.classes["group_start"][c])
            for g, group in enumerate(job.profile.groups):
                sigma[first + g] = min(1.0, group.utilisation_std)
    return sigma
