"""Replay a workload under a queue policy written in Python, which is called at each instant.

Rule: the instants are those of `replay`: all ends, then all submissions, then one call. A job of zero run time ends at
the instant at which it starts, and another call follows.
If deciding takes time, the decisions of a call at t that took d seconds are applied at t + d, after the ends and
submissions of that instant. Ends and submissions in between are shown at the next call, which then follows at once: a
policy is never called while it decides. If d is zero, or too small to change the clock, decisions are applied at t.
Source: thesis of Poquet (2017), 4.2, decisions applied at the end of the procedure.
Complexity: a call costs O(changes since the last call), independent of the number of waiting and running jobs.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from numbers import Real
from operator import index
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ConfigError, PolicyError
from ..kernels.queue.tables import PIECE
from ..model.workload import LONGEST, Workload
from . import slices
from .intervals import FreeResources, Interval, merge_intervals
from .machine import Machine
from .queue_tables import DependencyTracker, stranded
from .replay_result import Replayed, without_switches
from .user_policy import Job, QueuePolicy, Reject, Running, Snapshot, Start, View, Wake

#: Number of entries of departed jobs that the dictionary of waiting jobs may hold before it is rebuilt.
FEW = 64


def replay_with_python_policy(
    workload: Workload, machine: Machine, policy: QueuePolicy, *, decision_time: float | None,
    clock: Callable[[], float], progress: Callable[[float], None],
) -> Replayed:  # fmt: skip
    """Replay a workload under a Python policy. O(jobs x log running), plus the time of the policy.

    Args:
        workload: the jobs.
        machine: the machine.
        policy: the policy to call.
        decision_time: simulated seconds that each call takes, 0 or more; None: its duration by `clock`.
        clock: returns seconds.
        progress: called now and then with the simulated time.

    Raises:
        ConfigError: `decision_time` is out of range.
        PolicyError: the policy raised an exception, made an invalid decision, or left jobs waiting forever.
    """
    if decision_time is not None and not 0.0 <= decision_time <= LONGEST:
        raise ConfigError("decision_time", "", f"{decision_time:g}", f"seconds from 0 to {LONGEST:g}")
    replay_began = clock()
    loop, instants, apply_at, decisions = _Loop(workload, machine, policy), 0, math.inf, list[Any]()
    size = slice_end = slices.FIRST
    slice_began = clock()
    while (now := min(loop.next_time(), apply_at)) < math.inf:
        if instants == slice_end:
            size, slice_began = slices.next_slice(size, clock() - slice_began), clock()
            slice_end += size
            progress(now)
        loop.advance_to(now)
        instants += 1
        if apply_at < math.inf:
            if now < apply_at:
                continue
            loop.apply(decisions, now)
            apply_at = math.inf
            if not loop.has_changed():
                continue
        began = clock()
        decisions = loop.call_policy()
        spent = clock() - began if decision_time is None else decision_time
        if now + spent > now:
            apply_at = now + spent
        else:
            loop.apply(decisions, now)
    return loop.result(instants, clock() - replay_began)


class _Loop:
    """The state of the replay; its snapshot shows the policy what a scheduler can know."""

    def __init__(self, workload: Workload, machine: Machine, policy: QueuePolicy) -> None:
        count, self.workload = len(workload), workload
        self.name = f"{type(policy).__module__}:{type(policy).__qualname__}"
        self.decide, self.processors = policy.decide, machine.processors
        self.run: list[float] = np.minimum(workload.run_time, workload.walltime).tolist()
        users = workload.more["user"].tolist() if "user" in workload.more else [None] * count
        ids = workload.more.get("name", workload.id).tolist()
        self.columns = ids, workload.size.tolist(), workload.walltime.tolist(), users
        self.submit: list[float] = [*workload.submit_time.tolist(), math.inf]
        self.submitted, self.dependencies = workload.submit_time.copy(), DependencyTracker(workload)
        self.next, self.count, self.now, self.called_at = 0, count, -math.inf, -math.inf
        self.start, self.finish = [math.nan] * count, [math.nan] * count
        self.rejected = [False] * count
        self.given: list[tuple[Interval, ...]] = [()] * count
        self.order: list[int] = []
        self.free = FreeResources(machine.processors)
        self.waiting: dict[int, Job] = {}
        self.gone = 0
        self.ending: list[tuple[float, int, Running]] = []
        self.untils: list[float] = []
        self.running: list[Running] = []
        self.wakes: list[float] = []
        self.woken = False
        self.snapshot = Snapshot(
            0.0, 0, View(self.free.intervals), self.waiting.values(), View(self.running), [], [], machine, self._columns
        )

    def _columns(self) -> dict[str, Array]:
        number, jobs = np.fromiter(self.waiting, np.int64, len(self.waiting)), self.workload
        chosen = {"size": jobs.size[number], "walltime": jobs.walltime[number], "submit_time": self.submitted[number]}
        return {"number": number, **chosen}

    def next_time(self) -> float:
        """Return the time of the next event; inf if none is left. Wake-ups without remaining jobs are ignored."""
        time = self.submit[self.next]
        if self.ending and self.ending[0][0] < time:
            time = self.ending[0][0]
        if self.wakes and self.wakes[0] < time and (time < math.inf or self.waiting):
            time = self.wakes[0]
        return time

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        ending, untils, running = self.ending, self.untils, self.running
        while ending and ending[0][0] == now:
            ended = heappop(ending)[2]
            self.free.release(ended.resources)
            place = bisect_left(untils, ended.until)
            while running[place] is not ended:
                place += 1
            del untils[place], running[place]
            self.snapshot.ended.append(ended)
            self.dependencies.job_ended(ended.job.number, self.next)
        for number in self.dependencies.pop_released():
            self.submitted[number] = now
            self._submit(number, now)
        while self.submit[self.next] == now and self.next < self.count:
            number = self.next
            self.next += 1
            if not self.dependencies.is_blocked(number):
                self._submit(number, now)
        while self.wakes and self.wakes[0] == now:
            heappop(self.wakes)
            self.woken = True
        self.now = self.snapshot.time = now

    def _submit(self, number: int, now: float) -> None:
        ids, sizes, walls, users = self.columns
        job = Job(number, ids[number], sizes[number], walls[number], now, users[number])
        if job.size > self.processors:
            self.rejected[number] = True
            return
        self.waiting[number] = job
        self.snapshot.submitted.append(job)

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        jobs_remain = self.waiting or self.ending or self.next < self.count
        return bool(self.snapshot.submitted or self.snapshot.ended or (self.woken and jobs_remain))

    def call_policy(self) -> list[Any]:
        """Call the policy and return its decisions. Raises PolicyError."""
        snapshot = self.snapshot
        snapshot.free, self.called_at, self.woken = self.free.count, self.now, False
        try:
            decided = self.decide(snapshot)
            found = [] if decided is None else list(decided)
        except (Exception, SystemExit) as error:
            raise PolicyError(self.name, f"at {self.now} s", f"{type(error).__name__}: {error}") from error
        snapshot.submitted, snapshot.ended = [], []
        return found

    def apply(self, decisions: Iterable[Any], now: float) -> None:
        """Apply the decisions of the last call at this time. Raises PolicyError."""
        for decision in decisions:
            if isinstance(decision, Start):
                self._start(self._waiting_job(decision.job), decision.resources, now)
            elif isinstance(decision, Wake):
                self._schedule_wake(decision.time, now)
            elif isinstance(decision, Reject):
                job = self._waiting_job(decision.job)
                self.rejected[job.number] = True
                self._remove_from_queue(job)
            else:
                raise self._error("", f"invalid decision {decision!r:.60}", "Start, Reject, Wake")

    def _start(self, job: Job, resources: Iterable[Interval] | None, now: float) -> None:
        number, size = job.number, job.size
        if resources is not None:
            given = self._allocate_requested(job, resources)
        elif size <= self.free.count:
            given = self.free.allocate(size)
        else:
            raise self._error(job, f"it asks for {size:,} resources, and {self.free.count:,} are free")
        self._remove_from_queue(job)
        until, finish = now + job.walltime, now + self.run[number]
        running = Running(job, now, until, given)
        self.start[number], self.finish[number], self.given[number] = now, finish, given
        self.order.append(number)
        heappush(self.ending, (finish, number, running))
        place = bisect_right(self.untils, until)
        self.untils.insert(place, until)
        self.running.insert(place, running)

    def _remove_from_queue(self, job: Job) -> None:
        """Remove a job from the queue; rebuild the dictionary now and then, as it keeps entries of removed keys."""
        del self.waiting[job.number]
        self.gone += 1
        if self.gone > len(self.waiting) + FEW:
            kept = [*self.waiting.items()]
            self.waiting.clear()
            self.waiting.update(kept)
            self.gone = 0

    def _allocate_requested(self, job: Job, resources: Any) -> tuple[Interval, ...]:
        """Allocate the resources that the policy chose for a job. Raises PolicyError."""
        allowed = f"pairs of first and last, {job.size:,} resources in all, from 0 to {self.processors - 1:,}"
        try:
            wanted = [(index(first), index(last)) for first, last in resources]
        except Exception:
            raise self._error(job, f"its resources are {resources!r:.60}", allowed) from None
        for first, last in wanted:
            if not 0 <= first <= last < self.processors:
                raise self._error(job, f"invalid resources {first} to {last}", allowed)
        if isinstance(found := merge_intervals(wanted), int):
            raise self._error(job, f"resource {found} is given twice", allowed)
        count = sum(last - first + 1 for first, last in found)
        if count != job.size:
            raise self._error(job, f"it is given {count:,} resources", f"{job.size:,}, the size it asks for")
        busy = self.free.allocate_these(found)
        if busy is not None:
            raise self._error(job, f"resource {busy} is not free")
        return tuple(found)

    def _schedule_wake(self, time: Any, now: float) -> None:
        if not isinstance(time, Real) or not self.called_at < float(time) < math.inf:
            raise self._error("", f"invalid Wake({time!r:.60})", f"a time later than now, {self.called_at} s")
        if time <= now:
            self.woken = True
        else:
            heappush(self.wakes, float(time))

    def _waiting_job(self, job: Any) -> Job:
        """Return the job if it waits. Raises PolicyError otherwise."""
        if not isinstance(job, Job):
            raise self._error("", f"a decision is about {job!r:.60}", "a job of `waiting`")
        if self.waiting.get(job.number) is job:
            return job
        number = job.number
        if not isinstance(number, int) or not 0 <= number < self.count or number in self.waiting:
            why = "no such job was shown"
        elif number >= self.next or self.dependencies.is_blocked(number):
            why = "it is not submitted yet"
        elif self.rejected[number]:
            why = "it was rejected"
        else:
            why = "it is already running" if any(ran.job.number == number for ran in self.running) else "it has ended"
        raise self._error(job, why, "a job of `waiting`")

    def _error(self, job: Job | str, problem: str, allowed: str = "") -> PolicyError:
        subject = f"job {job.id}, " if isinstance(job, Job) else ""
        return PolicyError(self.name, f"{subject}at {self.now} s", problem, allowed)

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        if self.waiting:
            first = next(iter(self.waiting.values()))
            others = f", like {len(self.waiting) - 1:,} others" if len(self.waiting) > 1 else ""
            raise self._error(first, f"it waits forever{others}: nothing runs, and no more jobs are submitted")
        counts = np.array([len(given) for given in self.given], np.int64)
        begins = np.zeros(len(counts), np.int64)
        begins[self.order] = np.cumsum([0, *counts[self.order]])[:-1]
        pieces = [interval for number in self.order for interval in self.given[number]]
        left = stranded(np.array(self.dependencies.unmet, np.int64), self.count)
        rejected = np.array(self.rejected, bool) | left
        start, finish = np.array(self.start), np.array(self.finish)
        overran = (self.workload.run_time > self.workload.walltime) & ~rejected
        return Replayed(
            self.workload, self.processors, self.submitted, start, finish, rejected, left, overran,
            np.array(pieces, PIECE), begins, counts,
            simulation_time=seconds, instants=instants, **without_switches(start),
        )  # fmt: skip
