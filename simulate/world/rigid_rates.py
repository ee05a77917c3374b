"""Jobs whose run times are known and depend on nothing."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

import numpy as np

from ..model.workload import Workload
from ..queue_policies.queued_job import Running
from .simulated_world import SimulatedWorld
from .world_parts import Rates


class RigidRates(Rates):
    """Each job runs for the smaller of its run time and its walltime. O(log running) per start and end.

    Args:
        workload: the jobs.
    """

    def __init__(self, workload: Workload) -> None:
        self._ending = list[tuple[float, int]]()
        self._run_times: list[float] = np.minimum(workload.run_time, workload.walltime).tolist()

    def join(self, world: SimulatedWorld) -> None:
        """Become a part of a world."""
        self._error = world.error

    def next_time(self, before: float) -> float:
        """Return the time of the next end."""
        return self._ending[0][0] if self._ending else np.inf

    def begin(self, running: Running) -> None:
        """Let a job run."""
        number = running.job.number
        heappush(self._ending, (running.start_time + self._run_times[number], number))

    def pop_ended(self, now: float) -> Iterable[tuple[int, bool]]:
        """Yield the jobs that end at this instant; failures that are known before have no followers."""
        while self._ending and self._ending[0][0] == now:
            yield heappop(self._ending)[1], True

    def kill(self, running: Running, now: float) -> None:
        """Forget a running job. Raises PolicyError. O(running jobs)."""
        others = [end for end in self._ending if end[1] != running.job.number]
        if len(others) == len(self._ending):
            raise self._error(running.job, "it is killed", "a job whose machines have booted")
        heapify(others)
        self._ending = others

    def add_job(self, run_time: float, walltime: float) -> None:
        """Note a further job that the policy submits."""
        self._run_times.append(min(run_time, walltime))
