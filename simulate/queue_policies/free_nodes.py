"""Free resources of each node now, the choice of nodes for a job, and the loads of nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from .queued_job import QueuedJob, Running


@dataclass(frozen=True, slots=True, eq=False)
class NodeLoads:
    """The present load of each node.

    Args:
        speed: speed of a core that shares nothing, relative to the slowest [nodes].
        pace: mean speed of the cores of running jobs at present; `speed` where no job runs [nodes].
        unused: bandwidth of the memory beyond what jobs want, bytes/s; below 0: they want more [nodes].
        watts: of the processors of each node at present, beyond the idle node; nan: not known [nodes].
        demand: returns the bytes/s that a core of a job moves alone on the slowest node.
    """

    speed: Array
    pace: Array
    unused: Array
    watts: Array
    demand: Callable[[QueuedJob], float]


@dataclass(frozen=True, slots=True)
class NodeNeed:
    """The need of a job on each of its nodes.

    Args:
        cores: number of cores.
        memory: bytes.
        allowed: whether it may run on each node, bool [nodes]; None = on all.
    """

    cores: int
    memory: float = 0.0
    allowed: Array | None = None

    def fits(self, cores: Array, memory: Array) -> Array:
        """Return where the job fits, bool [..., nodes], with this many cores and bytes free, both [..., nodes]."""
        fits: Array = (cores >= self.cores) & (memory >= self.memory)
        return fits if self.allowed is None else fits & self.allowed


#: Positions of nodes.
Places = tuple[int, ...]


@dataclass(slots=True)
class FreeNodes:
    """Free resources of each node, now or at a later time: a copy that a policy fills and empties.

    A job takes the same on each of its nodes. The machine of a replay is one node with all resources, so a policy over
    this class decides for replays and for plans. Faster nodes are preferred, see `pick`.

    Args:
        cores: free cores, int [nodes]; below 0 where a running job has more threads than cores.
        memory: free bytes [nodes].
        need: returns what a job needs.
        held: returns the nodes of a running job.
        speeds: of each node [nodes]; None: all are equally fast.
        blocked: how many of the free cores of all nodes a power cap blocks.
    """

    cores: Array
    memory: Array
    need: Callable[[QueuedJob], NodeNeed]
    held: Callable[[Running], tuple[int, ...]]
    speeds: Array | None = None
    blocked: int = 0

    @property
    def total(self) -> int:
        """Return how many cores jobs may use on all nodes; below 0 if fewer are free than are blocked. O(nodes)."""
        return int(np.maximum(self.cores, 0).sum()) - self.blocked

    def lacks(self, job: QueuedJob) -> bool:
        """Return whether a power cap leaves too few cores for a job."""
        return self.blocked > 0 and job.size > self.total

    def copy(self) -> FreeNodes:
        """Return an independent copy. O(nodes)."""
        return FreeNodes(self.cores.copy(), self.memory.copy(), self.need, self.held, self.speeds, self.blocked)

    def where(
        self, job: QueuedJob, also: FreeNodes | None = None, without: Collection[int] = (), rank: Array | None = None
    ) -> tuple[int, ...] | None:
        """Return the nodes on which a job fits that it should take; None if they are too few. O(nodes log nodes).

        Args:
            job: the job.
            also: it must fit here, too, such as at a later time.
            without: nodes to leave out.
            rank: nodes of lower rank are taken first [nodes].
        """
        need = self.need(job)
        if (self.blocked and self.lacks(job)) or (also is not None and also.blocked and also.lacks(job)):
            return None
        fits = need.fits(self.cores, self.memory)
        if also is not None:
            fits &= need.fits(also.cores, also.memory)
        if without:
            fits[list(without)] = False
        if np.count_nonzero(fits) < job.nodes:
            return None
        order = np.flatnonzero(fits)
        if rank is not None and len(order) > 1:
            order = order[np.argsort(rank[order], kind="stable")]
        if rank is None or self.speeds is None:
            return self.pick(order, job.nodes)
        last = rank[order[job.nodes - 1]]
        sure, order = order[rank[order] < last], order[rank[order] == last]
        return (*sure.tolist(), *(self.pick(order, job.nodes - len(sure)) or ()))

    def pick(self, nodes: Array, wanted: int, may: Callable[[int], bool] | None = None) -> tuple[int, ...] | None:
        """Return so many of these nodes: the fastest, the first ones of equally fast nodes; None if they are too few.

        A job is as fast as its slowest node. So nodes that are as fast as that one replace faster ones, which stay free
        for others.

        Args:
            nodes: positions of nodes.
            wanted: how many, 1 or more.
            may: whether a node may be taken; None: each may.
        """
        speeds, picks = self.speeds, list[int]()
        if speeds is None and may is None:
            picks = nodes[:wanted].tolist()
            return tuple(picks) if len(picks) == wanted else None
        order = nodes if speeds is None else nodes[np.argsort(-speeds[nodes], kind="stable")]
        for node in order.tolist():
            if len(picks) >= wanted:
                slowest = picks[-1]
                if speeds is None or speeds[picks[-wanted]] == speeds[slowest] or speeds[node] < speeds[slowest]:
                    break
            if may is None or may(node):
                picks.append(node)
        return tuple(sorted(picks[-wanted:])) if len(picks) >= wanted else None

    def take(self, job: QueuedJob, nodes: tuple[int, ...]) -> None:
        """Take what a job needs on these nodes."""
        self._add(job, nodes, -1)

    def give(self, job: QueuedJob, nodes: tuple[int, ...]) -> None:
        """Give back what a job took on these nodes."""
        self._add(job, nodes, 1)

    def release(self, running: Running) -> None:
        """Give back what a running job has."""
        self.give(running.job, self.held(running))

    def unblock(self) -> None:
        """Note that the power cap no longer holds."""
        self.blocked = 0

    def _add(self, job: QueuedJob, nodes: tuple[int, ...], sign: int) -> None:
        need, rows = self.need(job), list(nodes)
        self.cores[rows] += sign * need.cores
        self.memory[rows] += sign * need.memory
