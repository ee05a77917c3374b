"""Traces to learn from and to be judged by, and their copies.

Rule: one schedule is an accident. A shaken copy has each submission moved by up to SHAKEN_S seconds, so that a verdict
rests on the load and not on the order in which ten jobs of one second came. The users of some days are an accident,
too: a redrawn copy has other users, drawn from those of the trace with replacement, under a like load, so that a search
does not learn who happened to be there. The same seed gives the same copy.
Source of the drawing: B. Efron, R. Tibshirani, "An Introduction to the Bootstrap" (1993), section 8.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..simulate.arrays import Array
from ..simulate.model.workload import Workload
from ..simulate.queue_policies.learned_order import UNKNOWN_USER

#: By how much a submission is moved at most, seconds; and that of a job which a copy has again.
SHAKEN_S, AGAIN_S = 300.0, 3600.0
#: How much of the trace's load a redrawn copy has.
LOADS = 0.9, 1.1
#: Fewer users are not drawn: each job is, by itself.
LEAST_USERS = 10
_LEAST_WORK = 1e-9


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
        """Return the trace cut into this many parts of as many jobs; those that do not count are in none."""
        if count == 1:
            return (self,)
        chosen = np.ones(len(self.jobs), bool) if self.counts is None else self.counts
        part = np.where(chosen, (np.cumsum(chosen) - 1) * count // max(chosen.sum(), 1), -1)
        return tuple(replace(self, jobs=self.jobs.take(part == number), counts=None) for number in range(count))

    def shaken(self, seed: int) -> Trace:
        """Return a shaken copy; `seed`: of the copy. O(jobs log jobs)."""
        moved = self.jobs.submit_time + np.random.default_rng(seed).uniform(0.0, SHAKEN_S, len(self.jobs))
        return self._copy(np.arange(len(moved)), moved)

    def redrawn(self, seed: int) -> Trace:
        """Return a redrawn copy, in which a job can occur several times; `seed`: of the copy. O(jobs log jobs)."""
        random, jobs = np.random.default_rng(seed), self.jobs
        group = _groups(jobs)
        number = group.max() + 1
        rows = np.repeat(np.arange(len(jobs)), np.bincount(random.integers(0, number, number), minlength=number)[group])
        if self.counts is not None and not self.counts[rows].any():
            return self.shaken(seed)
        work = jobs.size * np.minimum(jobs.run_time, jobs.walltime)
        slower = work[rows].sum() / max(work.sum(), _LEAST_WORK) / random.uniform(*LOADS)
        again = np.diff(rows, prepend=-1) == 0
        since_first = jobs.submit_time[rows] - jobs.submit_time.min() + again * random.uniform(0.0, AGAIN_S, len(rows))
        moved = jobs.submit_time.min() + since_first * slower + random.uniform(0.0, SHAKEN_S, len(rows))
        return self._copy(rows, moved)

    def _copy(self, rows: Array, submit_time: Array) -> Trace:
        """Return the trace with these jobs, in the order of their submissions."""
        order: Array = np.argsort(submit_time, kind="stable")
        jobs = replace(self.jobs.take(rows[order]), submit_time=submit_time[order])
        return replace(self, jobs=jobs, counts=None if self.counts is None else self.counts[rows[order]])


def _groups(jobs: Workload) -> Array:
    """Return what is drawn together: the number of each job's user, or its own [jobs]."""
    own_numbers: Array = np.arange(len(jobs))
    users = jobs.more.get("user")
    if users is None or len(np.unique(users[users != UNKNOWN_USER])) < LEAST_USERS:
        return own_numbers
    groups: Array = np.unique(np.where(users == UNKNOWN_USER, -2 - own_numbers, users), return_inverse=True)[1]
    return groups
