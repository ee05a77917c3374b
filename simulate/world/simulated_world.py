"""A simulated world: jobs on resources, under a queue policy that is called at each instant.

Rule: at each instant all ends are processed, then all submissions, then the policy is called. What else there is, is a
part: see `world_parts`. A job that gets resources which are not ready begins when they are, which is no instant.
Complexity: an instant costs O(changes + parts), independent of the number of waiting and running jobs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..arrays import Array
from ..kernels.queue.tables import PIECE
from ..model.intervals import Interval, common, count_of, lowest
from ..model.programs import Part as Work
from ..model.workload import Workload
from ..queue_policies.free_nodes import NodeLoads
from ..queue_policies.frozen import quick_maker
from ..queue_policies.interface import Forecast, QueuePolicy, Start, Submit, Switch
from ..queue_policies.policy_calls import PolicyCalls, Resources
from ..queue_policies.queued_job import NodeJob, QueuedJob, Running
from .job_dependencies import DependencyTracker, stranded
from .replay_result import Replayed, without_switches
from .world_parts import Load, Part, Rates

_job = quick_maker(QueuedJob)


class SimulatedWorld(PolicyCalls):
    """The jobs of a workload on resources, and what a policy sees of them.

    Args:
        workload: the jobs.
        policy: the policy to call.
        name: its name, for messages.
        resources: the resources of the machine.
        rates: how fast jobs progress.
        parts: all other parts, in the order in which they are asked.
        sizes: resources that each job requests, int [jobs]; None: those of the workload.
        nodes: nodes over which they are spread, int [jobs]; None: one.
        walltimes: what the policy sees as walltimes, seconds [jobs]; None: the walltimes.
        fits: jobs that can run at all, bool [jobs]; the others are never submitted. None: all.
    """

    def __init__(
        self, workload: Workload, policy: QueuePolicy, name: str, resources: Resources, rates: Rates,
        parts: Sequence[Part] = (), *, sizes: Array | None = None, nodes: Array | None = None,
        walltimes: Array | None = None, fits: Array | None = None,
    ) -> None:  # fmt: skip
        super().__init__(policy, name, resources)
        self.open_ended &= not resources.machine.nodes
        count, self.workload, self.rates = len(workload), workload, rates
        self._sizes = workload.size if sizes is None else sizes
        #: What the policy sees as walltimes, seconds [jobs].
        self.walltimes = (workload.walltime if walltimes is None else walltimes).copy()
        users = workload.more["user"].tolist() if "user" in workload.more else [None] * count
        ids = workload.more.get("name", workload.id).tolist()
        self._columns_shown = ids, self._sizes.tolist(), self.walltimes.tolist(), users
        self._nodes = None if nodes is None else nodes.tolist()
        self._limits: Sequence[float] | None = None  # of the jobs whose walltimes are predicted
        self._submit_times: list[float] = [*workload.submit_time.tolist(), math.inf]
        self._submitted = workload.submit_time.copy()
        self._dependencies = DependencyTracker(workload, rates.ends_well())
        self.count = count  #: jobs of the workload; later ones were submitted by the policy
        self.next = -1  #: the first job whose submit time has not come yet
        self.added, self.killed = list[Submit](), set[int]()
        self.start, self.finish = [math.nan] * count, [math.nan] * count  #: seconds, of each job
        self._rejected = (np.zeros(count, bool) if fits is None else ~fits).tolist()
        self._shown: dict[int, Running] = {}  # running jobs, by their numbers
        self._given: dict[int, tuple[Interval, ...]] = {}  # resources of each job, in the order of their starts
        self._delayed: list[tuple[float, int, Running]] = []  # starts whose resources are not ready
        self._delays = 0
        self._silent = math.inf  # when the next job begins or the next silent change is, as of the last look
        self.parts = parts
        self._why_never = resources.why_never
        self._pass_row()
        if self.open_ended:
            heappush(self.wakes, min(0.0, self._submit_times[0]))
        for part in (rates, *parts):
            part.join(self)
        self._next_times = [part.next_time for part in self._with("next_time")]
        self._silent_times = [part.silent_time for part in self._with("silent_time")]
        self._pass_silently = [part.pass_silently for part in self._with("pass_silently")]
        self._advance = [part.advance for part in (*self._with("advance"), rates)]
        self._settle = [part.settle for part in self._with("settle")]
        self._changed = [part.has_changed for part in self._with("has_changed")]
        self._before_call = [part.before_call for part in self._with("before_call")]
        self._after_call = [part.after_call for part in self._with("after_call")]
        self._begin = [part.begin for part in (rates, *self._with("begin"))]
        self._end = [part.end for part in self._with("end")]
        self._last_choices = [part.last_choice for part in self._with("last_choice")]
        self._ready_times = [part.ready_time for part in self._with("ready_time")]

    def _with(self, hook: str) -> list[Part]:
        """Return the parts that override a hook."""
        return [part for part in self.parts if getattr(type(part), hook) is not getattr(Part, hook)]

    # --- what parts may do ---
    def show_predictions(self, limits: Sequence[float]) -> None:
        """Say of all jobs that the walltime that the policy sees is predicted, and what their limits are, seconds."""
        self._limits = limits

    def show_walltime(self, number: int, seconds: float) -> None:
        """Show a job that is submitted later with this walltime."""
        self.walltimes[number] = self._columns_shown[2][number] = seconds

    def show_later_end(self, shown: Running, until: float) -> None:
        """Show a running job with another latest end, and call the policy."""
        later = Running(shown.job, shown.start_time, until, shown.resources)
        self.hide_running(shown)
        self._shown[shown.job.number] = later
        self.add_running(later)
        self.woken = True

    def requeue(self, running: Running, now: float) -> None:
        """Take a running job off its resources; it waits again, in its place in the order of submission."""
        number, job = running.job.number, running.job
        self.rates.kill(running, now)
        self._leave(number)
        del self._given[number]
        self.start[number] = self.finish[number] = math.nan
        self.submit(job)
        queue = sorted(self.waiting.items(), key=lambda entry: (entry[1].submit_time, entry[0]))
        self.waiting.clear()
        self.waiting.update(queue)

    def running_on(self, resources: Sequence[Interval]) -> list[Running]:
        """Return the running jobs that have some of these sorted intervals of resources. O(running jobs)."""
        return [running for running in self.running if common(running.resources, resources)]

    def free_within(self, resources: Sequence[Interval]) -> list[Interval]:
        """Return what is free of these sorted intervals of resources. O(free intervals)."""
        return common(self.free.intervals, resources)

    def withdraw(self, resources: Sequence[Interval]) -> None:
        """Take free resources away from jobs; where there are nodes, those of whole nodes."""
        assert self.free.allocate_these(resources) is None, "they are free"
        self.resources.withdraw(resources)
        for part in (self.rates, *self.parts):
            part.withdrawn(resources)

    def give_back(self, resources: Sequence[Interval], now: float) -> None:
        """Give withdrawn resources back to jobs, and call the policy."""
        self.free.release(resources)
        self.resources.withdraw(resources, back=True)
        for part in (self.rates, *self.parts):
            part.given_back(resources, now)
        self.woken = True

    def next_submission(self) -> float:
        """Return the time of the next submission that is already known, seconds; inf: no job is known to come."""
        return min(self._submit_times[self.next], self._dependencies.next_time)

    def size_of(self, running: Running) -> int:
        """Return how many resources a job uses."""
        number = running.job.number
        as_requested = number < self.count and number not in self.works
        return int(self.workload.size[number]) if as_requested else count_of(running.resources)

    def value_of(self, number: int, column: str) -> Any:
        """Return a job's value in a further column; the workload or the policy submitted it. None: not known."""
        if number >= self.count:
            return self.added[number - self.count].more.get(column)
        return self.workload.more[column].item(number) if column in self.workload.more else None

    # --- the clock ---
    def next_time(self, before: float) -> float:
        """Return the time of the next event; see `drive.Loop`."""
        while self.jobs_remain():
            silent = self._delayed[0][0] if self._delayed else math.inf
            for silent_time in self._silent_times:
                if (change := silent_time()) < silent:
                    silent = change
            self._silent = silent
            time = self._submit_times[self.next]
            if (released := self._dependencies.next_time) < time:
                time = released
            if self.wakes and self.wakes[0] < time:
                time = self.wakes[0]
            for next_time in self._next_times:
                if (event := next_time(before)) < time:
                    time = event
            if (end := self.rates.next_time(min(time, before, silent))) < time:
                time = end
            if silent >= time or silent >= before:
                return time
            self._until(silent)
        return math.inf

    def _until(self, now: float) -> None:
        """Let the jobs begin whose resources are ready by now, and process the silent changes until then."""
        while True:
            ready = self._delayed[0][0] if self._delayed else math.inf
            change = min([silent_time() for silent_time in self._silent_times], default=math.inf)
            self._silent = min(ready, change)
            if self._silent > now:
                return
            if change <= ready:
                for pass_silently in self._pass_silently:
                    pass_silently(change)
            else:
                self._begin_job(heappop(self._delayed)[2])

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        if self._silent <= now:
            self._until(now)
        for advance in self._advance:
            advance(now)
        for number, well in self.rates.pop_ended(now):
            self.finish[number] = now
            self._leave(number)
            if number < self.count:
                self._dependencies.job_ended(number, self.next, now, well=well)
        if self._dependencies.next_time <= now:
            for number in self._dependencies.pop_released(now):
                self._submitted[number] = now
                self._submit(number, now)
        while self._submit_times[self.next] == now and self.next < self.count:
            number = self.next
            self._pass_row()
            if self._dependencies.arrives(number, now):
                self._submit(number, now)
        self.wake_at(now)
        self.now = self.snapshot.time = now
        for settle in self._settle:
            settle(now)

    def jobs_remain(self) -> bool:
        """Return whether a job waits, runs, or is still to come."""
        if self.waiting or self.running or self.next < self.count or self.open_ended:
            return True
        return self._dependencies.next_time < math.inf

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        if super().has_changed():
            return True
        for changed in self._changed:
            if changed():
                return self.jobs_remain()
        return False

    # --- jobs ---
    def _pass_row(self) -> None:
        """Go on to the next job that can run."""
        self.next += 1
        while self.next < self.count and self._rejected[self.next]:
            self.next += 1

    def _submit(self, number: int, now: float) -> None:
        ids, sizes, walltimes, users = self._columns_shown
        values = number, ids[number], sizes[number], walltimes[number], now, users[number]
        if self._nodes is None and self._limits is None:
            job = _job(*values)
        else:
            limit = math.nan if self._limits is None else self._limits[number]
            nodes = 1 if self._nodes is None else self._nodes[number]
            job = NodeJob(*values, nodes, self._limits is not None, limit)
        if not self.open_ended and self._why_never(job):
            self._rejected[number] = True
        else:
            self.submit(job)

    def _leave(self, number: int) -> None:
        """Take a running job away and free its resources."""
        ended = self._shown.pop(number)
        for end in self._end:
            end(ended)
        self.end(ended)

    def begin(self, running: Running) -> None:
        """Let a job run that has its resources, when they are ready."""
        self._shown[running.job.number] = running
        if running.start_time > self.now:
            self._delays += 1
            heappush(self._delayed, (running.start_time, self._delays, running))
        else:
            self._begin_job(running)

    def _begin_job(self, running: Running) -> None:
        number = running.job.number
        self.start[number] = running.start_time
        self._given[number] = running.resources
        for begin in self._begin:
            begin(running)

    def allocate(self, job: QueuedJob, decision: Start) -> tuple[Interval, ...] | None:
        """Take the resources of a start and return them; None: the job goes on waiting. Raises PolicyError."""
        for last_choice in self._last_choices:
            if (last := last_choice()) is not None:
                decision = self.resources.prefer_others(job, decision, last)
        intervals = self.resources.allocate(self, job, decision)
        self.ready = -math.inf
        if intervals is not None:
            for ready_time in self._ready_times:
                self.ready = max(self.ready, ready_time(job, intervals))
        return intervals

    def kill(self, running: Running, now: float) -> None:
        """End a running job; no job that depends on it is submitted. Raises PolicyError."""
        self.rates.kill(running, now)
        number = running.job.number
        self.finish[number] = now
        self.killed.add(number)
        self._leave(number)
        if number < self.count:
            self._dependencies.job_ended(number, self.next, now, well=False)

    def add_job(self, new: Submit, now: float) -> None:
        """Submit a further job. Raises PolicyError."""
        if not self.open_ended or self._limits is not None:
            super().add_job(new, now)  # raises
        for column, value in zip(self._columns_shown, (new.id, new.size, new.walltime, None), strict=True):
            column.append(value)
        self.rates.add_job(new.run_time, new.walltime)
        for times in (self.start, self.finish):
            times.append(math.nan)
        self._rejected.append(False)
        self._submitted = np.append(self._submitted, now)
        self.added.append(new)
        self._submit(len(self.start) - 1, now)

    def reject(self, job: QueuedJob) -> None:
        """Note that a job never runs."""
        self._rejected[job.number] = True

    # --- what the policy sees and does ---
    def _columns(self) -> dict[str, Array]:
        if self.added:
            return super()._columns()
        number = np.fromiter(self.waiting, np.int64, len(self.waiting))
        sizes, walltimes, times = self._sizes[number], self.walltimes[number], self._submitted[number]
        return {"number": number, "size": sizes, "walltime": walltimes, "submit_time": times}

    def call_policy(self) -> list[Any]:
        """Call the policy and return its decisions. Raises PolicyError."""
        for before_call in self._before_call:
            before_call()
        decisions = super().call_policy()
        for after_call in self._after_call:
            after_call()
        return decisions

    def forecast(self, job: QueuedJob, nodes: Sequence[int]) -> Forecast:
        """Return what would happen if a job started now."""
        forecast = self.rates.forecast(job, nodes)
        return super().forecast(job, nodes) if forecast is None else forecast

    def best_nodes(self, job: QueuedJob, policy: str) -> tuple[int, ...] | None:
        """Return where a mapping policy would start a job. Raises PolicyError where jobs do not share nodes."""
        try:
            return self.rates.best_nodes(job, policy)
        except LookupError:
            return super().best_nodes(job, policy)

    def node_loads(self) -> NodeLoads:
        """Return how busy each node is. Raises PolicyError where jobs do not slow each other down."""
        loads = self.rates.node_loads()
        return super().node_loads() if loads is None else loads

    def take_work(self, job: QueuedJob, work: Work) -> None:
        """Note the work with which a job starts. Raises PolicyError if that is not possible here."""
        if not self.rates.take_work(job.number, work):
            super().take_work(job, work)
        self.works[job.number] = work

    def switch(self, decision: Switch) -> None:
        """Switch machines. Raises PolicyError."""
        if not any(part.switch(decision) for part in self._with("switch")):
            super().switch(decision)

    def load_of(self, running: Running) -> Load | None:
        """Return the load of a job whose demand varies while it runs; None: it does not."""
        return self.rates.load_of(running)

    def why_not_waiting(self, number: int) -> str:
        """Return why a job does not wait."""
        if not 0 <= number < len(self.start):
            return "no such job was shown"
        if number < self.count and (number >= self.next or self._dependencies.is_blocked(number)):
            return "it is not submitted yet"
        if self._rejected[number]:
            return "it was rejected"
        return "it is already running" if number in self._shown else "it has ended"

    # --- the result ---
    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        if self.waiting:
            raise self.waits_forever("nothing runs, and no more jobs are submitted")
        jobs = len(self.start)
        counts, begins = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
        pieces, sizes = list[Interval](), np.zeros(jobs, np.int64)
        for number, intervals in self._given.items():
            if self._nodes is not None:  # the last cores beyond its size stay idle
                intervals = tuple(lowest(intervals, int(self.workload.size[number])))
            begins[number], counts[number], sizes[number] = len(pieces), len(intervals), count_of(intervals)
            pieces += intervals
        never_released = np.zeros(jobs, bool)
        never_released[: self.count] = stranded(np.array(self._dependencies.unmet, np.int64), self.count)
        rejected = np.array(self._rejected, bool) | never_released
        killed = np.zeros(jobs, bool)
        killed[list(self.killed)] = True
        start, finish = np.array(self.start, np.float64), np.array(self.finish, np.float64)
        workload = self.workload
        if self.added:
            workload = workload.with_rows(
                [(new.id, time, new.run_time, new.walltime, new.size, new.more)
                 for new, time in zip(self.added, self._submitted[self.count :].tolist(), strict=True)]
            )  # fmt: skip
        replayed = Replayed(
            workload, self.processors, self._submitted, start, finish, rejected, never_released,
            self.rates.overran(workload) & ~rejected & ~killed, np.array(pieces, PIECE), begins, counts,
            simulation_time=seconds, instants=instants, killed=killed, **without_switches(start),
            held=sizes if self.works else None,
        )  # fmt: skip
        for part in (self.rates, *self.parts):
            replayed = part.report(replayed)
        return replayed
