"""Numbered resources: the machine is one node, and a job takes any of its resources.

Rule: a start without resources gets the lowest free numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..model.intervals import FreeResources, Interval, count_of, lowest, without
from ..model.machine import Machine
from ..wording import count
from .backfill import CountedBackfill
from .free_nodes import FreeNodes, NodeNeed
from .interface import Backfill, QueueView, Start
from .policy_calls import PolicyCalls
from .queued_job import QueuedJob, Running


class NumberedResources:
    """The resources of a machine without nodes; see `policy_calls.Resources`.

    Args:
        machine: the machine.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine, self.free = machine, FreeResources(machine.processors)

    def free_nodes(self) -> FreeNodes:
        """Return the machine as one node."""
        cores, memory = np.array([self.free.count]), np.array([math.inf])
        return FreeNodes(cores, memory, lambda job: NodeNeed(job.size), lambda running: (0,))

    def backfill(self, now: QueueView) -> Backfill:
        """Return what can start now."""
        return CountedBackfill(now)

    def begin_call(self) -> None:
        """Prepare for the decisions of another call: nothing depends on it."""

    def allocate(self, calls: PolicyCalls, job: QueuedJob, decision: Start) -> tuple[Interval, ...] | None:
        """Take the resources that a start names, or the lowest free ones. Raises PolicyError."""
        if decision.resources is not None:
            return calls.allocate_requested(job, decision.resources)
        if decision.nodes is not None and tuple(decision.nodes) != (0,):
            allowed = "(0,): the machine of a replay is one node"
            raise calls.error(job, f"its nodes are {decision.nodes!r:.60}", allowed)
        if job.size > self.free.count:
            free = count(self.free.count, "is free", "are free")
            raise calls.error(job, f"it asks for {count(job.size, 'resource')}, and {free}")
        return self.free.allocate(job.size)

    def release(self, ended: Running) -> None:
        """Free the resources of a job."""
        self.free.release(ended.resources)

    def machines_of(self, resources: Iterable[Interval]) -> list[Interval]:
        """Return the resources of all machines that have some of these: each resource is a machine."""
        return list(resources)

    def withdraw(self, resources: Iterable[Interval], *, back: bool = False) -> None:
        """Note that machines are no longer available to jobs, or are back: `free` says all of it."""

    def prefer_others(self, job: QueuedJob, decision: Start, last: FreeResources) -> Start:
        """Return a start without places with places, such that resources of `last` come last."""
        named = decision.nodes is not None and tuple(decision.nodes) != (0,)
        if named or decision.resources is not None or job.size > self.free.count:
            return decision
        chosen = lowest(without(self.free.intervals, last.intervals), job.size)
        return replace(decision, resources=chosen + lowest(last.intervals, job.size - count_of(chosen)))

    def why_never(self, job: QueuedJob) -> str:
        """Return why a job can never start, "" if it can."""
        return "" if job.size <= self.machine.processors else "it requests more than the machine has"
