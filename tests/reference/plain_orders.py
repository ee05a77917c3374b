"""Environment C as plain Python: every list is made at each question, and each time is looked for in all jobs.

Rule: each job runs for some time, and a user has at most three jobs, so that it does not matter in which order jobs of
one instant end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pilotfish.simulate.arrays import Array

#: Submission, run time, limit (seconds), processors.
Job = tuple[float, float, float, int]
MOST, NO = 1.0 - 1e-5, 1e-5
KEYS = {
    "fcfs": lambda job: 0.0, "sjf": lambda job: job[2], "smallest": lambda job: job[3], "largest": lambda job: -job[3],
}  # fmt: skip
PAUSE_S, PATIENCE_S, LONGEST_S, TAU_S = 600.0, 43_200.0, 90 * 86_400.0, 10.0


class PlainOrders:
    """One episode.

    Args:
        jobs: in the order of submission.
        users: of each job; -1: not known.
        processors: of the machine.
        decides, queue, objective, rows, warm: see `OrderOptions`.
    """

    def __init__(
        self, jobs: Sequence[Job], users: Sequence[int], processors: int, decides: str, queue: str, objective: str,
        rows: int, warm: int = 0,
    ) -> None:  # fmt: skip
        self.jobs, self.users, self.processors, self.rows, self.warm = jobs, users, processors, rows, warm
        self.decides, self.objective, self.key = decides, objective, KEYS[queue]
        self.time, self.start, self.reward = -math.inf, dict[int, float](), 0.0
        self.head: int | None = None
        self.asked: int | None = None
        self.promise, self.waited = dict[int, float](), dict[int, float]()
        self.wake, self.held = math.inf, -1
        self.over = not self._next_decision(in_pass=False)

    def end(self, job: int) -> float:
        return self.start[job] + self.jobs[job][1]

    def latest_end(self, job: int) -> float:
        return self.start[job] + self.jobs[job][2]

    def running(self) -> list[int]:
        return [job for job in self.start if self.end(job) > self.time]

    def waiting(self) -> list[int]:
        return [i for i, job in enumerate(self.jobs) if job[0] <= self.time and i not in self.start]

    def free(self) -> int:
        return self.processors - sum(self.jobs[job][3] for job in self.running())

    def reservation(self) -> tuple[float, int]:
        """When the head can start if all run to their limits, and the processors that it leaves then.

        Jobs that started behind it in this pass count, so its time stands and what it leaves shrinks.
        """
        assert self.head is not None
        size, ends = self.jobs[self.head][3], sorted({self.latest_end(job) for job in self.running()})
        for time in ends:
            busy = sum(self.jobs[job][3] for job in self.running() if self.latest_end(job) > time)
            if self.processors - busy >= size:
                return time, self.processors - busy - size
        raise AssertionError("the head never fits")

    def may_start(self, job: int) -> bool:
        _, _, limit, size = self.jobs[job]
        if size > self.free() or job == self.head:
            return False
        if self.head is None:
            return True
        time, spare = self.reservation()
        return self.time + limit <= time or size <= spare

    def shown(self) -> list[int]:
        if self.asked is not None:
            return [self.asked]
        jobs = self.waiting()
        if self.decides == "fill":
            jobs = [job for job in jobs if self.may_start(job)]
        return jobs[: self.rows]

    def allowed(self) -> list[bool]:
        jobs = [] if self.over else self.shown()
        any_job = self.decides == "order" and self.head is None
        mask = [any_job or self.may_start(job) for job in jobs]
        return [*mask, *[False] * (self.rows - len(mask)), self.asked is not None]

    def step(self, action: int) -> float:
        waits = action == self.rows
        job, self.asked = self.shown()[0 if waits else action], None
        if waits:
            self.wake, self.held = self.time + PAUSE_S, job
        else:
            self._try(job)
        self.over = not self._next_decision(in_pass=not waits)
        reward, self.reward = self.reward, 0.0
        return reward

    def _try(self, job: int) -> None:
        if self.head is None and self.jobs[job][3] > self.free():
            self.head = job
            self.promise[job] = min(self.promise.get(job, math.inf), self.reservation()[0])
            return
        submit, run, _, _ = self.jobs[job]
        self.start[job] = self.time
        wait = self.time - submit
        cost = wait if self.objective == "wait" else max((wait + run) / max(run, TAU_S), 1.0)
        if job >= self.warm:
            self.reward -= cost / (len(self.jobs) - self.warm)

    def _next_decision(self, in_pass: bool) -> bool:
        while True:
            if in_pass and self._is_due():
                return True
            self.head = None
            if len(self.start) == len(self.jobs):
                return False
            times = [job[0] for job in self.jobs if job[0] > self.time]
            times += [self.end(job) for job in self.running()]
            if self.held >= 0:
                now = min([*times, self.wake])
                self.waited[self.held] = self.waited.get(self.held, 0.0) + now - self.time
                times.append(self.wake)
            self.time, self.held, in_pass = min(times), -1, True

    def _is_due(self) -> bool:
        while self.head is None:
            jobs = self.waiting()
            if self.decides == "order":
                return any(self.may_start(job) for job in self.shown())
            if not jobs:
                return False
            first = min(jobs, key=lambda job: self.key(self.jobs[job]))
            if self.decides == "inspect" and self.may_start(first) and self._may_wait(first):
                self.asked = first
                return True
            self._try(first)
        if self.decides != "inspect":
            return any(self.may_start(job) for job in self.shown())
        while candidates := [job for job in self.waiting() if self.may_start(job)]:
            self._try(min(candidates, key=lambda job: self.key(self.jobs[job])))
        return False

    def _may_wait(self, job: int) -> bool:
        in_time = self.time + PAUSE_S <= self.promise.get(job, math.inf)
        return in_time and self.waited.get(job, 0.0) + PAUSE_S <= PATIENCE_S

    def expected(self, job: int) -> float:
        """The mean of the run times of the user's last two jobs that had ended when it came, at most its limit."""
        submit, _, limit, _ = self.jobs[job]
        user = self.users[job]
        ended = [one for one in self.start if self.users[one] == user >= 0 and self.end(one) <= submit]
        last = sorted(ended, key=self.end)[-2:]
        return min(float(np.mean([self.jobs[one][1] for one in last])), limit) if last else limit

    def seen_jobs(self) -> Array:
        rows = np.zeros((self.rows, 6))
        for row, job in zip(rows, [] if self.over else self.shown(), strict=False):
            submit, _, limit, size = self.jobs[job]
            row[:4] = (
                seen(self.time - submit), seen(limit), seen(self.expected(job)), min(size / self.processors, MOST),
            )  # fmt: skip
            row[4:] = MOST if size <= self.free() else NO, MOST if self.may_start(job) else NO
        return rows

    def seen_machine(self) -> Array:
        row = np.zeros(6)
        row[0] = min(self.free() / self.processors, MOST)
        row[1], row[2] = min(math.log1p(len(self.waiting())) / math.log1p(1000.0), MOST), NO
        if self.head is not None:
            time, spare = self.reservation()
            row[2:5] = MOST, seen(time - self.time), min(max(spare, 0) / self.processors, MOST)
        if self.asked is not None:
            row[5] = min(self.waited.get(self.asked, 0.0) / PATIENCE_S, MOST)
        return row


def seen(seconds: float) -> float:
    """How a time is seen."""
    return min(math.log1p(seconds) / math.log1p(LONGEST_S), MOST)
