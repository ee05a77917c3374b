"""EASY backfilling and strict order in plans, in compiled code.

Rule: the plan of `run_compiled` is the one that `queue_mapping` makes with the policy in Python. Some cases are left to
that policy: dependencies, orders that change with time, jobs that are rejected, and jobs whose threads end or change
their needs at different times, because a policy is called only when jobs end. `run_backfilling` takes all but the
rejected ones: there a job that depends on others has its place in the order from the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from ..kernels.mapping.layout import World
from ..kernels.object_cache import load
from ..model.objective import Submitted
from ..model.plan import Reservation, RunningJob
from ..queue_policies.easy_policy import Backfilling
from ..queue_policies.order import Order
from ..queue_policies.queued_job import NodeJob
from .admission import fitting
from .simulation import Simulation
from .workflow_tables import set_free, with_backfilling


def cores_of(simulation: Simulation) -> Array:
    """Return the cores that a queue policy gives out on each node; -1: the node takes no jobs [nodes]."""
    world = simulation.world
    cores: Array = np.floor(np.minimum(world.types["cores"][world.nodes["type"]], world.nodes["limit"]))
    return cores


def expected_run_times(simulation: Simulation) -> Array:
    """Return the isolated run time of each job on the slowest usable node, seconds [jobs]."""
    world, isolated = simulation.world, simulation.isolated
    kinds = isolated[:, np.unique(world.nodes["type"][world.nodes["limit"] >= 0.0])]
    run_times: Array = np.where(np.isfinite(kinds), kinds, 0.0).max(axis=1, initial=0.0)[world.jobs["cls"]]
    return run_times


def time_limits(simulation: Simulation) -> Array:
    """Return the walltime of each job, or its expected run time where it has none, seconds [jobs]."""
    walltimes = [math.nan if job.walltime is None else job.walltime for job in simulation.workflow.jobs]
    limits: Array = np.where(np.isnan(walltimes), expected_run_times(simulation), walltimes)
    return limits


def run_compiled(
    simulation: Simulation, policy: Backfilling, underway: Sequence[RunningJob], submitted: Sequence[Submitted]
) -> dict[int, Reservation] | None:
    """Run a workflow as the policy decides; the tables then hold the times, places and energy of the run.

    Args:
        simulation: of the workflow, in its first state.
        policy: the policy.
        underway: the running jobs.
        submitted: the submissions of users.

    Returns:
        The present reservation, by position of its job; None if the run cannot be made here. The simulation is then in
        its first state.
    """
    order = policy.queue
    if not isinstance(order, Order) or not order.steady or not _is_simple(simulation.world):
        return None
    limits = time_limits(simulation)
    return run_backfilling(simulation, order, limits, underway, submitted, fills=policy.fills)


def run_backfilling(
    simulation: Simulation, queue: Order, limits: Array, underway: Sequence[RunningJob],
    submitted: Sequence[Submitted], *, fills: bool = True,
) -> dict[int, Reservation] | None:  # fmt: skip
    """Run a workflow under EASY backfilling, or in strict order; the tables then hold the run.

    O(nodes + jobs), and the events of the run, see `kernels.mapping.backfilling`.

    Args:
        simulation: of the workflow, in its first state.
        queue: the order of the jobs; one that does not change with time.
        limits: for how long each job is expected to run, seconds [jobs].
        underway: the running jobs.
        submitted: the submissions of users.
        fills: backfill; False: start the jobs strictly in order.

    Returns:
        As `run_compiled`; None if a job is larger than the cores of its nodes.
    """
    world, jobs, cores = simulation.world, simulation.workflow.jobs, cores_of(simulation)
    state = world.jobs["state"]
    running, waiting = np.flatnonzero(state == layout.RUNNING), np.flatnonzero(state == layout.WAITING)
    if not _all_fit(world, waiting, cores):
        return None
    order = _order(simulation, submitted, queue, waiting, limits)
    rank = np.empty(len(jobs), np.int64)
    rank[np.concatenate([order, np.flatnonzero(state != layout.WAITING)])] = np.arange(len(jobs))
    queue_world = with_backfilling(world, cores, limits, rank)
    _take_running(queue_world, running, cores)
    kernel, tables = load(), (queue_world.address, simulation.scratch.address)
    kernel(layout.SETTLE, *tables, 0, -1, 0, math.inf)
    elapsed = {entry.id: entry.elapsed_s for entry in underway}
    queue_world.jobs["start"][running] = [-elapsed.get(jobs[row].id, 0.0) for row in running.tolist()]
    queue_world.count["instants"] = 1  # the run goes on from here
    reserved = _reservation(simulation, queue_world) if fills else {}
    kernel(layout.RUN, *tables, int(layout.EASY if fills else layout.STRICT), -1, 1, math.inf)
    if simulation.scratch.answer["status"] != layout.FINISHED:
        return None
    queue_world.jobs["start"][running] = 0.0
    world.jobs[:], world.placed[:], world.clock["now"] = queue_world.jobs, queue_world.placed, queue_world.clock["now"]
    world.nodes["energy"] = queue_world.nodes["energy"]
    return reserved


def _reservation(simulation: Simulation, before: World) -> dict[int, Reservation]:
    """Return what the first pass reserves for the first job that does not fit; `before` stays as it is."""
    world = before.copy()
    load()(layout.REPLAY, world.address, simulation.scratch.address, int(layout.EASY), 1, 0, math.inf)
    count, time = world.count, float(world.clock["reserved"])
    if not count["waiting"]:
        return {}
    head, names = int(world.queued[count["head"]]), [*simulation.cluster.index]
    nodes = tuple(names[node] for node in sorted(world.held[: count["held"]].tolist()))
    promised = len(nodes) == simulation.workflow.jobs[head].nodes and 0.0 < time < math.inf
    return {head: Reservation(nodes, time)} if promised else {}


def _is_simple(world: World) -> bool:
    """Return whether no job waits for another, and each ends and changes its needs at one time only."""
    waits, groups = bool(world.jobs["blockers"].any()), world.classes["group_count"]
    phased = bool((world.groups["phase_count"] > 1).any())
    return not (waits or phased or bool((groups > 1).any()) or world.count["split"] > 1)


def _all_fit(world: World, waiting: Array, cores: Array) -> bool:
    """Return whether all waiting jobs fit on the empty nodes, without more threads than cores. O(shapes x nodes)."""
    _, firsts = np.unique(world.jobs["queue"][waiting], return_index=True)
    for shape in world.classes[world.jobs["cls"][waiting[firsts]]]:
        if (fitting(world, shape) & (cores >= shape["threads"])).sum() < shape["nodes"]:
            return False
    return True


def _order(
    simulation: Simulation, submitted: Sequence[Submitted], order: Order, waiting: Array, limits: Array
) -> Array:
    """Return the waiting jobs in an order of the queue."""
    jobs, world = simulation.workflow.jobs, simulation.world
    since = {name: -submission.waited for submission in submitted for name in submission.jobs}
    submit_time = np.array([since.get(jobs[row].id, 0.0) for row in waiting.tolist()])
    first = np.argsort(submit_time, kind="stable")
    waiting, submit_time = waiting[first], submit_time[first]
    size = (world.classes["threads"] * world.classes["nodes"])[world.jobs["cls"][waiting]].astype(np.int64)
    of = {"number": waiting, "size": size, "walltime": limits[waiting], "submit_time": submit_time}
    queue = list[NodeJob]()
    for row, job_size, walltime, since_s in zip(*(column.tolist() for column in of.values()), strict=True):
        queue.append(NodeJob(row, jobs[row].id, job_size, walltime, since_s, nodes=jobs[row].nodes))
    return np.array([job.number for job in order.arranged(queue, queue, 0.0, lambda: of)], np.int64)


def _take_running(world: World, running: Array, cores: Array) -> None:
    """Take the cores of the running jobs, and list their ends. O(nodes + slots)."""
    count, free = world.count, cores.copy()
    placed, first = world.placed, world.jobs["place0"]
    for row in running.tolist():
        shape = world.classes[world.jobs["cls"][row]]
        free[placed[first[row] : first[row] + shape["nodes"]]] -= shape["threads"]
    set_free(world, free)
    world.unlisted[: len(running)], count["unlisted"] = running, len(running)
    world.clock["first_end"] = -math.inf  # not known
