"""On which nodes the jobs of a trace run, and with how many threads on each.

Rule: a job of a trace names a number of processors only. It runs on as few nodes as possible, with equally many threads
on each. If its size cannot be divided equally, its threads are rounded up: a job of 13 processors on nodes of 12 cores
holds 7 cores on each of two nodes, and the core too many stays idle.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import ConfigError
from ..model.cluster import Cluster
from ..model.intervals import FreeResources, Interval
from ..model.workload import Workload
from ..wording import count


def refuse_any_threads(cluster: Cluster) -> None:
    """Refuse nodes that take any number of threads. Raises ConfigError."""
    if math.isinf(cluster.oversubscription):
        problem = "a node takes any number of threads, so a job has no processors of its own"
        raise ConfigError(cluster.source, "oversubscription", problem, "a number")


class NodeShapes:
    """The shapes of jobs on the nodes of a cluster. Raises ConfigError if the nodes take any number of threads."""

    def __init__(self, cluster: Cluster) -> None:
        refuse_any_threads(cluster)
        self._rooms = [(min(node.type.cores, cluster.thread_limit(node)), node.type.memory) for node in cluster.nodes]
        self._shapes: dict[tuple[int, float], tuple[int, int] | None] = {}

    def of(self, size: int, memory: float) -> tuple[int, int] | None:
        """Return the nodes of a job and its threads on each; None if it fits on no set of nodes.

        O(nodes log nodes) for a new shape, O(1) for one that was asked for before.

        Args:
            size: its processors, >= 1.
            memory: bytes that it needs for each of them.
        """
        if (size, memory) not in self._shapes:
            self._shapes[size, memory] = spread(size, [_room(*room, memory) for room in self._rooms])
        return self._shapes[size, memory]


def spread(size: int, rooms: list[int]) -> tuple[int, int] | None:
    """Return on how many nodes a job runs, and with how many threads on each; None if it fits on no set of nodes.

    Args:
        size: processors of the job, >= 1.
        rooms: threads of one job that each node takes.
    """
    rooms = sorted(rooms, reverse=True)
    for nodes, room in enumerate(rooms[:size], 1):
        if room >= (threads := -(-size // nodes)):
            return nodes, threads
    return None


def _room(threads: float, memory: float, bytes_per_thread: float) -> int:
    """Return how many threads of a job a node takes, by its cores and by its bytes, if each thread needs so many."""
    return int(threads if bytes_per_thread <= 0.0 else min(threads, memory // bytes_per_thread))


def refuse_unknown_times(workload: Workload, *, walltimes: bool, networked: bool = False) -> None:
    """Check that the run times of all jobs are known, and their walltimes if they are needed.

    Args:
        workload: the jobs.
        walltimes: whether walltimes are needed.
        networked: run times may depend on a network.

    Raises:
        ConfigError: a time is not known.
    """
    names = workload.more.get("name", workload.id)
    if not networked and len(rows := np.flatnonzero(np.isnan(workload.run_time))):
        problem = (
            f"it communicates, and the profiles that the daemon plans with do not ({count(len(rows), 'such job')})"
        )
        raise ConfigError(workload.name, f"job {names[rows[0]]}", problem, "jobs with a run time")
    if walltimes and len(rows := np.flatnonzero(np.isinf(workload.walltime))):
        problem = f"it has no walltime to plan with ({len(rows):,} of {count(len(workload), 'job')})"
        raise ConfigError(workload.name, f"job {names[rows[0]]}", problem, "walltimes, or --runtimes actual")


class Places:
    """The numbered places of a cluster's nodes: their cores, or the threads that they take.

    Rule: the lowest free numbers of a node first.

    Args:
        limits: places of each node.
    """

    def __init__(self, limits: list[int]) -> None:
        self._first = np.cumsum([0, *limits]).tolist()
        self._free = [FreeResources(limit) for limit in limits]
        self._places: dict[int, list[tuple[int, tuple[Interval, ...]]]] = {}

    @property
    def count(self) -> int:
        """The number of places."""
        return int(self._first[-1])

    def allocate(self, row: int, nodes: list[int], threads: int, size: int) -> list[Interval]:
        """Take places of a job on each of its nodes, and return those of its processors.

        Args:
            row: of the job.
            nodes: positions of its nodes.
            threads: places on each of them.
            size: processors of the job; places beyond stay idle, the last ones.
        """
        places = self._places[row] = [(node, self._free[node].allocate(threads)) for node in sorted(nodes)]
        resources, remainder = list[Interval](), size
        for node, intervals in places:
            for first, last in intervals:
                if (width := min(last - first + 1, remainder)) > 0:
                    resources.append((self._first[node] + first, self._first[node] + first + width - 1))
                    remainder -= width
        return resources

    def release(self, row: int) -> None:
        """Free the places of a job that still has them."""
        for node, intervals in self._places.pop(row, ()):
            self._free[node].release(intervals)
