"""Jobs whose run times depend on a network, under a queue policy in Python.

Rule: the policy sees what it sees in other replays, and nothing of the network. Kernels carry the jobs through their
phases, so a policy that decides as a compiled one gives its schedule.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..kernels import load
from ..kernels.queue import tables
from ..kernels.queue.network.tables import BEGIN, END_FIRST, NEXT_END, NetworkProgress
from ..model.machine import Machine
from ..model.network import Network
from ..model.workload import Workload
from ..queue_policies.interface import QueuePolicy, Running
from .network_tables import network_tables
from .replay_result import Replayed
from .rigid_jobs import RigidJobs

#: The compiled kernel.
KERNEL = "queue.network.steps"


class NetworkedJobs(RigidJobs):
    """Jobs with programs, on the network between the resources."""

    def __init__(self, workload: Workload, machine: Machine, policy: QueuePolicy, network: Network) -> None:
        super().__init__(workload, machine, policy)
        size, most = len(workload), min(len(workload), machine.processors) + 1
        found = network_tables(workload, network, machine.powers)
        self.world = NetworkProgress(
            {"pieces": np.zeros(4 * machine.processors, tables.PIECE), **found},
            {"jobs": (size,), "heap_time": (most,), "heap_job": (most,)},
        )  # fmt: skip
        self.world.jobs["wall"], self.world.jobs["size"] = workload.walltime, workload.size
        self._kernel, self._here, self._filled = load(KERNEL), dict[int, Running](), 0

    def next_time(self, before: float) -> float:
        """Return the time of the next event; see `Loop`."""
        time = self.submit_times[self.next]
        if self.ending and self.ending[0][0] < time:
            time = self.ending[0][0]
        if self.wakes and self.wakes[0] < time and (time < math.inf or self._here or self.waiting or self.open_ended):
            time = self.wakes[0]
        return min(time, self._next_end(min(time, before)))

    def _next_end(self, before: float) -> float:
        """Return the time of the next end; inf if it is after `before`."""
        if not self._here:
            return math.inf
        self._kernel(self.world.address, NEXT_END, 0, before)
        return float(self.world.lags["answer"])

    def end_jobs(self, now: float) -> None:
        """Process all ends of this instant."""
        while self._next_end(now) == now:
            number = self._kernel(self.world.address, END_FIRST, 0, 0.0)
            self.finish[number] = float(self.world.jobs["finish"][number])
            self.end(self._here.pop(number))
            if not self.world.courses["killed"][number]:
                self.dependencies.job_ended(number, self.next)
        super().end_jobs(now)

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        self.world.clock["now"] = now  # before the ends, which change the speeds of others from now on
        super().advance_to(now)

    def begin(self, running: Running) -> None:
        """Let a job run on its resources; one without a program does not use the network."""
        number = running.job.number
        if number >= self.count or self.workload.more["program"][number] < 0:
            super().begin(running)
            return
        row = self.world.jobs[number]
        self.note_start(running)
        self._here[number] = running
        row["finish"], row["piece0"], row["pieces"] = self.finish[number], *self._lay_down(running)
        self._kernel(self.world.address, BEGIN, number, 0.0)

    def _lay_down(self, running: Running) -> tuple[int, int]:
        """Add the resources of a job to the table of pieces; return the first row and the number of rows."""
        if self._filled + len(running.resources) > len(self.world.pieces):
            self._filled = 0
            for other in self._here.values():
                if other is not running:
                    row = self.world.jobs[other.job.number]
                    row["piece0"], _ = self._append(other)
        return self._append(running)

    def _append(self, running: Running) -> tuple[int, int]:
        first, many = self._filled, len(running.resources)
        self.world.pieces[first : first + many] = [tuple(each) for each in running.resources]
        self._filled += many
        return first, many

    def kill(self, running: Running, now: float) -> None:
        """End a running job. Raises PolicyError: it uses the network."""
        if running.job.number in self._here:
            raise self.error(running.job, "it is killed", "a job whose run time does not depend on the network")
        super().kill(running, now)

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        done, joules = super().result(instants, seconds), self.world.courses["joules"].copy()
        return replace(done, above_idle=np.append(joules, np.zeros(len(done.start_time) - len(joules))))

    def overran(self) -> Array:
        """Return which jobs were killed at their walltimes, bool [jobs], if they ran."""
        killed: Array = super().overran()
        killed[: self.count] |= self.world.courses["killed"] == 1
        return killed
