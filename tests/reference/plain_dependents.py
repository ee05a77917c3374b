"""Reference of submissions with dependencies, in plain Python: at the submit time, or when the last of them is met.

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
        self.next, self.held = 0, list[int]()
        self.ending, self.ends = list[tuple[int, bool]](), dict[int, tuple[float, bool]]()
        #: Of each job: the jobs before it, the delays, and whether it does not matter how they end.
        self.before: list[list[tuple[int, float, bool]]] = [[] for _ in self.submit]
        if (given := jobs.dependencies) is not None:
            columns = (given.before.tolist(), given.after.tolist(), given.delays.tolist(), given.at_any_end.tolist())
            for before, after, delay, any_end in zip(*columns, strict=True):
                self.before[after].append((before, delay, any_end))

    def __bool__(self) -> bool:
        return self.time < math.inf

    @property
    def time(self) -> float:
        """Return the next submit time in the workload, or the next end of a delay."""
        coming = self.submit[self.next] if self.next < len(self.submit) else math.inf
        return min([coming, *(time for i in self.held if (time := self.met(i)) < math.inf)])

    def ended(self, i: int, well: bool) -> None:
        """Record the end of a job, successful or not, at the time of the next call of `now`."""
        self.ending.append((i, well))

    def met(self, i: int) -> float:
        """Return when the dependencies of a job are met; infinite if that is not known yet."""
        times = [0.0]
        for before, delay, any_end in self.before[i]:
            end, well = self.ends.get(before, (math.inf, False))
            times.append(end + delay if well or any_end else math.inf)
        return max(times)

    def now(self, now: float) -> list[int]:
        """Return the jobs that are submitted now: those that were held, in the order of rows, then the others."""
        self.ends |= {i: (now, well) for i, well in self.ending}
        self.ending.clear()
        came = sorted(i for i in self.held if self.met(i) <= now)
        for i in came:
            self.submit[i] = now
            self.held.remove(i)
        while self.next < len(self.submit) and self.submit[self.next] == now:
            (came if self.met(self.next) <= now else self.held).append(self.next)
            self.next += 1
        for i in came:
            self.turn[i] = len(self.turn)
        return came
