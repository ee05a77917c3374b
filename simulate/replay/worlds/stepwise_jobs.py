"""Jobs with known run times on numbered resources under a queue policy in Python, whose events a kernel processes.

Rule: it shows and does what `SimulatedWorld` does, and a call costs less. Python keeps the waiting jobs, and the kernel
all else; running and ended jobs and free intervals are made from its log when the policy looks at them. It is for
policies that submit no jobs of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...arrays import Array
from ...kernels.object_cache import load
from ...kernels.queue.tables import (
    BACKFILL,
    ENDS,
    FREE,
    FULL,
    JOB_ASKED,
    KILL,
    LOGGED,
    MANY,
    NOW,
    QUESTION,
    RANKS,
    REJECT,
    REJECTED,
    RESERVATION,
    RESERVE,
    RUNS,
    SKIPS,
    SPARE,
    START,
    START_ON,
    UNTIL,
)
from ...model.intervals import Interval
from ...model.machine import Machine
from ...model.workload import Workload
from ...queue_policies.backfill import CountedBackfill
from ...queue_policies.frozen import T, View, quick_maker
from ...queue_policies.interface import Backfill, QueuePolicy, QueueView, Start
from ...queue_policies.numbered_resources import NumberedResources
from ...queue_policies.policy_calls import PolicyCalls, policy_name
from ...queue_policies.queued_job import QueuedJob, Running
from ...world.drive import drive
from ...world.job_dependencies import stranded
from ...world.replay_result import Replayed, without_switches
from ..engines import Engine
from ..replay_case import ReplayCase
from ..requirements import in_python
from ..tables import grow, stepwise_tables

#: The compiled kernel.
KERNEL = "queue.stepwise"
_job, _running = quick_maker(QueuedJob), quick_maker(Running)


def run(case: ReplayCase, engine: Engine) -> Replayed:
    """Replay a case by calling its policy at each instant at which it may start a job.

    Raises:
        ConfigError, PolicyError: see `requirements.in_python` and `drive`.
    """
    options, began = case.options, case.options.clock()
    policy = in_python(case)
    loop = StepwiseJobs(case.jobs, replace(case.machine, network=None), policy)
    if options.decision_time == 0.0 and getattr(policy, "only_starts", False):
        loop.call_rarely()
    return drive(loop, began, decision_time=options.decision_time, clock=options.clock, progress=options.progress)


class StepwiseJobs(PolicyCalls):
    """Jobs with known run times; the snapshot shows the policy what a scheduler can know."""

    added = ()

    def __init__(self, workload: Workload, machine: Machine, policy: QueuePolicy) -> None:
        super().__init__(policy, policy_name(policy), NumberedResources(machine))
        count, self.workload, self.kernel = len(workload), workload, load(KERNEL)
        ids = workload.more.get("name", workload.id).tolist()
        users = workload.more["user"].tolist() if "user" in workload.more else [None] * count
        times = workload.submit_time.tolist()
        self.jobs = [*map(_job, range(count), ids, workload.size.tolist(), workload.walltime.tolist(), times, users)]
        self.depends = workload.dependencies is not None
        self.ranks = self.pending = self.ends = 0
        self.shown = self.freed = self.called = 0  # entries of the log that are shown, and were at the last call
        self.here: dict[int, Running] = {}  # running jobs that `running` shows
        self.killed: list[int] = []
        self.snapshot.free_resources = Read(self.free.intervals, self.read_free)
        self.snapshot.running = Read(self.running, self.read_running)
        self.snapshot.ended = NewlyEnded(self.just_ended, self.read_running, lambda: self.asked[ENDS] - self.ends)
        self.use(stepwise_tables(workload, machine.processors))

    def call_rarely(self) -> None:
        """Call the policy only while a waiting job needs at most what is free."""
        self.asked[SKIPS] = 1

    def use(self, world: Any) -> None:
        """Use these tables of the kernel."""
        self.world, self.address, jobs = world, world.address, world.jobs
        self.asked, self.log = memoryview(world.asked), memoryview(world.log)
        self.times: Any = memoryview(world.times)
        self.chosen = memoryview(world.chosen)[: len(world.chosen) // 2]
        self.pieces = memoryview(world.pieces.view(np.int32))
        self.ranked = memoryview(world.ranked)
        self.columns = tuple(memoryview(jobs[name]) for name in ("start", "finish", "piece0", "pieces"))

    def ask(self, question: int, job: int = -1, count: int = 0) -> int:
        """Let the kernel carry something out, and return its answer."""
        request = self.asked
        request[QUESTION], request[JOB_ASKED], request[MANY] = question, job, count
        answer = self.kernel(self.address)
        if request[FULL]:
            self.use(grow(self.world))
        return answer

    def carry_out(self) -> None:
        """Start the jobs of the last decision now, not as the next instant is processed."""
        if self.pending:
            self.ask(START, count=self.pending)
            self.pending = 0

    # --- events ---
    def next_time(self, before: float) -> float:
        """Return the time of the next event; see `Loop`. It is processed in the kernel if it is not after `before`."""
        wakes, request, times = self.wakes, self.asked, self.times
        times[UNTIL] = wakes[0] if wakes and wakes[0] < before else before
        if self.pending:
            request[MANY], self.pending = self.pending, 0
        if self.kernel(self.address):
            time: float = times[NOW]
        else:
            time = wakes[0] if wakes and self.waiting else math.inf
            times[NOW] = min(time, before)
        self.free.count = request[FREE]
        if request[FULL]:
            self.use(grow(self.world))
        return time

    def advance_to(self, now: float) -> None:
        """Show all submissions of this instant."""
        ranks = self.asked[RANKS]
        if ranks > self.ranks:
            waiting, submitted, jobs = self.waiting, self.snapshot.submitted, self.jobs
            for number in self.ranked[self.ranks : ranks]:
                job = self.released(number) if self.depends else jobs[number]
                waiting[number] = job
                submitted.append(job)
            self.ranks = ranks
        if self.wakes:
            self.wake_at(now)
        self.now = self.snapshot.time = now

    def released(self, number: int) -> QueuedJob:
        """Return a job as it is shown: it is submitted when its dependencies are met."""
        job, time = self.jobs[number], float(self.world.jobs["submit"][number])
        if job.submit_time != time:
            job = self.jobs[number] = _job(number, job.id, job.size, job.walltime, time, job.user)
        return job

    def jobs_remain(self) -> bool:
        """Return whether a job waits, runs, or is still to come."""
        count = self.world.count
        coming = count["next"] < count["total"] or count["released"]
        return bool(self.waiting or self.pending or count["running"] or coming)

    # --- what the policy sees ---
    def read_running(self) -> None:
        """Bring `running` and `ended` up to date."""
        self.carry_out()
        count = self.asked[LOGGED]
        if self.shown == count:
            return
        for place, entry in enumerate(self.log[self.shown : count], self.shown):
            if entry >= 0:
                self.here[entry] = running = self.running_of(entry)
                self.add_running(running)
            else:
                ended = self.here.pop(-1 - entry)
                self.hide_running(ended)
                if place >= self.called:
                    self.just_ended.append(ended)
        self.shown = count
        if len(self.just_ended) > 1:
            finish = self.columns[1]
            self.just_ended.sort(key=lambda it: (finish[it.job.number], it.job.number))

    def read_free(self) -> None:
        """Bring the free intervals up to date."""
        self.carry_out()
        free, count = self.free.count, self.asked[LOGGED]
        for entry in self.log[self.freed : count]:
            if entry >= 0:
                self.free.allocate_these(self.resources_of(entry))
            else:
                self.free.release(self.resources_of(-1 - entry))
        self.freed, self.free.count = count, free

    def resources_of(self, number: int) -> tuple[Interval, ...]:
        """Return the resources of a job that has started."""
        first, rows = 2 * self.columns[2][number], self.pieces
        return tuple([(rows[i], rows[i + 1]) for i in range(first, first + 2 * self.columns[3][number], 2)])

    def running_of(self, number: int) -> Running:
        """Return a job that has started."""
        job, start = self.jobs[number], self.columns[0][number]
        return _running(job, start, start + job.walltime, self.resources_of(number))

    def forget_news(self) -> None:
        """Begin to note what happens until the next call."""
        if self.snapshot.submitted:
            self.snapshot.submitted = []
        ends = self.asked[ENDS]
        if ends > self.ends:
            self.ends, self.called = ends, self.asked[LOGGED]
            self.just_ended.clear()

    def _columns(self) -> dict[str, Array]:
        number, jobs = np.fromiter(self.waiting, np.int64, len(self.waiting)), self.world.jobs
        columns = {"size": jobs["size"], "walltime": jobs["wall"], "submit_time": jobs["submit"]}
        return {"number": number, **{name: column[number] for name, column in columns.items()}}

    def backfill(self) -> Backfill:
        """Return what can start now."""
        return _Backfill(self.snapshot, self)

    # --- decisions ---
    def start_job(self, job: QueuedJob, decision: Start, now: float) -> None:
        """Start a waiting job: the kernel does that as it goes on, but at once on resources that are named."""
        anywhere = decision.resources is None and decision.work is None and decision.nodes in (None, (0,))
        if anywhere and job.size <= self.free.count:
            self.chosen[self.pending] = job.number
            self.pending += 1
            self.free.count -= job.size
            self.remove_from_queue(job)
            return
        self.read_running()
        self.read_free()
        super().start_job(job, decision, now)

    def begin(self, running: Running) -> None:
        """Let a job run on the resources that its start names."""
        number, rows = running.job.number, self.world.pieces[int(self.world.count["pieces"]) :]
        for row, interval in enumerate(running.resources):
            rows[row] = interval
        self.ask(START_ON, number, len(running.resources))
        self.here[number] = running
        self.shown += 1
        self.freed += 1

    def kill(self, running: Running, now: float) -> None:
        """End a running job; no job that depends on it is submitted."""
        self.ask(KILL, running.job.number)
        self.free.count = self.asked[FREE]
        self.killed.append(running.job.number)

    def reject(self, job: QueuedJob) -> None:
        """Note that a job never runs."""
        self.ask(REJECT, job.number)

    def why_not_waiting(self, number: int) -> str:
        """Return why a job does not wait."""
        self.carry_out()
        count, unmet = self.world.count, self.world.unmet
        if not 0 <= number < count["total"]:
            return "no such job was shown"
        released = self.world.released[: count["released"]]
        if number >= count["next"] or (self.depends and (unmet[number] or number in released)):
            return "it is not submitted yet"
        state = self.world.jobs["state"][number]
        return {REJECTED: "it was rejected", RUNS: "it is already running"}.get(state, "it has ended")

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        if self.waiting:
            raise self.waits_forever("nothing runs, and no more jobs are submitted")
        jobs, workload = self.world.jobs, self.workload
        unmet = stranded(self.world.unmet, len(workload))
        rejected, killed = (jobs["state"] == REJECTED) | unmet, np.zeros(len(workload), bool)
        killed[self.killed] = True
        start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
        return Replayed(
            workload, self.processors, jobs["submit"].copy(), start, finish, rejected, unmet,
            workload.overruns & ~rejected & ~killed, self.world.pieces[: self.world.count["pieces"]].copy(),
            jobs["piece0"].copy(), jobs["pieces"].copy(), simulation_time=seconds,
            instants=instants + int(self.world.count["instants"]), killed=killed,
            **without_switches(start),
        )  # fmt: skip


class Read(View[T]):
    """A view of a list that is brought up to date when it is looked at."""

    __slots__ = ("_update",)

    def __init__(self, items: list[T], update: Callable[[], None]) -> None:
        super().__init__(items)
        self._update = update

    def __len__(self) -> int:
        self._update()
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        self._update()
        return iter(self._items)

    def __getitem__(self, place: Any) -> Any:
        self._update()
        return self._items[place]


class NewlyEnded(Read[Running]):
    """The jobs that have ended since the last call; their number is known without looking at them."""

    __slots__ = ("_count",)

    def __init__(self, items: list[Running], update: Callable[[], None], count: Callable[[], int]) -> None:
        super().__init__(items, update)
        self._count = count

    def __len__(self) -> int:
        return self._count()


class _Backfill(CountedBackfill):
    """Backfilling by the kernel."""

    __slots__ = ("_world",)

    def __init__(self, now: QueueView, world: StepwiseJobs) -> None:
        self._now, self._world, self._free, self._chosen = now, world, now.free, []
        self._head, self._reserved, self._spare = None, math.inf, 0

    def start_all(self) -> list[Start]:
        """Take all waiting jobs that can start; see `Backfill`."""
        before = len(self._chosen)
        count = self._ask(BACKFILL) if self._free else before
        if count == before:
            return []
        jobs = self._world.jobs
        more = [jobs[number] for number in self._world.chosen[before:count]]
        self._chosen += more
        self._free -= sum([job.size for job in more])
        return [*map(Start, more)]

    def _find_reservation(self) -> None:
        self._ask(RESERVE)

    def _ask(self, question: int) -> int:
        world, head = self._world, self._head
        if world.pending:
            world.carry_out()
        request, times, place = world.asked, world.times, 0
        for job in self._chosen:
            world.chosen[place] = job.number
            place += 1
        request[QUESTION], request[JOB_ASKED], request[MANY], request[SPARE] = question, -1, place, self._spare
        if head is not None:
            request[JOB_ASKED] = head.number
        times[RESERVATION] = self._reserved
        count = world.kernel(world.address)
        self._reserved, self._spare = times[RESERVATION], request[SPARE]
        return count
