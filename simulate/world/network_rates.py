"""Jobs whose run times depend on a network between numbered resources.

Rule: kernels carry the jobs through their phases, so a policy that decides as a compiled one gives its schedule. The
network is not built before the first job starts that needs it. Jobs without a program are rigid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..arrays import Array
from ..kernels.object_cache import load
from ..kernels.queue import tables
from ..kernels.queue.network.tables import BEGIN, END_FIRST, KILL, NEXT_END, NONE, NetworkProgress
from ..model.machine import Machine
from ..model.network import Network
from ..model.programs import Part as Work
from ..model.programs import ProgramBuilder, renumber_ends, renumber_storages
from ..model.workload import Workload
from ..queue_policies.queued_job import Running
from .network_tables import network_tables
from .power_log import PowerLog
from .replay_result import Replayed
from .rigid_rates import RigidRates
from .simulated_world import SimulatedWorld
from .world_parts import Load

#: The compiled kernel.
KERNEL = "queue.network.steps"


class NetworkRates(RigidRates):
    """Jobs with programs, on the network between the resources.

    Args:
        workload: the jobs.
        machine: its resources.
        network: makes the network.
        log_power: see `replay.replay`.
    """

    def __init__(
        self, workload: Workload, machine: Machine, network: Callable[[], Network], *, log_power: bool = False
    ) -> None:
        super().__init__(workload)
        self._workload, self._machine, self._make = workload, machine, network
        self._log_power, self._log = log_power, PowerLog(kept=log_power)
        self._here, self._works, self._filled = dict[int, Running](), dict[int, Work](), 0
        self._used: dict[str, int] = {}  # rows in use of the tables that grow

    def join(self, world: SimulatedWorld) -> None:
        """Become a part of a world."""
        super().join(world)
        self._world = world

    @cached_property
    def _network(self) -> Network:
        return self._make()

    @cached_property
    def _kernel(self) -> Callable[..., int]:
        return load(KERNEL)

    @cached_property
    def tables(self) -> NetworkProgress:
        """The tables of the kernel."""
        workload, machine = self._workload, self._machine.processors
        jobs = len(workload)
        rows = max(jobs, machine) if self._world.open_ended else jobs
        columns = network_tables(workload, self._network, self._machine.powers, rows, log_power=self._log_power)
        self._used = {name: len(columns[name]) for name in ("programs", "program_phases", "amounts")}
        running = min(rows, machine) + 1
        columns |= {"heap_time": np.zeros(running), "heap_job": np.zeros(running, np.int64),
                "jobs": np.zeros(rows, tables.JOB), "pieces": np.zeros(4 * machine, tables.PIECE)}  # fmt: skip
        columns["jobs"]["wall"][:jobs], columns["jobs"]["size"][:jobs] = workload.walltime, workload.size
        return NetworkProgress(columns, {})

    # --- the clock ---
    def next_time(self, before: float) -> float:
        """Return the time of the next end."""
        time = super().next_time(before)
        return min(time, self._next_end(min(time, before))) if self._here else time

    def _next_end(self, before: float) -> float:
        """Return the time of the next end of the jobs on the network; inf if it is after `before`."""
        self._kernel(self.tables.address, NEXT_END, 0, before)
        while self._log.empty_full(self.tables):
            self._kernel(self.tables.address, NEXT_END, 0, before)
        return float(self.tables.lags["answer"])

    def advance(self, now: float) -> None:
        """Set the clock of the network before the ends, which change the speeds of others from now on."""
        if self._here:
            self.tables.clock["now"] = now

    def pop_ended(self, now: float) -> Iterable[tuple[int, bool]]:
        """Yield the jobs that end at this instant: those on the network first."""
        while self._here and self._next_end(now) == now:
            number = self._kernel(self.tables.address, END_FIRST, 0, 0.0)
            del self._here[number]
            yield number, not self.tables.courses["killed"][number]
        yield from super().pop_ended(now)

    # --- the jobs ---
    def take_work(self, number: int, work: Work) -> bool:
        """Note the work with which a job starts."""
        self._works[number] = work
        return True

    def begin(self, running: Running) -> None:
        """Let a job run on its resources; one without a program does not use the network."""
        number, work = running.job.number, self._works.get(running.job.number)
        if not self._is_on_network(number):
            super().begin(running)
            return
        self._here[number] = running
        if work is not None:
            self._add_program(running, work)
        row = self.tables.jobs[number]
        self.tables.clock["now"] = running.start_time
        row["finish"], row["piece0"], row["pieces"] = math.nan, *self._lay_down(running)
        self._kernel(self.tables.address, BEGIN, number, 0.0)

    def _is_on_network(self, number: int) -> bool:
        """Return whether a job has a program, of the workload or from its start."""
        if self._works.get(number) is not None:
            return True
        has_programs = self._workload.programs is not None and number < len(self._workload)
        return has_programs and bool(self._workload.more["program"][number] >= 0)

    def _add_program(self, running: Running, work: Work) -> None:
        """Give a job a program of its own. Raises PolicyError: it is too long."""
        job, builder = running.job, ProgramBuilder()
        if builder.add(work, job.size) is None:
            raise self._world.error(job, "its sequences are too long", "fewer or shorter ones")
        programs, network = builder.programs(), self._network
        at = self._append("amounts", renumber_ends(programs, [*network.storages.values()]))
        phases = renumber_storages(programs, [network.storage(name) for name in programs.storages])
        phases["at"] += np.where(programs.in_amounts, at, 0)
        first = self._append("program_phases", phases)
        programs.programs["first"] += first
        programs.programs["last"] += first
        row = self._append("programs", programs.programs)
        while len(self.tables.courses) <= job.number:
            for name in ("jobs", "courses"):
                self._grow(name, 2 * len(self.tables.courses))
        self.tables.courses["program"][job.number] = row
        self.tables.jobs["wall"][job.number], self.tables.jobs["size"][job.number] = job.walltime, job.size

    def _append(self, name: str, rows: Array) -> int:
        """Add rows to a table that grows; return the number of the first."""
        table = getattr(self.tables, name)
        at = self._used[name]
        self._used[name] = end = at + len(rows)
        if end > len(table):
            self._grow(name, 2 * end)
        getattr(self.tables, name)[at:end] = rows
        return at

    def _grow(self, name: str, rows: int) -> None:
        table = getattr(self.tables, name)
        longer = np.zeros(rows, table.dtype)
        longer[: len(table)] = table
        if name == "courses":
            longer["program"][len(table) :] = NONE
        self.tables.fixed[name] = longer
        self.tables = self.tables.copy()

    def _lay_down(self, running: Running) -> tuple[int, int]:
        """Add the resources of a job to the table of pieces; return the first row and the number of rows."""
        if self._filled + len(running.resources) > len(self.tables.pieces):
            self._filled = 0
            for other in self._here.values():
                if other is not running:
                    row = self.tables.jobs[other.job.number]
                    row["piece0"], _ = self._append_pieces(other)
        return self._append_pieces(running)

    def _append_pieces(self, running: Running) -> tuple[int, int]:
        first, rows = self._filled, len(running.resources)
        self.tables.pieces[first : first + rows] = [tuple(piece) for piece in running.resources]
        self._filled += rows
        return first, rows

    def kill(self, running: Running, now: float) -> None:
        """Forget a running job, and show how far it was. Raises PolicyError."""
        number = running.job.number
        if self._here.pop(number, None) is None:
            super().kill(running, now)
            return
        self._kernel(self.tables.address, KILL, number, 0.0)
        course = self.tables.courses[number]
        program = self.tables.programs[course["program"]]
        times, phase = self.tables.program_phases["times"], course["phase"]
        rounds = (program["rounds"] - course["rounds"]) * times[program["first"] : program["last"]].sum()
        share = float(self.tables.lags["answer"]) * times[phase]
        self._world.snapshot.killed[number] = float(rounds + times[program["first"] : phase].sum() + share)

    def load_of(self, running: Running) -> Load | None:
        """Return the load of a job on the network."""
        number = running.job.number
        return partial(joules_of, self, number) if self._is_on_network(number) else None

    # --- the result ---
    def overran(self, workload: Workload) -> Array:
        """Return which jobs were killed at their walltimes if they ran, bool [jobs]."""
        killed: Array = super().overran(workload)
        if "tables" in vars(self):
            rows = min(len(killed), len(self.tables.courses))
            killed[:rows] |= self.tables.courses["killed"][:rows] == 1
        return killed

    def report(self, done: Replayed) -> Replayed:
        """Return the result with the energy of the jobs on the network."""
        joules = np.full(len(done.start_time), np.nan)
        if "tables" in vars(self):
            rows = min(len(joules), len(self.tables.courses))
            courses = self.tables.courses[:rows]
            joules[:rows] = np.where(courses["program"] >= 0, courses["joules"], np.nan)
            self._log.empty(self.tables)
        return replace(done, above_idle=joules, power_log=self._log.rows())


def joules_of(rates: Any, number: int, now: float) -> float:
    """Return the joules of a job with a program above those of its idle resources, until a time.

    Args:
        rates: the rates of its world, with `tables`.
        number: the job.
        now: seconds.
    """
    course = rates.tables.courses[number]
    watts = course["lift"] + course["rise"] * course["speed"]
    return float(course["joules"] + watts * (now - course["since"] + course["lag"]))
