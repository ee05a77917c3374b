"""A workload replayed under a policy of a user's own, which is asked at each instant.

Rule: the instants are those of `replay`: all ends, then all submissions, then one call; a job of no length ends where
it starts, and another call follows. Where deciding takes time, what a call at t decided after d seconds is carried out
at t + d, after the ends and submissions of that instant; what ends and is submitted in between happens, and is told at
the next call, which is then made at once: a policy is never called while it decides. A call that decides in no time,
or in less than the clock can tell from none, has its decisions carried out at t.
Source: thesis of Poquet (2017), 4.2, the decisions applied as the procedure ends.
Cost: of a call, what has changed since the last, however many wait or run.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from numbers import Real
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PolicyError
from ..kernels.batch.tables import PIECE
from ..workload import Workload
from . import pace
from .custom import Job, OwnPolicy, Reject, Running, Snapshot, Start, View, Wake, columns_of
from .dependents import Held, stranded
from .intervals import Free, Interval, joined
from .machine import Machine

Array = npt.NDArray[Any]
#: Places of jobs that have left the queue which are no trouble.
FEW = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the jobs; the columns are as in `Replayed`."""

    submit_time: Array
    start_time: Array
    finish_time: Array
    rejected: Array
    stranded: Array
    pieces: Array
    piece0: Array
    piece_count: Array
    instants: int


def ask(
    workload: Workload, machine: Machine, policy: OwnPolicy, *, decision_time: float | None, clock: Callable[[], float],
    progress: Callable[[float], None],
) -> Outcome:  # fmt: skip
    """Replay. O(jobs x log running) and what the policy takes.

    Args:
        decision_time: seconds that each call takes in the simulation, 0 or more; None: as many as it took by `clock`.

    Raises:
        PolicyError: the policy raised an exception, decided what cannot be carried out, or left jobs waiting for ever.
    """
    world, instants, effect, decided = _World(workload, machine, policy), 0, math.inf, list[Any]()
    size = look = pace.FIRST
    looked = clock()
    while (now := min(world.next_time(), effect)) < math.inf:
        if instants == look:
            size, looked = pace.next_slice(size, clock() - looked), clock()
            look += size
            progress(now)
        world.go_to(now)
        instants += 1
        if effect < math.inf:
            if now < effect:
                continue
            world.carry_out(decided, now)
            effect = math.inf
            if not world.news():
                continue
        began = clock()
        decided = world.call()
        spent = clock() - began if decision_time is None else decision_time
        if now + spent > now:
            effect = now + spent
        else:
            world.carry_out(decided, now)
    return world.outcome(instants)


