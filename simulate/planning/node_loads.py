"""The present loads of nodes, as a policy sees them, read from the tables of a simulation."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from ..kernels.mapping.layout import World
from ..model.cluster import Cluster, comparable_speeds
from ..queue_policies.free_nodes import NodeLoads
from ..queue_policies.queued_job import QueuedJob


class NodeMeter:
    """Reads the loads of some nodes of a world.

    Args:
        world: the tables.
        cluster: the nodes.
        rows: positions of the nodes to read in the cluster.
    """

    def __init__(self, world: World, cluster: Cluster, rows: Array) -> None:
        self._world, self._rows = world, rows
        speeds = np.array(comparable_speeds(cluster.types))
        self._speeds = (speeds / speeds.min())[world.nodes["type"]]
        parts = np.array([world.classes["group_count"], world.classes["nodes"]]).prod(axis=0) * world.count["split"]
        self._job_of = np.repeat(np.arange(len(world.jobs)), parts[world.jobs["cls"]])
        idle = [kind.power.idle if kind.power is not None else np.nan for kind in cluster.types]
        self._idle = np.array(idle)[world.nodes["type"]]
        self._demand = _demands(world, int(speeds.argmin()))

    def read(self) -> NodeLoads:
        """Return the loads at this moment. O(nodes + parts of all jobs)."""
        world, rows, count = self._world, self._rows, len(self._world.nodes)
        nodes, kinds = world.nodes, world.types[world.nodes["type"]]
        parts, strands = world.parts, world.strands[world.parts["strand"]]
        runs = world.jobs["state"][self._job_of] == layout.RUNNING
        runs &= (parts["threads"] > 0.0) & np.isfinite(strands["finish"])
        parts, strands = parts[runs], strands[runs]
        at, threads = parts["node"], parts["threads"]
        phase = world.groups["phase_start"][strands["group"]] + strands["phase"]
        demand = threads * world.phases["bandwidth"][phase * len(world.types) + nodes["type"][at]]
        tasks = np.bincount(at, threads, count)
        progress = np.bincount(at, threads * strands["rate"], count)
        pace = self._speeds * np.divide(progress, tasks, out=np.ones(count), where=tasks > 0.0)
        unused = kinds["bandwidth"] - np.bincount(nodes["domain"][at], demand, len(world.domains))[nodes["domain"]]
        watts = np.where(
            nodes["busy"] > 0.0, kinds["watts_base"] + kinds["watts_slope"] * nodes["busy"], kinds["watts_idle"]
        )
        return NodeLoads(self._speeds[rows], pace[rows], unused[rows], (watts - self._idle)[rows], self._demand_of)

    def _demand_of(self, job: QueuedJob) -> float:
        return float(self._demand[self._world.jobs["cls"][job.number]])


def _demands(world: World, kind: int) -> Array:
    """Return the mean bytes/s of a core of each class alone on a node type [classes]."""
    demands, kinds = np.zeros(len(world.classes)), len(world.types)
    for cls, row in enumerate(world.classes):
        groups = world.groups[int(row["group_start"]) : int(row["group_start"] + row["group_count"])]
        moved = 0.0
        for group in groups:
            first = int(group["phase_start"]) * kinds + kind
            phases = world.phases[first : first + int(group["phase_count"]) * kinds : kinds]
            seconds = float(phases["work"].sum())
            if seconds > 0.0:
                moved += float(group["count"] * (phases["work"] * phases["bandwidth"]).sum() / seconds)
        demands[cls] = moved / max(float(row["threads"]), 1.0)
    return demands
