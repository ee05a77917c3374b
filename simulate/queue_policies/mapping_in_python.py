"""The mapping policies `mom`, `let`, `slf` and `loadavg` in Python, for worlds with parts that no kernel knows.

Rule: waiting jobs are offered in the order of submission. Each that fits starts on the nodes that the compiled policy
chooses; jobs of one shape (cores, nodes, memory) wait for the first of them. The policy is called again after each
start, which changes what is best for the next job, so a decision that takes time is one for each job.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..model.machine import Machine
from .energy.power_limits import NoLimit
from .interface import Decision, QueueView, Reject, Start, Wake


class StartsWhatFits:
    """Start every waiting job that fits, on the nodes that a mapping policy chooses. O(nodes) scores for each shape.

    Args:
        name: of the mapping policy.
        limit: returns the power cap.
    """

    def __init__(self, name: str, limit: Callable[[Machine], NoLimit] = lambda machine: NoLimit()) -> None:
        self._name, self._limit_on = name, limit

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Start the first job that fits, and ask to be called again."""
        limit = self._limit_on(now.machine)
        largest = limit.largest(now.time)
        limit.update(now.time)
        spare = math.inf
        if limit.blocked:
            spare = limit.allowed(np.array([now.time]))[0] - sum(running.job.size for running in now.running)
        free, waiting_shapes = now.free_nodes(), set[Any]()
        for job in now.waiting:
            need = free.need(job)
            shape = need.cores, job.nodes, need.memory
            if job.size > largest:
                yield Reject(job)
            elif shape not in waiting_shapes and job.size <= spare and (nodes := now.best_nodes(job, self._name)):
                yield Start(job, nodes=nodes)
                yield Wake(now.time)
                return
            else:
                waiting_shapes.add(shape)
        if waiting_shapes and limit.next_time() < math.inf:
            yield Wake(limit.next_time())
