"""The parts of every world that calls a queue policy: the queue, the snapshot, and carrying out decisions.

Rule: a decision is carried out or is an error that names the policy, the job and the time. A world says when jobs are
submitted and end, and which resources a start gets; `begin` is its part of a start.
Complexity: a call costs O(changes since the last call), independent of the number of waiting and running jobs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..arrays import Array
from ..errors import ConfigError, PolicyError
from ..model.intervals import FreeResources, Interval, MergedIntervals, count_of, merge_intervals
from ..model.machine import Machine
from ..wording import count
from .free_nodes import FreeNodes, NodeLoads
from .frozen import View, quick_maker
from .interface import Backfill, Forecast, Kill, QueuePolicy, QueueView, Reject, Reserve, Start, Submit, Switch, Wake
from .queued_job import QueuedJob, Running
from .reservations import Reserved, check_reservations

if TYPE_CHECKING:
    from ..model.programs import Part

#: Number of entries of departed jobs that the dictionary of waiting jobs may hold before it is rebuilt.
FEW = 64
_running = quick_maker(Running)


class Resources(Protocol):
    """The resources of a machine, and the rules by which jobs get them."""

    machine: Machine
    free: FreeResources

    def free_nodes(self) -> FreeNodes:
        """Return what is free on each node, as a copy."""
        ...

    def backfill(self, now: QueueView) -> Backfill:
        """Return what can start now."""
        ...

    def begin_call(self) -> None:
        """Prepare for the decisions of another call."""
        ...

    def allocate(self, calls: PolicyCalls, job: QueuedJob, decision: Start) -> tuple[Interval, ...] | None:
        """Take the resources of a start and return them; None: the job goes on waiting. Raises PolicyError."""
        ...

    def release(self, ended: Running) -> None:
        """Free the resources of a job."""
        ...

    def why_never(self, job: QueuedJob) -> str:
        """Return why a job can never start, "" if it can."""
        ...

    def machines_of(self, resources: Iterable[Interval]) -> list[Interval]:
        """Return the resources of all machines that have some of these."""
        ...

    def withdraw(self, resources: Iterable[Interval], *, back: bool = False) -> None:
        """Note that whole machines are no longer available to jobs, or are back; `free` says so, too."""
        ...

    def prefer_others(self, job: QueuedJob, decision: Start, last: FreeResources) -> Start:
        """Return a start without places with places, such that resources of `last` come last, if that is possible."""
        ...


def policy_name(policy: object) -> str:
    """Return the name of a policy in Python for messages: its `spec`, else `module:Class`."""
    return str(getattr(policy, "spec", f"{type(policy).__module__}:{type(policy).__qualname__}"))


class PolicyCalls(ABC):
    """The queue and the running jobs as a policy sees them.

    Args:
        policy: the policy to call.
        name: its name, for messages.
        resources: the resources of the machine.
    """

    def __init__(self, policy: QueuePolicy, name: str, resources: Resources) -> None:
        self.decide, self.name, self.resources = policy.decide, name, resources
        machine, self.free = resources.machine, resources.free
        self.processors = machine.processors
        self.open_ended = bool(getattr(policy, "open_ended", False))
        self.now = self.called_at = self.ready = -math.inf  # `ready`: when the machines of the next start have booted
        self.waiting: dict[int, QueuedJob] = {}
        self.gone = 0
        self.untils: list[float] = []
        self.running: list[Running] = []
        self.just_ended: list[Running] = []  # since the last call
        self.wakes: list[float] = []
        self.works: dict[int, Part] = {}  # of jobs that start with a work of their own
        self.reserved: dict[int, Reserved] = {}  # by the last call
        self.woken = self.again = False
        self.snapshot = QueueView(
            0.0, 0, View(self.free.intervals), self.waiting.values(), View(self.running), [], self.just_ended, machine,
            self._columns, resources.free_nodes, self.forecast, self.node_loads, self.backfill,
            self.best_nodes,
        )  # fmt: skip

    def _columns(self) -> dict[str, Array]:
        rows = [(job.size, job.walltime, job.submit_time) for job in self.waiting.values()]
        size, walltime, submit_time = np.array(rows, np.float64).reshape(-1, 3).T
        number = np.fromiter(self.waiting, np.int64, len(rows))
        return {"number": number, "size": size.astype(np.int64), "walltime": walltime, "submit_time": submit_time}

    def jobs_remain(self) -> bool:
        """Return whether a job waits, runs, or is still to come; this one is for worlds to which no more come."""
        return bool(self.waiting or self.running)

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        return bool(self.snapshot.submitted or self.snapshot.ended or (self.woken and self.jobs_remain()))

    def wake_at(self, now: float) -> None:
        """Note the wake-ups that are due."""
        while self.wakes and self.wakes[0] <= now:
            heappop(self.wakes)
            self.woken = True

    # --- what a world does in its own way ---
    def allocate(self, job: QueuedJob, decision: Start) -> tuple[Interval, ...] | None:
        """Take the resources of a start and return them; None: the job goes on waiting. Raises PolicyError."""
        return self.resources.allocate(self, job, decision)

    @abstractmethod
    def begin(self, running: Running) -> None:
        """Let a job run that has its resources."""

    def forecast(self, job: QueuedJob, nodes: Sequence[int]) -> Forecast:
        """Return what would happen if a job started now; this one is for worlds without contention."""
        return Forecast(self.now + job.walltime)

    def node_loads(self) -> NodeLoads:
        """Return how busy each node is; this one is for worlds without contention. Raises PolicyError."""
        raise self.error("", "it asks how busy nodes are", "where jobs share nodes and slow each other down")

    def best_nodes(self, job: QueuedJob, policy: str) -> tuple[int, ...] | None:
        """Return where a mapping policy would start a job; this one is for other worlds. Raises PolicyError."""
        allowed = "mom, let, slf or loadavg, in a replay on nodes that jobs share"
        raise self.error(job, f"its best nodes by {policy!r:.60} are asked for", allowed)

    def backfill(self) -> Backfill:
        """Return what can start now."""
        return self.resources.backfill(self.snapshot)

    def switch(self, decision: Switch) -> None:
        """Switch machines; this one is for worlds without states of machines. Raises PolicyError."""
        allowed = "in a replay, under a class with `powered = True`"
        raise self.error("", f"it switches machines {'on' if decision.on else 'off'}", allowed)

    def kill(self, running: Running, now: float) -> None:
        """End a running job; this one is for worlds that cannot. Raises PolicyError."""
        raise self.error(running.job, "it is killed", "in a replay")

    def take_work(self, job: QueuedJob, work: Part) -> None:
        """Note the work with which a job starts; this one is for worlds that cannot. Raises PolicyError."""
        raise self.error(job, "its start has a work of its own", "a machine whose network or speeds are known")

    def add_job(self, new: Submit, now: float) -> None:
        """Submit a further job; this one is for worlds that cannot. Raises PolicyError."""
        allowed = "in a replay on numbered resources, in a class with `open_ended = True`"
        raise self.error("", f"it submits job {new.id}", allowed)

    @abstractmethod
    def reject(self, job: QueuedJob) -> None:
        """Note that a job never runs."""

    @abstractmethod
    def why_not_waiting(self, number: int) -> str:
        """Return why the job of this number, which was or will be shown, is not waiting."""

    # --- what all have in common ---
    def submit(self, job: QueuedJob) -> None:
        """Put a job in the queue."""
        self.waiting[job.number] = job
        self.snapshot.submitted.append(job)

    def end(self, ended: Running) -> None:
        """Take a running job away and free its resources."""
        self.resources.release(ended)
        self.hide_running(ended)
        self.just_ended.append(ended)

    def hide_running(self, ended: Running) -> None:
        """Show a running job no more."""
        untils, running = self.untils, self.running
        place = bisect_left(untils, ended.until)
        while running[place] is not ended:
            place += 1
        del untils[place], running[place]

    def add_running(self, running: Running) -> None:
        """Show a running job."""
        place = bisect_right(self.untils, running.until)
        self.untils.insert(place, running.until)
        self.running.insert(place, running)

    def call_policy(self) -> list[Any]:
        """Call the policy and return its decisions. Raises PolicyError."""
        snapshot = self.snapshot
        self.resources.begin_call()
        snapshot.free, self.called_at, self.woken = self.free.count, self.now, False
        try:
            decided = self.decide(snapshot)
            decisions = [] if decided is None else list(decided)
        except ConfigError as error:  # it does not go with this machine
            raise PolicyError(self.name, error.key, error.problem, error.allowed) from None
        except (Exception, SystemExit) as error:
            raise PolicyError(self.name, f"at {self.now} s", f"{type(error).__name__}: {error}") from error
        self.forget_news()
        return decisions

    def forget_news(self) -> None:
        """Begin to note what happens until the next call."""
        snapshot = self.snapshot
        if snapshot.submitted:
            snapshot.submitted = []
        if self.just_ended:
            self.just_ended = snapshot.ended = []
            snapshot.killed = {}

    def apply(self, decisions: Iterable[Any], now: float) -> None:
        """Apply the decisions of the last call; `again`: they ask for another one at once. Raises PolicyError."""
        self.again, acted, changed, waiting = False, False, False, self.waiting
        before, reservations = len(waiting), list[Reserve]()
        for decision in decisions:
            if isinstance(decision, Start):
                job = decision.job
                if not isinstance(job, QueuedJob) or waiting.get(job.number) is not job:
                    job = self._waiting_job(job)  # says what is wrong
                self.start_job(job, decision, now)
                acted = True
                continue
            if isinstance(decision, Wake):
                self._schedule_wake(decision.time, now, acted=acted)
                self.again &= changed or len(waiting) < before
                continue
            acted = True
            if isinstance(decision, Reserve):
                reservations.append(decision)
            elif isinstance(decision, Reject):
                job = self._waiting_job(decision.job)
                self.reject(job)
                self.remove_from_queue(job)
            elif isinstance(decision, Switch):
                self.switch(decision)
            elif isinstance(decision, Kill):
                changed = True
                if decision.running not in self.snapshot.running:
                    raise self.error(decision.running.job, "it is killed", "a job of `running`")
                self.kill(decision.running, now)
            elif isinstance(decision, Submit):
                changed = True
                self.add_job(decision, now)
            else:
                allowed = "Start, Reserve, Reject, Wake, Switch, Kill, Submit"
                raise self.error("", f"invalid decision {decision!r:.60}", allowed)
        self.reserved = self._reserve(reservations, now) if reservations else {}

    def start_job(self, job: QueuedJob, decision: Start, now: float) -> None:
        """Start a waiting job. Raises PolicyError."""
        if decision.work is not None:
            self.take_work(job, decision.work)
        intervals = self.allocate(job, decision)
        if intervals is None:
            return
        self.remove_from_queue(job)
        begins = self.ready if self.ready > now else now
        running = _running(job, begins, begins + job.walltime, intervals)
        self.begin(running)
        self.add_running(running)

    def _reserve(self, reservations: Sequence[Reserve], now: float) -> dict[int, Reserved]:
        """Return what jobs have reserved. Raises PolicyError if that cannot be kept."""
        job_numbers = set[int]()
        for reservation in reservations:
            job = self._waiting_job(reservation.job)
            if not isinstance(reservation.time, Real) or not self.called_at < float(reservation.time) < math.inf:
                raise self.error(
                    job, f"it is reserved for {reservation.time!r:.60}", f"a time after {self.called_at} s"
                )
            if job.number in job_numbers:
                raise self.error(job, "it is reserved twice", "once")
            job_numbers.add(job.number)
        if self.snapshot.states is not None:  # machines that are switched may be back by then
            return {
                reservation.job.number: (float(reservation.time), tuple(reservation.nodes or ()))
                for reservation in reservations
            }
        verdict = check_reservations(self.snapshot, reservations, self.called_at, now)
        while isinstance(verdict, Reserve) and now > self.called_at:  # meanwhile jobs may have outlasted their ends
            reservations = [reservation for reservation in reservations if reservation is not verdict]
            verdict = check_reservations(self.snapshot, reservations, self.called_at, now)
        if isinstance(verdict, Reserve):
            nodes = "" if verdict.nodes is None else f", nodes {verdict.nodes!r:.60}"
            problem = f"it is reserved for {float(verdict.time)} s{nodes}"
            raise self.error(verdict.job, problem, "where jobs that run or are reserved leave room then")
        return verdict

    def remove_from_queue(self, job: QueuedJob) -> None:
        """Remove a job from the queue; rebuild the dictionary now and then, as it keeps entries of removed keys."""
        del self.waiting[job.number]
        self.gone += 1
        if self.gone > len(self.waiting) + FEW:
            entries = [*self.waiting.items()]
            self.waiting.clear()
            self.waiting.update(entries)
            self.gone = 0

    def allocate_requested(self, job: QueuedJob, resources: Any) -> tuple[Interval, ...]:
        """Allocate the resources that the policy chose for a job. Raises PolicyError."""
        intervals = self.valid_intervals(job, resources, job.size)
        resource_count = count_of(intervals)
        if resource_count != job.size and job.number not in self.works:
            allowed = f"{job.size:,}, the size it asks for"
            raise self.error(job, f"it is given {count(resource_count, 'resource')}", allowed)
        busy = self.free.allocate_these(intervals)
        if busy is not None:
            raise self.error(job, f"resource {busy} is not free")
        return tuple(intervals)

    def valid_intervals(self, job: QueuedJob | str, resources: Any, size: int = 0) -> list[Interval]:
        """Return the intervals that a decision names, sorted and merged. Raises PolicyError.

        Args:
            job: the job concerned, or "".
            resources: first and last of each interval.
            size: how many are required in all, for messages; 0: any number.
        """
        if type(resources) is MergedIntervals and resources and resources[-1][1] < self.processors:
            return resources
        in_all = f", {count(size, 'resource')} in all" if size else ""
        allowed = f"pairs of first and last{in_all}, from 0 to {self.processors - 1:,}"
        try:
            pairs = [(index(first), index(last)) for first, last in resources]
        except Exception:
            raise self.error(job, f"its resources are {resources!r:.60}", allowed) from None
        for first, last in pairs:
            if not 0 <= first <= last < self.processors:
                raise self.error(job, f"invalid resources {first} to {last}", allowed)
        if isinstance(merged := merge_intervals(pairs), int):
            raise self.error(job, f"resource {merged} is given twice", allowed)
        return merged

    def _schedule_wake(self, time: Any, now: float, *, acted: bool) -> None:
        """Note when the policy is called again. Raises PolicyError.

        Args:
            time: what the policy asks for.
            now: the time at which its decisions are carried out.
            acted: whether it started or rejected something before, so that a call at once may see something new.
        """
        is_time = isinstance(time, Real) and self.called_at <= float(time) < math.inf
        if not is_time or (time == self.called_at and not acted):
            allowed = f"a time later than now, {self.called_at} s, or now after a Start or Reject"
            raise self.error("", f"invalid Wake({time!r:.60})", allowed)
        if time == self.called_at == now:
            self.again = True
        elif time <= now:
            self.woken = True
        else:
            heappush(self.wakes, float(time))

    def _waiting_job(self, job: Any) -> QueuedJob:
        """Return the job if it waits. Raises PolicyError otherwise."""
        if not isinstance(job, QueuedJob):
            raise self.error("", f"a decision is about {job!r:.60}", "a job of `waiting`")
        number = job.number
        if self.waiting.get(number) is job:
            return job
        may_be_shown = isinstance(number, int) and number not in self.waiting
        raise self.error(
            job, self.why_not_waiting(number) if may_be_shown else "no such job was shown", "a job of `waiting`"
        )

    def waits_forever(self, why: str) -> PolicyError:
        """Return the error of jobs that still wait at the end; `why` nothing starts them any more."""
        first = next(iter(self.waiting.values()))
        others = f", like {count(len(self.waiting) - 1, 'other')}" if len(self.waiting) > 1 else ""
        return self.error(first, f"it waits forever{others}: {why}")

    def error(self, job: QueuedJob | str, problem: str, allowed: str = "") -> PolicyError:
        """Return an error of this policy at this time.

        Args:
            job: the job concerned, or "".
            problem: what was found.
            allowed: what is allowed; may be empty.
        """
        subject = f"job {job.id}, " if isinstance(job, QueuedJob) else ""
        return PolicyError(self.name, f"{subject}at {self.now} s", problem, allowed)
