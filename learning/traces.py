"""Traces to learn from and to be judged by, and their shaken copies.

Rule: one schedule is an accident. A shaken copy has each submission moved by up to SHAKEN_S seconds, so that a search
or a verdict rests on the load and not on the order in which ten jobs of one second came. The same seed shakes alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..simulate.arrays import Array
from ..simulate.model.workload import Workload

#: By how much a submission is moved at most, seconds.
SHAKEN_S = 300.0


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace.

    Args:
        name: for people.
        digest: SHA-256 of its file.
        jobs: its jobs, with finite walltimes and no dependencies.
        processors: resources of its machine.
        counts: whether each job counts in verdicts; None: all do. The others come before, and make the queue.
    """

    name: str
    digest: str
    jobs: Workload
    processors: int
    counts: Array | None = None

    def half(self, second: bool) -> Trace:
        """Return the first half of its jobs; or the second half, which begins with the queue that the first leaves."""
        is_late = np.arange(len(self.jobs)) >= len(self.jobs) // 2
        if second:
            return replace(self, name=f"{self.name}, second half", counts=is_late)
        return replace(self, name=f"{self.name}, first half", jobs=self.jobs.take(~is_late))

    def windows(self, count: int) -> tuple[Trace, ...]:
        """Return the trace cut into this many parts of as many jobs."""
        if count == 1:
            return (self,)
        part = np.arange(len(self.jobs)) * count // max(len(self.jobs), 1)
        if self.counts is not None:
            part = np.where(self.counts, part, -1)
        return tuple(replace(self, jobs=self.jobs.take(part == number), counts=None) for number in range(count))

    def shaken(self, seed: int) -> Trace:
        """Return a shaken copy; `seed`: of the copy. O(jobs log jobs)."""
        moved = self.jobs.submit_time + np.random.default_rng(seed).uniform(0.0, SHAKEN_S, len(self.jobs))
        order: Array = np.argsort(moved, kind="stable")
        jobs = replace(self.jobs.take(order), submit_time=moved[order])
        return replace(self, jobs=jobs, counts=None if self.counts is None else self.counts[order])
