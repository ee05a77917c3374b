"""Jobs with known run times on numbered resources, under a queue policy in Python; see `python_loop`."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush

import numpy as np

from ...arrays import Array
from ...kernels.queue.tables import PIECE
from ...model.intervals import Interval, count_of
from ...model.machine import Machine
from ...model.workload import Workload
from ...queue_policies.frozen import quick_maker
from ...queue_policies.interface import QueuePolicy, Submit
from ...queue_policies.processor_policy_calls import ProcessorPolicyCalls
from ...queue_policies.queued_job import QueuedJob, Running
from ..job_dependencies import DependencyTracker, stranded
from ..replay_result import Replayed, without_switches


class RigidJobs(ProcessorPolicyCalls):
    """Jobs with known run times; the snapshot shows the policy what a scheduler can know."""

    make_job: Callable[..., QueuedJob] = staticmethod(quick_maker(QueuedJob))

    def __init__(self, workload: Workload, machine: Machine, policy: QueuePolicy) -> None:
        name = f"{type(policy).__module__}:{type(policy).__qualname__}"
        super().__init__(policy, name, machine)
        count, self.workload = len(workload), workload
        self.run: list[float] = np.minimum(workload.run_time, workload.walltime).tolist()
        users = workload.more["user"].tolist() if "user" in workload.more else [None] * count
        ids = workload.more.get("name", workload.id).tolist()
        self.told: list[float] = workload.walltime.tolist()
        self.columns = ids, workload.size.tolist(), self.told, users
        self.submit_times: list[float] = [*workload.submit_time.tolist(), math.inf]
        self.submitted, self.dependencies = workload.submit_time.copy(), DependencyTracker(workload)
        self.next, self.count, self.added, self.killed = 0, count, list[Submit](), set[int]()
        self.start, self.finish = [math.nan] * count, [math.nan] * count
        self.rejected = [False] * count
        self.given: list[tuple[Interval, ...]] = [()] * count
        self.order: list[int] = []
        self.ending: list[tuple[float, int, Running]] = []
        if self.open_ended:
            heappush(self.wakes, min(0.0, self.submit_times[0]))

    def _columns(self) -> dict[str, Array]:
        number, jobs = np.fromiter(self.waiting, np.int64, len(self.waiting)), self.workload
        if self.added:
            return super()._columns()
        chosen = {"size": jobs.size[number], "walltime": jobs.walltime[number], "submit_time": self.submitted[number]}
        return {"number": number, **chosen}

    def next_time(self, before: float) -> float:
        """Return the time of the next event; see `Loop`."""
        time = self.submit_times[self.next]
        if self.ending and self.ending[0][0] < time:
            time = self.ending[0][0]
        time = min(time, self.dependencies.next_time)
        if self.wakes and self.wakes[0] < time and (time < math.inf or self.waiting or self.open_ended):
            time = self.wakes[0]
        return time

    def end_jobs(self, now: float) -> None:
        """Process all ends of this instant; failures that are known before have no followers."""
        ending = self.ending
        while ending and ending[0][0] == now:
            ended = heappop(ending)[2]
            self.end(ended)
            if ended.job.number < self.count:
                self.dependencies.job_ended(ended.job.number, self.next, now)

    def kill(self, running: Running, now: float) -> None:
        """End a running job; no job that depends on it is submitted. Raises PolicyError."""
        left = [entry for entry in self.ending if entry[2] is not running]
        if len(left) == len(self.ending):
            raise self.error(running.job, "it is killed", "a job whose machines have booted")
        heapify(left)
        self.ending = left
        self.note_kill(running, now)

    def note_kill(self, running: Running, now: float) -> None:
        """Note the end of a job that was killed."""
        number = running.job.number
        self.finish[number] = now
        self.killed.add(number)
        self.end(running)
        if number < self.count:
            self.dependencies.job_ended(number, self.next, now, well=False)

    def add_job(self, new: Submit, now: float) -> None:
        """Submit a further job. Raises PolicyError."""
        if not self.open_ended:
            super().add_job(new, now)  # raises
        ids, sizes, walls, users = self.columns
        for column, value in ((ids, new.id), (sizes, new.size), (walls, new.walltime), (users, None)):
            column.append(value)
        self.run.append(min(new.run_time, new.walltime))
        for times in (self.start, self.finish):
            times.append(math.nan)
        self.rejected.append(False)
        self.given.append(())
        self.submitted = np.append(self.submitted, now)
        self.added.append(new)
        self._submit(len(self.run) - 1, now)

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        self.end_jobs(now)
        for number in self.dependencies.pop_released(now):
            self.submitted[number] = now
            self._submit(number, now)
        while self.submit_times[self.next] == now and self.next < self.count:
            number = self.next
            self.next += 1
            if self.dependencies.arrives(number, now):
                self._submit(number, now)
        self.wake_at(now)
        self.now = self.snapshot.time = now

    def _submit(self, number: int, now: float) -> None:
        ids, sizes, walls, users = self.columns
        job = self.make_job(number, ids[number], sizes[number], walls[number], now, users[number])
        if job.size > self.processors and not self.open_ended:
            self.rejected[number] = True
        else:
            self.submit(job)

    def jobs_remain(self) -> bool:
        """Return whether a job waits, runs, or is still to come."""
        coming = self.next < self.count or self.dependencies.next_time < math.inf
        return bool(self.waiting or self.running or coming or self.open_ended)

    def begin(self, running: Running) -> None:
        """Let a job run on its resources."""
        self.note_start(running)
        heappush(self.ending, (self.finish[running.job.number], running.job.number, running))

    def note_start(self, running: Running) -> None:
        """Note the start of a job, its resources, and when its run time is over."""
        number = running.job.number
        finish = running.start_time + self.run[number]
        self.start[number], self.finish[number], self.given[number] = running.start_time, finish, running.resources
        self.order.append(number)

    def reject(self, job: QueuedJob) -> None:
        """Note that a job never runs."""
        self.rejected[job.number] = True

    def why_not_waiting(self, number: int) -> str:
        """Return why a job does not wait."""
        if not 0 <= number < len(self.run):
            return "no such job was shown"
        if number < self.count and (number >= self.next or self.dependencies.is_blocked(number)):
            return "it is not submitted yet"
        if self.rejected[number]:
            return "it was rejected"
        return "it is already running" if any(ran.job.number == number for ran in self.running) else "it has ended"

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        if self.waiting:
            raise self.waits_forever("nothing runs, and no more jobs are submitted")
        counts = np.array([len(given) for given in self.given], np.int64)
        begins = np.zeros(len(counts), np.int64)
        begins[self.order] = np.cumsum([0, *counts[self.order]])[:-1]
        pieces = [interval for number in self.order for interval in self.given[number]]
        left = np.zeros(len(counts), bool)
        left[: self.count] = stranded(np.array(self.dependencies.unmet, np.int64), self.count)
        rejected = np.array(self.rejected, bool) | left
        killed = np.zeros(len(counts), bool)
        killed[list(self.killed)] = True
        start, finish = np.array(self.start), np.array(self.finish)
        if self.added:
            self.workload = self.workload.with_rows(
                [(new.id, time, new.run_time, new.walltime, new.size, new.more)
                 for new, time in zip(self.added, self.submitted[self.count :].tolist(), strict=True)]
            )  # fmt: skip
        return Replayed(
            self.workload, self.processors, self.submitted, start, finish, rejected, left,
            self.overran() & ~rejected & ~killed, np.array(pieces, PIECE), begins, counts,
            simulation_time=seconds, instants=instants, killed=killed, **without_switches(start),
            held=np.array([count_of(given) for given in self.given], np.int64) if self.works else None,
        )  # fmt: skip

    def overran(self) -> Array:
        """Return which jobs were killed at their walltimes, bool [jobs], if they ran."""
        return self.workload.overruns