class _World:
    """What goes on; the snapshot shows what a scheduler knows of it."""

    def __init__(self, workload: Workload, machine: Machine, policy: OwnPolicy) -> None:
        count = len(workload)
        self.name, self.decide, self.processors = name_of(policy), policy.decide, machine.processors
        self.run: list[float] = np.minimum(workload.run_time, workload.walltime).tolist()
        users = workload.more["user"].tolist() if "user" in workload.more else [None] * count
        ids = workload.more.get("name", workload.id).tolist()
        self.columns = ids, workload.size.tolist(), workload.walltime.tolist(), users
        self.submit: list[float] = [*workload.submit_time.tolist(), math.inf]
        self.submitted, self.held = workload.submit_time.copy(), Held(workload)
        self.next, self.count, self.now, self.asked = 0, count, -math.inf, -math.inf
        self.start, self.finish = [math.nan] * count, [math.nan] * count
        self.rejected = [False] * count
        self.given: list[tuple[Interval, ...]] = [()] * count
        self.order: list[int] = []
        self.free = Free(machine.processors)
        self.waiting: dict[int, Job] = {}
        self.gone = 0
        self.ending: list[tuple[float, int, Running]] = []
        self.untils: list[float] = []
        self.running: list[Running] = []
        self.wakes: list[float] = []
        self.woken = False
        table = partial(columns_of, self.waiting, workload.size, workload.walltime, self.submitted)
        self.snapshot = Snapshot(
            0.0, 0, View(self.free.intervals), self.waiting.values(), View(self.running), [], [], machine, table
        )

    def next_time(self) -> float:
        """When something happens; inf = never again. Once no job is left, nobody is called any more."""
        time = self.submit[self.next]
        if self.ending and self.ending[0][0] < time:
            time = self.ending[0][0]
        if self.wakes and self.wakes[0] < time and (time < math.inf or self.waiting):
            time = self.wakes[0]
        return time

    def left(self) -> bool:
        """Whether a job waits, runs or is to come."""
        return bool(self.waiting or self.ending or self.next < self.count)

    def go_to(self, now: float) -> None:
        """All ends of this instant, then all submissions."""
        ending, untils, running = self.ending, self.untils, self.running
        while ending and ending[0][0] == now:
            ended = heappop(ending)[2]
            self.free.give_back(ended.resources)
            place = bisect_left(untils, ended.until)
            while running[place] is not ended:
                place += 1
            del untils[place], running[place]
            self.snapshot.ended.append(ended)
            self.held.ended(ended.job.number, self.next)
        for number in self.held.released():
            self.submitted[number] = now
            self._submit(number, now)
        while self.submit[self.next] == now and self.next < self.count:
            number = self.next
            self.next += 1
            if not self.held.waits(number):
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

    def news(self) -> bool:
        """Whether there is something to tell that was not told at the last call."""
        return bool(self.snapshot.submitted or self.snapshot.ended or (self.woken and self.left()))

    def call(self) -> list[Any]:
        """What the policy decides now."""
        snapshot = self.snapshot
        snapshot.free, self.asked, self.woken = self.free.count, self.now, False
        try:
            decided = self.decide(snapshot)
            found = [] if decided is None else list(decided)
        except (Exception, SystemExit) as error:
            raise PolicyError(self.name, f"at {self.now} s", f"{type(error).__name__}: {error}") from error
        snapshot.submitted, snapshot.ended = [], []
        return found

    def carry_out(self, decisions: Iterable[Any], now: float) -> None:
        """Do, at this time, what was decided at the last call. Raises PolicyError."""
        for decision in decisions:
            if isinstance(decision, Start):
                self._start(self._job(decision.job), decision.resources, now)
            elif isinstance(decision, Wake):
                self._wake(decision.time, now)
            elif isinstance(decision, Reject):
                job = self._job(decision.job)
                self.rejected[job.number] = True
                self._leave(job)
            else:
                raise self._wrong("", f"it decided {decision!r:.60}", "Start, Reject, Wake")

    def _start(self, job: Job, resources: Iterable[Interval] | None, now: float) -> None:
        number, size = job.number, job.size
        if resources is not None:
            given = self._these(job, resources)
        elif size <= self.free.count:
            given = self.free.take(size)
        else:
            raise self._wrong(job, f"it asks for {size:,} resources, and {self.free.count:,} are free")
        self._leave(job)
        until, finish = now + job.walltime, now + self.run[number]
        running = Running(job, now, until, given)
        self.start[number], self.finish[number], self.given[number] = now, finish, given
        self.order.append(number)
        heappush(self.ending, (finish, number, running))
        place = bisect_right(self.untils, until)
        self.untils.insert(place, until)
        self.running.insert(place, running)

    def _leave(self, job: Job) -> None:
        """It waits no more. A dictionary keeps the places of those that have left: all are laid anew at times."""
        del self.waiting[job.number]
        self.gone += 1
        if self.gone > len(self.waiting) + FEW:
            kept = [*self.waiting.items()]
            self.waiting.clear()
            self.waiting.update(kept)
            self.gone = 0

    def _these(self, job: Job, resources: Any) -> tuple[Interval, ...]:
        """The resources that the policy gives a job, taken."""
        allowed = f"pairs of first and last, of {job.size:,} in all, from 0 to {self.processors - 1:,}"
        try:
            wanted = [(index(first), index(last)) for first, last in resources]
        except Exception:
            raise self._wrong(job, f"its resources are {resources!r:.60}", allowed) from None
        for first, last in wanted:
            if not 0 <= first <= last < self.processors:
                raise self._wrong(job, f"its resources are said to be {first} to {last}", allowed)
        if isinstance(found := joined(wanted), int):
            raise self._wrong(job, f"resource {found} is there twice", allowed)
        many = sum(last - first + 1 for first, last in found)
        if many != job.size:
            raise self._wrong(job, f"it is given {many:,} resources", f"{job.size:,}, as it asks for")
        taken = self.free.take_these(found)
        if taken is not None:
            raise self._wrong(job, f"resource {taken} is not free")
        return tuple(found)

    def _wake(self, time: Any, now: float) -> None:
        if not isinstance(time, Real) or not self.asked < float(time) < math.inf:
            raise self._wrong("", f"it wants to be called at {time!r:.60}", f"a time later than {self.asked} s")
        if time <= now:
            self.woken = True
        else:
            heappush(self.wakes, float(time))

    def _job(self, job: Any) -> Job:
        """The same job, which waits. Raises PolicyError."""
        if not isinstance(job, Job):
            raise self._wrong("", f"it decided about {job!r:.60}", "a job of `waiting`")
        if self.waiting.get(job.number) is job:
            return job
        number = job.number
        if not isinstance(number, int) or not 0 <= number < self.count or number in self.waiting:
            why = "there is no such job; it is not one that was shown"
        elif number >= self.next or self.held.waits(number):
            why = "it is not submitted yet"
        elif self.rejected[number]:
            why = "it was rejected"
        else:
            why = "it runs already" if any(ran.job.number == number for ran in self.running) else "it has ended"
        raise self._wrong(job, why, "a job of `waiting`")

    def _wrong(self, job: Job | str, problem: str, allowed: str = "") -> PolicyError:
        whose = f"job {job.id}, " if isinstance(job, Job) else ""
        return PolicyError(self.name, f"{whose}at {self.now} s", problem, allowed)

    def outcome(self, instants: int) -> Outcome:
        """What became of the jobs. Raises PolicyError: some of them wait for ever."""
        if self.waiting:
            first = next(iter(self.waiting.values()))
            others = f" as {len(self.waiting) - 1:,} others" if len(self.waiting) > 1 else ""
            raise self._wrong(first, f"it waits for ever{others}: nothing runs, and no more jobs are submitted")
        counts = np.array([len(given) for given in self.given], np.int64)
        begins = np.zeros(len(counts), np.int64)
        begins[self.order] = np.cumsum([0, *counts[self.order]])[:-1]
        pieces = [interval for number in self.order for interval in self.given[number]]
        left = stranded(np.array(self.held.unmet, np.int64), self.count)
        rejected = np.array(self.rejected, bool) | left
        columns = self.submitted, np.array(self.start), np.array(self.finish), rejected, left
        return Outcome(*columns, np.array(pieces, PIECE), begins, counts, instants)


def name_of(policy: OwnPolicy) -> str:
    """How a policy is called: its module and its class."""
    return f"{type(policy).__module__}:{type(policy).__qualname__}"
