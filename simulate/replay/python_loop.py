"""Replay a workload under a queue policy written in Python, which is called at each instant.

Rule: the instants are those of `replay`: all ends, then all submissions, then one call. A job of zero run time ends at
the instant at which it starts, and another call follows.
With predicted run times, a running job that outlasts its expected end is an instant, too.
If deciding takes time, the decisions of a call at t that took d seconds are applied at t + d, after the ends and
submissions of that instant. Ends and submissions in between are shown at the next call, which then follows at once: a
policy is never called while it decides. If d is zero, or too small to change the clock, decisions are applied at t.
Source: thesis of Poquet (2017), 4.2, decisions applied at the end of the procedure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..kernels.queue.tables import INCREMENTS_S, PIECE
from ..model.intervals import Interval
from ..model.machine import Machine
from ..model.workload import LONGEST, Workload
from ..queue_policies.interface import FreeNodes, Job, Need, NodeJob, QueuePolicy, Running, Start
from ..queue_policies.policy_calls import PolicyCalls
from . import slices
from .known_run_times import Predictions
from .queue_tables import DependencyTracker, stranded
from .replay_result import Replayed, without_switches


class Loop(Protocol):
    """A world that calls a queue policy; `drive` runs it."""

    def next_time(self) -> float:
        """Return the time of the next event; inf if none is left. Wake-ups without remaining jobs are ignored."""
        ...

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        ...

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        ...

    #: Whether the last decisions ask for another call at this instant.
    again: bool

    def call_policy(self) -> list[Any]:
        """Call the policy and return its decisions. Raises PolicyError."""
        ...

    def apply(self, decisions: Iterable[Any], now: float) -> None:
        """Apply the decisions of the last call at this time. Raises PolicyError."""
        ...

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        ...


def replay_with_python_policy(
    workload: Workload, machine: Machine, policy: QueuePolicy, *, decision_time: float | None,
    predictions: Predictions | None,
    clock: Callable[[], float], progress: Callable[[float], None],
) -> Replayed:  # fmt: skip
    """Replay a workload under a Python policy. O(jobs x log running), plus the time of the policy.

    Args:
        workload: the jobs.
        machine: the machine.
        policy: the policy to call.
        decision_time: simulated seconds that each call takes, 0 or more; None: its duration by `clock`.
        predictions: of the run times; None: the policy sees walltimes.
        clock: returns seconds.
        progress: called now and then with the simulated time.

    Raises:
        ConfigError: `decision_time` is out of range.
        PolicyError: the policy raised an exception, made an invalid decision, or left jobs waiting forever.
    """
    began = clock()
    loop = _PredictedLoop(workload, machine, policy, predictions) if predictions else _Loop(workload, machine, policy)
    return drive(loop, began, decision_time=decision_time, clock=clock, progress=progress)


def drive(
    loop: Loop, replay_began: float, *, decision_time: float | None, clock: Callable[[], float],
    progress: Callable[[float], None],
) -> Replayed:  # fmt: skip
    """Run a world to its end; see `replay_with_python_policy`. `replay_began`: by the clock."""
    if decision_time is not None and not 0.0 <= decision_time <= LONGEST:
        raise ConfigError("decision_time", "", f"{decision_time:g}", f"seconds from 0 to {LONGEST:g}")
    instants, apply_at, decisions = 0, math.inf, list[Any]()
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
            continue
        loop.apply(decisions, now)
        while loop.again:
            loop.apply(loop.call_policy(), now)
    return loop.result(instants, clock() - replay_began)


class _Loop(PolicyCalls):
    """The state of the replay; its snapshot shows the policy what a scheduler can know."""

    make_job: Callable[..., Job] = Job

    def __init__(self, workload: Workload, machine: Machine, policy: QueuePolicy) -> None:
        name = f"{type(policy).__module__}:{type(policy).__qualname__}"
        super().__init__(policy, name, machine, self._columns, self._free_nodes)
        count, self.workload = len(workload), workload
        self.run: list[float] = np.minimum(workload.run_time, workload.walltime).tolist()
        users = workload.more["user"].tolist() if "user" in workload.more else [None] * count
        ids = workload.more.get("name", workload.id).tolist()
        self.columns = ids, workload.size.tolist(), workload.walltime.tolist(), users
        self.submit_times: list[float] = [*workload.submit_time.tolist(), math.inf]
        self.submitted, self.dependencies = workload.submit_time.copy(), DependencyTracker(workload)
        self.next, self.count = 0, count
        self.start, self.finish = [math.nan] * count, [math.nan] * count
        self.rejected = [False] * count
        self.given: list[tuple[Interval, ...]] = [()] * count
        self.order: list[int] = []
        self.ending: list[tuple[float, int, Running]] = []

    def _columns(self) -> dict[str, Array]:
        number, jobs = np.fromiter(self.waiting, np.int64, len(self.waiting)), self.workload
        chosen = {"size": jobs.size[number], "walltime": jobs.walltime[number], "submit_time": self.submitted[number]}
        return {"number": number, **chosen}

    def _free_nodes(self) -> FreeNodes:
        return FreeNodes(np.array([self.free.count]), np.array([math.inf]), lambda job: Need(job.size), lambda it: (0,))

    def next_time(self) -> float:
        """Return the time of the next event; inf if none is left. Wake-ups without remaining jobs are ignored."""
        time = self.submit_times[self.next]
        if self.ending and self.ending[0][0] < time:
            time = self.ending[0][0]
        if self.wakes and self.wakes[0] < time and (time < math.inf or self.waiting):
            time = self.wakes[0]
        return time

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        ending = self.ending
        while ending and ending[0][0] == now:
            ended = heappop(ending)[2]
            self.end(ended)
            self.dependencies.job_ended(ended.job.number, self.next)
        for number in self.dependencies.pop_released():
            self.submitted[number] = now
            self._submit(number, now)
        while self.submit_times[self.next] == now and self.next < self.count:
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
        job = self.make_job(number, ids[number], sizes[number], walls[number], now, users[number])
        if job.size > self.processors:
            self.rejected[number] = True
        else:
            self.submit(job)

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        jobs_remain = self.waiting or self.ending or self.next < self.count
        return bool(self.snapshot.submitted or self.snapshot.ended or (self.woken and jobs_remain))

    def allocate(self, job: Job, decision: Start) -> tuple[Interval, ...]:
        """Take the resources that a start names, or the lowest free ones. Raises PolicyError."""
        if decision.resources is not None:
            return self.allocate_requested(job, decision.resources)
        if decision.nodes is not None and tuple(decision.nodes) != (0,):
            raise self.error(job, f"its nodes are {decision.nodes!r:.60}", "(0,): the machine of a replay is one node")
        if job.size > self.free.count:
            raise self.error(job, f"it asks for {job.size:,} resources, and {self.free.count:,} are free")
        return self.free.allocate(job.size)

    def begin(self, running: Running) -> None:
        """Note when a job that starts will end."""
        number = running.job.number
        finish = running.start_time + self.run[number]
        self.start[number], self.finish[number], self.given[number] = running.start_time, finish, running.resources
        self.order.append(number)
        heappush(self.ending, (finish, number, running))

    def reject(self, job: Job) -> None:
        """Note that a job never runs."""
        self.rejected[job.number] = True

    def why_not_waiting(self, number: int) -> str:
        """Return why a job does not wait."""
        if not 0 <= number < self.count:
            return "no such job was shown"
        if number >= self.next or self.dependencies.is_blocked(number):
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
        left = stranded(np.array(self.dependencies.unmet, np.int64), self.count)
        rejected = np.array(self.rejected, bool) | left
        start, finish = np.array(self.start), np.array(self.finish)
        overran = (self.workload.run_time > self.workload.walltime) & ~rejected
        return Replayed(
            self.workload, self.processors, self.submitted, start, finish, rejected, left, overran,
            np.array(pieces, PIECE), begins, counts,
            simulation_time=seconds, instants=instants, **without_switches(start),
        )  # fmt: skip


class _PredictedLoop(_Loop):
    """The replay of jobs whose run times are predicted: the policy sees the predictions as walltimes."""

    make_job = partial(NodeJob, predicted=True)

    def __init__(self, workload: Workload, machine: Machine, policy: QueuePolicy, predictions: Predictions) -> None:
        super().__init__(workload, machine, policy)
        self.predictions, self.walltimes = predictions, workload.walltime.copy()
        self.outlasted: dict[int, tuple[int, Running]] = {}  # corrections of a running job, and what is shown of it
        self.unlearned: list[int] = []

    def _columns(self) -> dict[str, Array]:
        found = super()._columns()
        return found | {"walltime": self.walltimes[found["number"]]}

    def next_time(self) -> float:
        """Return the time of the next event, or of the next expected end that a job outlasts."""
        time = super().next_time()
        return min(time, self.untils[0]) if self.untils else time

    def advance_to(self, now: float) -> None:
        """Predict the jobs of this instant, process its ends and submissions, and move the ends that have passed."""
        if self.submit_times[self.next] == now:
            self.predictions.learn(self.unlearned, self.finish)
            self.unlearned.clear()
            for number, expected in self.predictions.submitted_with(self.next).items():
                self.walltimes[number] = self.columns[2][number] = expected
        super().advance_to(now)
        while self.untils and self.untils[0] <= now:
            self._move_first_end(now)

    def _move_first_end(self, now: float) -> None:
        shown = self.running.pop(0)
        del self.untils[0]
        number, began = shown.job.number, shown.start_time
        times = self.outlasted[number][0] if number in self.outlasted else 0
        until = began + min(now - began + INCREMENTS_S[times], self.predictions.limits[number])
        self.outlasted[number] = times + 1, replace(shown, until=until)
        self.add_running(self.outlasted[number][1])
        self.woken = True

    def end(self, ended: Running) -> None:
        """Take a running job away, and note it for the predictor."""
        self.unlearned.append(ended.job.number)
        super().end(self.outlasted.pop(ended.job.number, (0, ended))[1])
