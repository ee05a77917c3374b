"""The common part of worlds of numbered resources that call a queue policy: the machine is one node."""

from __future__ import annotations

import math

import numpy as np

from ..model.intervals import Interval
from ..model.machine import Machine
from ..wording import count
from .free_nodes import FreeNodes, NodeNeed
from .interface import QueuePolicy, Start
from .policy_calls import PolicyCalls
from .queued_job import QueuedJob


class ProcessorPolicyCalls(PolicyCalls):
    """The queue and the running jobs on numbered resources."""

    def __init__(self, policy: QueuePolicy, name: str, machine: Machine) -> None:
        super().__init__(policy, name, machine, self._free_nodes)

    def _free_nodes(self) -> FreeNodes:
        return FreeNodes(
            np.array([self.free.count]), np.array([math.inf]), lambda job: NodeNeed(job.size), lambda it: (0,)
        )

    def allocate(self, job: QueuedJob, decision: Start) -> tuple[Interval, ...] | None:
        """Take the resources that a start names, or the lowest free ones. Raises PolicyError."""
        if decision.resources is not None:
            return self.allocate_requested(job, decision.resources)
        if decision.nodes is not None and tuple(decision.nodes) != (0,):
            raise self.error(job, f"its nodes are {decision.nodes!r:.60}", "(0,): the machine of a replay is one node")
        if job.size > self.free.count:
            raise self.error(job, f"it asks for {count(job.size, 'resource')}, and {self.free.count:,} are free")
        return self.free.allocate(job.size)
