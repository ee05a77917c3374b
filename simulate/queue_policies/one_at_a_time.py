"""The policies `pairs` and `nodes` in Python: one rule picks the next job, another its nodes.

Rule: only the picked job is considered; while it does not fit, or a power cap leaves fewer cores, all jobs wait. The
cores of a job on a node are one choice: what the kernel of `pairs` chooses core by core is chosen node by node. So it
gives the kernel's schedule on nodes of one processor where each job is one task, under `nodes` for all jobs of one
node.
Random choices differ from the kernel's: they are drawn from the seed and the id of the job, so that they stay the same
from one plan to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from hashlib import blake2b

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..model.machine import Machine
from .energy.power_limits import NoLimit
from .free_nodes import FreeNodes
from .interface import Decision, QueueView, Reject, Start, Wake
from .policy_specs import Contending
from .queued_job import QueuedJob


class OneAtATime:
    """Start the picked job on the nodes of the lowest rank, until one does not fit.

    Args:
        policy: the two rules.
        seed: of random choices.
        limit: returns the power cap.
    """

    def __init__(
        self, policy: Contending, seed: int, limit: Callable[[Machine], NoLimit] = lambda machine: NoLimit()
    ) -> None:
        self._policy, self._seed, self._limit_on = policy, seed, limit

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Start the picked job if it fits, and ask to be called again: its start changes the ranks of nodes."""
        limit = self._limit_on(now.machine)
        largest = limit.largest(now.time)
        waiting = [job for job in now.waiting if job.size <= largest]
        yield from (Reject(job) for job in now.waiting if job.size > largest)
        if not waiting:
            return
        free = now.free_nodes()
        job = self._next(now, waiting, free)
        if sum(run.job.size for run in now.running) + job.size > limit.allowed(np.array([now.time]))[0]:
            limit.update(now.time)
            if limit.next_time() < math.inf:
                yield Wake(limit.next_time())
            return
        place = np.argsort(np.argsort(self._rank(now, job, free), kind="stable"))  # ties go to the first node
        nodes = free.where(job, rank=place)
        if nodes is not None:
            yield Start(job, nodes=nodes)
            if len(waiting) > 1:
                yield Wake(now.time)

    def _next(self, now: QueueView, waiting: list[QueuedJob], free: FreeNodes) -> QueuedJob:
        """Return the job that the rule picks; ties go to the first by submission."""
        rule = self._policy.job
        if rule == "first":
            return waiting[0]
        if rule == "random":
            return min(waiting, key=lambda job: self._digest(job, "job"))
        if rule == "shortest":
            return min(waiting, key=lambda job: job.walltime)
        if rule == "smallest":
            return min(waiting, key=lambda job: job.size)
        if rule == "low_mem":
            return min(waiting, key=lambda job: free.need(job).memory / free.need(job).cores)
        return min(waiting, key=now.loads().demand)

    def _rank(self, now: QueueView, job: QueuedJob, free: FreeNodes) -> Array:
        """Return the ranks of the nodes for a job; the lowest is the best [nodes]."""
        rule = self._policy.placement
        if rule == "biggest":
            return np.array([first - last for first, last in now.machine.nodes])
        if rule == "high_core":
            return -free.cores
        if rule == "high_mem":
            return -free.memory
        if rule == "random":  # one of the free cores, or one of the nodes
            drawn = np.random.default_rng(int.from_bytes(self._digest(job, "nodes"))).exponential(size=len(free.cores))
            return drawn if self._policy.on_one_node else drawn / free.cores.clip(1)
        loads = now.loads()
        if rule == "low_power" and np.isnan(loads.watts).any():
            raise ConfigError("policy", "pairs:resource", "the power of this machine is not known", "nodes with power")
        ranks = {"fastest": loads.speed, "high_gflops": loads.pace, "high_mem_bw": loads.unused}
        return loads.watts if rule == "low_power" else -ranks[rule]

    def _digest(self, job: QueuedJob, purpose: str) -> bytes:
        return blake2b(f"{self._seed} {purpose} {job.id}".encode(), digest_size=8).digest()
