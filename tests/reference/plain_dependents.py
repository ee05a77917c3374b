"""Reference of submissions with dependencies, in plain Python: at the submit time, or at the last dependency's end.

Rule: all blocked jobs are examined at each instant.
"""

from __future__ import annotations

import math

from pilotfish.simulate.model.workload import Workload


class Upcoming:
    """Jobs before their submission; `submit`: time of submission, `turn`: position in the order of submissions."""

    def __init__(self, jobs: Workload) -> None:
        self.submit: list[float] = jobs.submit_time.tolist()
        self.turn: dict[int, int] = {}
        self.next, self.well, self.held = 0, set[int](), list[int]()
        self.before: list[set[int]] = [set() for _ in self.submit]
        if jobs.dependencies is not None:
            for before, after in zip(jobs.dependencies.before, jobs.dependencies.after, strict=True):
                self.before[after].add(int(before))

    def __bool__(self) -> bool:
        return self.next < len(self.submit)

    @property
    def time(self) -> float:
        """Return the next submit time in the workload."""
        return self.submit[self.next] if self else math.inf

    def ended(self, i: int, well: bool) -> None:
        """Record the end of a job, successful or not."""
        if well:
            self.well.add(i)

    def now(self, now: float) -> list[int]:
        """Return the jobs that are submitted now, in the order of rows."""
        came = [i for i in self.held if self.before[i] <= self.well]
        for i in came:
            self.submit[i] = now
            self.held.remove(i)
        while self and self.submit[self.next] == now:
            (came if self.before[self.next] <= self.well else self.held).append(self.next)
            self.next += 1
        for i in came:
            self.turn[i] = len(self.turn)
        return came
