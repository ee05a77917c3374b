"""The cores and the memory of nodes, and the cores that the jobs of a queue policy get.

Rule: cores are numbered over the nodes. A queue policy does not oversubscribe: a job starts on free cores only,
whatever the cluster allows. If a job fits nowhere for a `Start` without nodes, because the free cores are spread over
the nodes, the job waits; for the rest of that call the nodes on which it lacks least are kept free for it, so that
smaller jobs do not pass it for ever.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import index

import numpy as np

from ..arrays import Array
from ..model.intervals import FreeResources, Interval, common, count_of, merge_intervals
from ..model.machine import Machine, MixedPowers, Powers
from ..wording import count
from .free_nodes import FreeNodes, NodeNeed
from .interface import Backfill, QueueView, Start
from .node_backfill import NodeBackfill
from .policy_calls import PolicyCalls
from .queued_job import QueuedJob, Running


class NodeResources:
    """The cores and the memory of nodes; see `policy_calls.Resources`.

    Args:
        cores: cores of each node, int [nodes].
        memory: bytes of each node [nodes].
        speeds: of each node [nodes].
        names: name of each node.
        needs: what each job needs, by its number.
        powers: power of a core; None if it is not known.
        groups: first and last core of each cluster of nodes.
    """

    def __init__(
        self, cores: Array, memory: Array, speeds: Array, names: tuple[str, ...], needs: Sequence[NodeNeed],
        powers: Powers | MixedPowers | None = None, groups: Sequence[Interval] = (),
    ) -> None:  # fmt: skip
        bounds = [0, *accumulate(cores.tolist())]
        self.nodes = tuple((first, end - 1) for first, end in pairwise(bounds))
        self.machine = Machine(bounds[-1], groups, powers, nodes=self.nodes, names=names)
        self.free = FreeResources(bounds[-1])
        self.needs, self.empty, self.memory = needs, cores, memory * (1.0 + 1e-12)
        self.held: dict[int, tuple[int, ...]] = {}  # nodes of each running job
        self.room = FreeNodes(
            cores.copy(), self.memory.copy(), self.need, lambda it: self.held[it.job.number],
            speeds if len(set(speeds.tolist())) > 1 else None,
        )  # fmt: skip
        self.kept_free: set[int] = set()
        self.looks = 0  #: how often a policy has compared a job with all nodes, or given it some

    def need(self, job: QueuedJob) -> NodeNeed:
        """Return what a job needs on each of its nodes."""
        self.looks += 1
        return self.needs[job.number]

    def free_nodes(self) -> FreeNodes:
        """Return what is free on each node, as a copy."""
        return self.room.copy()

    def backfill(self, now: QueueView) -> Backfill:
        """Return what can start now."""
        return NodeBackfill(now)

    def begin_call(self) -> None:
        """Keep no node free any more."""
        self.kept_free.clear()

    def hold_running(self, running: Running, nodes: tuple[int, ...]) -> None:
        """Note that a job, whose cores are taken, holds these nodes."""
        self.held[running.job.number] = nodes
        self.room.take(running.job, nodes)

    def release(self, ended: Running) -> None:
        """Free the cores and the memory of a job."""
        self.free.release(ended.resources)
        self.room.release(ended)

    def machines_of(self, resources: Iterable[Interval]) -> list[Interval]:
        """Return the cores of all nodes that have some of these."""
        cores = merge_intervals({self.nodes[node] for node in self.nodes_with(resources)})
        assert not isinstance(cores, int), "nodes are different resources"
        return cores

    def withdraw(self, resources: Iterable[Interval], *, back: bool = False) -> None:
        """Note that whole nodes are no longer available to jobs, or are back; `free` says so, too."""
        for node in self.nodes_with(resources):
            self.room.cores[node] = self.empty[node] if back else 0

    def prefer_others(self, job: QueuedJob, decision: Start, last: FreeResources) -> Start:
        """Return a start without places on nodes, such that nodes without cores of `last` come first."""
        if decision.nodes is not None or decision.resources is not None:
            return decision
        behind = np.zeros(len(self.nodes), bool)
        behind[self.nodes_with(last.intervals)] = True
        nodes = self.room.where(job, without=self.kept_free, rank=behind)
        return decision if nodes is None else replace(decision, nodes=nodes)

    def why_never(self, job: QueuedJob) -> str:
        """Return why a job can never start, "" if it can."""
        need = self.need(job)
        if int(need.fits(self.empty, self.memory).sum()) >= job.nodes:
            return ""
        size = f"{need.cores} core{'s' * (need.cores > 1)} on each of {job.nodes} node{'s' * (job.nodes > 1)}"
        return f"it needs {size}, and a queue policy does not oversubscribe"

    def allocate(self, calls: PolicyCalls, job: QueuedJob, decision: Start) -> tuple[Interval, ...] | None:
        """Take the cores of a start; None while it fits nowhere. Raises PolicyError."""
        if decision.resources is not None:
            cores = calls.allocate_requested(job, decision.resources)
            nodes = self._nodes_of(calls, job, cores)
            self.check_nodes(calls, job, nodes)
        elif decision.nodes is not None:
            nodes = self.check_nodes(calls, job, decision.nodes)
            cores = self.lowest_cores(job, nodes)
        else:
            best_nodes = self.room.where(job, without=self.kept_free)
            if best_nodes is None:
                self._keep_free(job)
                return None
            nodes, cores = best_nodes, self.lowest_cores(job, best_nodes)
        self.held[job.number] = nodes
        self.room.take(job, nodes)
        return cores

    def _keep_free(self, job: QueuedJob) -> None:
        """Keep the nodes on which a job lacks least from the later starts of this call."""
        fits = self.need(job).fits(self.empty, self.room.memory)
        order = np.argsort(np.where(fits, -self.room.cores, 1), kind="stable")
        self.kept_free.update(order[: job.nodes].tolist())

    def check_nodes(
        self, calls: PolicyCalls, job: QueuedJob, nodes: Sequence[int], *, fewer: bool = False
    ) -> tuple[int, ...]:
        """Return the nodes that a policy chose. Raises PolicyError if the job cannot start on them now.

        Args:
            calls: the calls of the policy.
            job: the job.
            nodes: their positions.
            fewer: whether they may be fewer than the job needs.
        """
        allowed = f"{job.nodes} of the nodes 0 to {len(self.nodes) - 1}, different ones on which it fits now"
        need = self.need(job)
        fits = need.fits(self.room.cores, self.room.memory)
        try:
            chosen = tuple(index(node) for node in nodes)
        except Exception:
            raise calls.error(job, f"its nodes are {nodes!r:.60}", allowed) from None
        distinct, enough = len(set(chosen)) == len(chosen), len(chosen) == job.nodes
        enough |= fewer and 0 < len(chosen) < job.nodes
        if not (distinct and enough) or not all(0 <= node < len(fits) and fits[node] for node in chosen):
            raise calls.error(job, f"its nodes are {chosen!r:.60}", allowed)
        return chosen

    def _nodes_of(self, calls: PolicyCalls, job: QueuedJob, given: tuple[Interval, ...]) -> tuple[int, ...]:
        """Return the nodes of these cores. Raises PolicyError if they are not spread evenly over the job's nodes."""
        cores = {node: count_of(common(given, [self.nodes[node]])) for node in self.nodes_with(given)}
        cores_per_node = self.need(job).cores
        if len(cores) != job.nodes or set(cores.values()) != {cores_per_node}:
            spread = ", ".join(f"{count} on {self.machine.names[node]}" for node, count in cores.items())
            raise calls.error(job, f"its cores are {spread}", f"{cores_per_node} on each of {count(job.nodes, 'node')}")
        return tuple(cores)

    def nodes_with(self, resources: Iterable[Interval]) -> list[int]:
        """Return the nodes that have some of these cores, ascending."""
        firsts, nodes = [first for first, _ in self.nodes], set[int]()
        for first, last in resources:
            nodes.update(range(bisect_right(firsts, first) - 1, bisect_right(firsts, last)))
        return sorted(nodes)

    def lowest_cores(self, job: QueuedJob, nodes: Sequence[int]) -> tuple[Interval, ...]:
        """Take the lowest free cores of these nodes, fewer where a running job has more threads than cores."""
        intervals, cores_per_node = list[Interval](), self.need(job).cores
        free, ascending_nodes = self.free.intervals, sorted(nodes)
        for low, high in (self.nodes[node] for node in ascending_nodes):
            missing = cores_per_node
            at = max(0, bisect_right(free, (low, math.inf)) - 1)
            while missing and at < len(free) and free[at][0] <= high:
                first, last = max(low, free[at][0]), min(high, free[at][1])
                if first <= last:
                    last = min(last, first + missing - 1)
                    intervals.append((first, last))
                    missing -= last - first + 1
                at += 1
        merged = merge_intervals(intervals)
        assert not isinstance(merged, int), "cores of different nodes"
        self.free.allocate_these(merged)
        return tuple(merged)
