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
    """

    name: str
    digest: str
    jobs: Workload
    processors: int

    def half(self, second: bool) -> Trace:
        """Return the first or the second half of its jobs."""
        middle = len(self.jobs) // 2
        rows = np.arange(len(self.jobs))
        jobs = self.jobs.take(rows >= middle if second else rows < middle)
        return replace(self, name=f"{self.name}, {'second' if second else 'first'} half", jobs=jobs)

    def windows(self, count: int) -> tuple[Trace, ...]:
        """Return the trace cut into this many parts of as many jobs."""
        if count == 1:
            return (self,)
        part = np.arange(len(self.jobs)) * count // max(len(self.jobs), 1)
        return tuple(replace(self, jobs=self.jobs.take(part == number)) for number in range(count))

    def shaken(self, seed: int) -> Trace:
        """Return a shaken copy."""
        return replace(self, jobs=shaken(self.jobs, seed))


def shaken(jobs: Workload, seed: int) -> Workload:
    """Return a shaken copy of a trace's jobs. O(jobs log jobs).

    Args:
        jobs: the jobs.
        seed: of the copy.
    """
    moved = jobs.submit_time + np.random.default_rng(seed).uniform(0.0, SHAKEN_S, len(jobs))
    order: Array = np.argsort(moved, kind="stable")
    return replace(jobs.take(order), submit_time=moved[order])
