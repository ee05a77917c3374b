"""The tables of jobs on nodes that they share: those of a plan, for a workload.

Rule: a run time is that on the slowest node type. Of a job with a program, the tables know the mean demand, and how
long it computes and waits; they know nothing of its messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from ..kernels.mapping.layout import World
from ..kernels.queue.network import tables
from ..model.cluster import Cluster, comparable_speeds
from ..model.machine import powers_by_node
from ..model.network import Network
from ..model.programs import Programs
from ..model.workload import Workload
from ..planning.workflow_tables import NO_EDGES, Template, new_world, template_of
from ..queue_policies.energy.power_limits import NoLimit
from .known_run_times import ACTUAL
from .network_tables import network_tables
from .node_allocation import NodeShapes, refuse_unknown_times

#: The compiled kernels: that of jobs with run times, and that of jobs that communicate.
KERNEL, NETWORKED = "mapping.entry", "mapping.networked"
#: Shortest run time that is simulated, seconds.
SHORTEST_S = 1e-6


def believe(world: World, row: int, expected: float) -> None:
    """Let forecasts expect this run time of a job, in seconds."""
    first = int(world.groups["phase_start"][row]) * len(world.types)
    slowest = float(world.phases["work"][first : first + len(world.types)].max())
    world.classes["told"][row] = max(expected, SHORTEST_S) / slowest


def kernel_for(world: World) -> str:
    """Return the kernel for a world."""
    return NETWORKED if isinstance(world, tables.NetworkedNodes) else KERNEL


def tables_of(
    workload: Workload, cluster: Cluster, runtimes: str, network: Network | None = None, *,
    limit: NoLimit = NoLimit(), log_power: bool = False,
) -> tuple[World, Array, Array]:  # fmt: skip
    """Return the tables, which jobs fit on the nodes, and the threads of each on each of its nodes.

    Args:
        workload: the jobs.
        cluster: the nodes.
        runtimes: what forecasts may know, WALLTIME or ACTUAL.
        network: between the nodes, for jobs whose run times depend on it.
        limit: jobs that can never start under it do not fit.
        log_power: see `replay.replay`.

    Raises:
        ConfigError: a run time is not known, or a walltime that forecasts need.
    """
    refuse_unknown_times(workload, walltimes=runtimes != ACTUAL, networked=network is not None)
    template, size, kinds = template_of(cluster), len(workload), len(cluster.types)
    shapes, memory = NodeShapes(cluster), workload.more.get("memory", np.zeros(size))
    job_shapes = [
        shapes.of(*request) or (0, 0) for request in zip(workload.size.tolist(), memory.tolist(), strict=True)
    ]
    nodes, threads = np.array(job_shapes, np.int64).reshape(-1, 2).T
    fits = (nodes > 0) & (nodes * threads <= limit.largest())
    nodes = np.maximum(nodes, 1)
    phases = _phases(workload, cluster)
    classes = np.zeros(size, layout.CLASS)
    classes["threads"], classes["memory"], classes["nodes"], classes["told"] = threads, memory * threads, nodes, 1.0
    if runtimes != ACTUAL:
        run = phases["work"].reshape(size, -1, kinds)[:, 0].max(axis=1, initial=0.0)
        classes["told"] = np.maximum(workload.walltime, SHORTEST_S) / run
    _, queue = np.unique(np.stack([threads, nodes, classes["memory"]]), axis=1, return_inverse=True)
    more = dict[str, Array]()
    if network is not None:
        slots = int(np.minimum(template.nodes["limit"], size * classes["threads"].max(initial=1)).sum())
        more = network_tables(workload, network, powers_by_node(cluster), slots=slots, log_power=log_power)
        more["flop_s"] = np.array([kind.relative_speed for kind in cluster.types])
    kind = World if network is None else tables.NetworkedNodes
    world = world_of(kind, workload, template, classes, phases, queue.reshape(-1), fits, more)
    count = world.count
    count["simple"] = template.simple and network is None and bool((nodes == 1).all())
    count["beliefs"] = network is not None or bool((classes["told"] != 1.0).any())
    return world, fits, threads


def world_of(
    kind: type[World], workload: Workload, template: Template, classes: Array, phases: Array, queue: Array,
    fits: Array, more: Mapping[str, Array], *, tasks: bool = False,
) -> World:  # fmt: skip
    """Return the tables of the jobs of a workload, each of a class of its own, that wait for their submission.

    Args:
        kind: of the tables.
        workload: the jobs.
        template: the nodes.
        classes: the class of each job, with its threads, memory, nodes and `told` [jobs].
        phases: of each job on each node type [jobs * phases of a job * types].
        queue: in which each job waits, from 0 [jobs].
        fits: which jobs can run [jobs].
        more: further tables that the state does not hold.
        tasks: see `new_world`.
    """
    size = len(workload)
    classes["group_start"], classes["group_count"], classes["places"] = np.arange(size), 1, -1
    groups = np.zeros(size, layout.GROUP)
    groups["count"], groups["phase_start"], groups["phase_count"] = classes["threads"], np.arange(size), 1
    groups["phase_start"] *= len(phases) // max(size * len(template.types), 1)
    before, after, first, edges = _dependencies(workload, fits)
    fixed = {
        **more, "classes": classes, "groups": groups, "phases": phases, "successors": after, "edges": edges,
        "allowed": np.zeros((0, len(template.nodes)), np.int64),
    }  # fmt: skip
    world = new_world(kind, template, fixed, np.arange(size), queue, arrivals=int(fits.sum()), tasks=tasks)
    began = float(workload.submit_time[0]) if size else 0.0
    world.clock["share"] = math.inf
    world.clock["now"] = world.nodes["energy_time"] = world.nodes["load_time"] = began
    jobs, world.arrivals[:] = world.jobs, np.flatnonzero(fits)
    jobs["submit"], jobs["walltime"] = workload.submit_time, workload.walltime
    jobs["blockers"] = before + 1  # one more: its submission
    jobs["succ_start"], jobs["succ_count"] = first[:-1], np.diff(first)
    return world


def _phases(workload: Workload, cluster: Cluster) -> Array:
    """Return the phase of each job on each node type; a run time is that on the slowest.

    Of a job with a program, that is its mean demand; the following rows are for the phase that it is in.
    """
    speeds, size = comparable_speeds(cluster.types), len(workload)
    busy, idle = np.maximum(workload.run_time, SHORTEST_S), np.zeros(size)
    moved = np.where(workload.run_time > 0.0, workload.more.get("volume", np.zeros(size)), 0.0)
    if workload.programs is not None:
        placed = workload.more["program"] >= 0
        flops, waits, bytes_ = _totals(workload.programs)[:, workload.more["program"][placed]]
        busy[placed], moved[placed] = flops / min(kind.relative_speed for kind in cluster.types), bytes_
        idle[placed] = np.maximum(waits, SHORTEST_S - busy[placed])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bandwidth = np.where(busy > 0.0, moved / busy, 0.0)
    phases = np.zeros((size, 1 if workload.programs is None else 2, len(cluster.types)), layout.PHASE)
    for k, kind in enumerate(cluster.types):
        ratio = min(speeds) / speeds[k]
        mean = phases[:, 0, k]
        work = idle + busy * ratio
        mean["work"], mean["utilisation"] = work, busy * ratio / work
        mean["bandwidth"] = bandwidth if ratio == 1.0 else np.minimum(bandwidth / ratio, kind.memory_bandwidth)
    return phases.reshape(-1)


def _totals(programs: Programs) -> Array:
    """Return the flops of the busiest rank, seconds of waiting, and bytes of memory moved by a rank [3, programs]."""
    rows, kind = programs.phases, programs.phases["kind"]
    computes = np.isin(kind, (tables.EVEN, tables.MATRIX))
    amounts = [
        np.where(computes, rows["amount"], 0.0),
        np.where(kind == tables.WAIT, rows["amount"], 0.0),
        rows["moved"],
    ]
    totals: Array = np.add.reduceat(np.array(amounts), programs.programs["first"], axis=1) * programs.programs["rounds"]
    return totals


def _dependencies(workload: Workload, fits: Array) -> tuple[Array, Array, Array, Array]:
    """Return the number of predecessors of each job, all followers, the first follower of each job, and the edges.

    Jobs that fail whatever happens have only followers to which that does not matter: the others wait for ever.
    """
    size, dependencies = len(workload), workload.dependencies
    if dependencies is None:
        nothing = np.zeros(0, np.int64)
        return np.zeros(size, np.int64), nothing, np.zeros(size + 1, np.int64), NO_EDGES
    well = workload.more.get("returns", np.zeros(size, np.int64)) == 0
    pairs = dependencies.pairs(well[dependencies.before] | dependencies.at_any_end)
    pairs = pairs.pairs(np.lexsort((pairs.after, pairs.before)))
    first = np.concatenate([[0], np.cumsum(np.bincount(pairs.before, minlength=size))])
    linked = bool(pairs.delays.any() or pairs.at_any_end.any())
    edges = np.zeros(len(pairs) if linked else 0, layout.EDGE)
    if linked:
        edges["delay"], edges["any_end"] = np.where(fits[pairs.after], pairs.delays, 0.0), pairs.at_any_end
    return np.bincount(dependencies.after, minlength=size), pairs.after, first.astype(np.int64), edges
