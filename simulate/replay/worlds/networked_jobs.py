"""Jobs whose run times depend on a network, under a queue policy in Python.

Rule: the policy sees what it sees in other replays, and nothing of the network. Kernels carry the jobs through their
phases, so a policy that decides as a compiled one gives its schedule. The network is not built before the first job
starts that needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...arrays import Array
from ...kernels import load
from ...kernels.queue import tables
from ...kernels.queue.network.tables import BEGIN, END_FIRST, KILL, NEXT_END, NONE, NetworkProgress
from ...model.machine import Machine
from ...model.network import Network
from ...model.programs import Part, ProgramBuilder, renumber_ends, renumber_storages
from ...model.workload import Workload
from ...queue_policies.interface import QueuePolicy
from ...queue_policies.queued_job import QueuedJob, Running
from ..power_log import PowerLog
from ..replay_result import Replayed
from ..tables import network_tables
from .rigid_jobs import RigidJobs

#: The compiled kernel.
KERNEL = "queue.network.steps"


class NetworkedJobs(RigidJobs):
    """Jobs with programs, on the network between the resources.

    Args:
        workload: the jobs.
        machine: its resources.
        policy: the policy.
        network: makes the network.
        log_power: see `replay.replay`.
    """

    def __init__(
        self, workload: Workload, machine: Machine, policy: QueuePolicy, network: Callable[[], Network], *,
        log_power: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(workload, machine, policy)
        self._log_power, self._log = log_power, PowerLog(kept=log_power)
        self._make, self._powers, self._here, self._filled = network, machine.powers, dict[int, Running](), 0
        self._used: dict[str, int] = {}  # rows in use of the tables that grow

    @cached_property
    def _network(self) -> Network:
        return self._make()

    @cached_property
    def _kernel(self) -> Callable[..., int]:
        return load(KERNEL)

    @cached_property
    def world(self) -> NetworkProgress:
        """The tables of the kernel."""
        jobs, machine = self.workload, self.processors
        rows = max(self.count, machine) if self.open_ended else self.count
        found = network_tables(jobs, self._network, self._powers, rows, log_power=self._log_power)
        self._used = {name: len(found[name]) for name in ("programs", "program_phases", "amounts")}
        most = min(rows, machine) + 1
        own = {"heap_time": np.zeros(most), "heap_job": np.zeros(most, np.int64), "jobs": np.zeros(rows, tables.JOB)}
        own["jobs"]["wall"][: self.count], own["jobs"]["size"][: self.count] = jobs.walltime, jobs.size
        return NetworkProgress({"pieces": np.zeros(4 * machine, tables.PIECE), **own, **found}, {})

    def next_time(self, before: float) -> float:
        """Return the time of the next event; see `Loop`."""
        time = self.submit_times[self.next]
        if self.ending and self.ending[0][0] < time:
            time = self.ending[0][0]
        time = min(time, self.dependencies.next_time)
        if self.wakes and self.wakes[0] < time and (time < math.inf or self._here or self.waiting or self.open_ended):
            time = self.wakes[0]
        return min(time, self._next_end(min(time, before))) if self._here else time

    def _next_end(self, before: float) -> float:
        """Return the time of the next end of the jobs on the network; inf if it is after `before`."""
        self._kernel(self.world.address, NEXT_END, 0, before)
        while self._log.empty_full(self.world):
            self._kernel(self.world.address, NEXT_END, 0, before)
        return float(self.world.lags["answer"])

    def end_jobs(self, now: float) -> None:
        """Process all ends of this instant."""
        while self._here and self._next_end(now) == now:
            number = self._kernel(self.world.address, END_FIRST, 0, 0.0)
            self.finish[number] = float(self.world.jobs["finish"][number])
            self.end(self._here.pop(number))
            if number < self.count:
                well = not self.world.courses["killed"][number]
                self.dependencies.job_ended(number, self.next, now, well=well)
        super().end_jobs(now)

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        if self._here:
            self.world.clock["now"] = now  # before the ends, which change the speeds of others from now on
        super().advance_to(now)

    def take_work(self, job: QueuedJob, work: Part) -> None:
        """Note the work with which a job starts."""
        self.works[job.number] = work

    def begin(self, running: Running) -> None:
        """Let a job run on its resources; one without a program does not use the network."""
        number, work = running.job.number, self.works.get(running.job.number)
        if not self.is_on_network(number):
            super().begin(running)
            return
        self.note_start(running)
        self._here[number] = running
        if work is not None:
            self._add_program(running, work)
        row = self.world.jobs[number]
        self.world.clock["now"] = running.start_time
        row["finish"], row["piece0"], row["pieces"] = self.finish[number], *self._lay_down(running)
        self._kernel(self.world.address, BEGIN, number, 0.0)

    def is_on_network(self, number: int) -> bool:
        """Return whether a job has a program, of the workload or from its start."""
        if self.works.get(number) is not None:
            return True
        given = self.workload.programs is not None and number < self.count
        return given and bool(self.workload.more["program"][number] >= 0)

    def _add_program(self, running: Running, work: Part) -> None:
        """Give a job a program of its own. Raises PolicyError: it is too long."""
        job, builder = running.job, ProgramBuilder()
        if builder.add(work, job.size) is None:
            raise self.error(job, "its sequences are too long", "fewer or shorter ones")
        made, network = builder.programs(), self._network
        at = self._append("amounts", renumber_ends(made, [*network.storages.values()]))
        phases = renumber_storages(made, [network.storage(name) for name in made.storages])
        phases["at"] += np.where(made.in_amounts, at, 0)
        first = self._append("program_phases", phases)
        made.programs["first"] += first
        made.programs["last"] += first
        program = self._append("programs", made.programs)
        while len(self.world.courses) <= job.number:
            for name in ("jobs", "courses"):
                self._grow(name, 2 * len(self.world.courses))
        self.world.courses["program"][job.number] = program
        self.world.jobs["wall"][job.number], self.world.jobs["size"][job.number] = job.walltime, job.size

    def _append(self, name: str, rows: Array) -> int:
        """Add rows to a table that grows; return the number of the first."""
        table = getattr(self.world, name)
        at = self._used[name]
        self._used[name] = end = at + len(rows)
        if end > len(table):
            self._grow(name, 2 * end)
        getattr(self.world, name)[at:end] = rows
        return at

    def _grow(self, name: str, rows: int) -> None:
        table = getattr(self.world, name)
        longer = np.zeros(rows, table.dtype)
        longer[: len(table)] = table
        if name == "courses":
            longer["program"][len(table) :] = NONE
        self.world.fixed[name] = longer
        self.world = self.world.copy()

    def _lay_down(self, running: Running) -> tuple[int, int]:
        """Add the resources of a job to the table of pieces; return the first row and the number of rows."""
        if self._filled + len(running.resources) > len(self.world.pieces):
            self._filled = 0
            for other in self._here.values():
                if other is not running:
                    row = self.world.jobs[other.job.number]
                    row["piece0"], _ = self._append_pieces(other)
        return self._append_pieces(running)

    def _append_pieces(self, running: Running) -> tuple[int, int]:
        first, many = self._filled, len(running.resources)
        self.world.pieces[first : first + many] = [tuple(each) for each in running.resources]
        self._filled += many
        return first, many

    def kill(self, running: Running, now: float) -> None:
        """End a running job; no job that depends on it is submitted. Raises PolicyError."""
        number = running.job.number
        if self._here.pop(number, None) is None:
            super().kill(running, now)
            return
        self._kernel(self.world.address, KILL, number, 0.0)
        course = self.world.courses[number]
        program = self.world.programs[course["program"]]
        times, before = self.world.program_phases["times"], course["phase"]
        rounds = (program["rounds"] - course["rounds"]) * times[program["first"] : program["last"]].sum()
        share = float(self.world.lags["answer"]) * times[before]
        self.snapshot.killed[number] = float(rounds + times[program["first"] : before].sum() + share)
        self.note_kill(running, now)

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        done = super().result(instants, seconds)
        joules = np.full(len(done.start_time), np.nan)
        if "world" in vars(self):
            many = min(len(joules), len(self.world.courses))
            courses = self.world.courses[:many]
            joules[:many] = np.where(courses["program"] >= 0, courses["joules"], np.nan)
            self._log.empty(self.world)
        return replace(done, above_idle=joules, power_log=self._log.rows())

    def overran(self) -> Array:
        """Return which jobs were killed at their walltimes, bool [jobs], if they ran."""
        killed: Array = super().overran()
        if "world" in vars(self):
            many = min(len(killed), len(self.world.courses))
            killed[:many] |= self.world.courses["killed"][:many] == 1
        return killed
