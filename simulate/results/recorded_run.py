"""A finished run of a workload: its jobs with times and resources, and the states and energy of its machine.

Rule: times are seconds on the trace's clock; unknown values are None, or nan in a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array

#: How jobs ended: normally, at their walltime, killed otherwise; or rejected, so they never started.
DONE, WALLTIME, KILLED, REJECTED = range(4)
#: States of a machine, as the columns of `MachineStates.counts`.
STATES = ("sleeping", "switching_on", "switching_off", "idle", "computing")


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs, one row each, in any order."""

    id: Array  # ids as text
    #: Seconds; start and finish are nan for jobs that never started.
    submit: Array
    start: Array
    finish: Array
    size: Array  # requested resources
    ending: Array  # DONE, WALLTIME, KILLED or REJECTED
    pieces: Array  # [pieces, 2], first and last resource of each interval, for all jobs
    owner: Array  # [pieces], row of the job of each interval

    def __len__(self) -> int:
        return len(self.id)

    @property
    def ran(self) -> Array:
        """Mask of the jobs that started."""
        return np.asarray(self.ending != REJECTED)

    @property
    def held(self) -> Array:
        """Number of resources that each job had."""
        wide = self.pieces[:, 1] - self.pieces[:, 0] + 1
        return np.asarray(np.bincount(self.owner, wide, len(self)), np.int64)

    def take(self, chosen: Array) -> Jobs:
        """Return only the jobs in a mask."""
        rows = np.cumsum(chosen) - 1
        piece_mask = chosen[self.owner]
        columns = {name: getattr(self, name)[chosen] for name in ("id", "submit", "start", "finish", "size", "ending")}
        return Jobs(**columns, pieces=self.pieces[piece_mask], owner=rows[self.owner[piece_mask]])


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Number of machines in each state: `counts[i]` from `time[i]` to `time[i + 1]`; times do not descend."""

    time: Array
    counts: Array


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules consumed until each time, linear in between; times do not descend."""

    time: Array
    joules: Array


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A finished run of a workload."""

    #: Names; "" if not known.
    workload: str
    policy: str
    machine: int  # number of resources, at least those used
    sure: bool  # the size of the machine is known, not derived from the resources used
    jobs: Jobs  # the jobs
    states: StateCounts | None = None  # states of the machine over time; None if not known
    energy: Energy | None = None  # energy over time; None if not known
    joules: float | None = None  # energy of the whole run; None if not known
    epoch: float | None = None  # Unix time of second 0 of the trace; None if not known

    def within(self, begin: float, end: float) -> RecordedRun:
        """Return the run with only the jobs submitted in [begin, end), seconds."""
        submit = self.jobs.submit
        return replace(self, jobs=self.jobs.take((submit >= begin) & (submit < end)))


def span(runs: Sequence[RecordedRun]) -> tuple[float, float]:
    """Return the first submission and the last end or submission of all runs; at least one second apart if equal."""
    submits = np.concatenate([run.jobs.submit for run in runs])
    finishes = np.concatenate([run.jobs.finish[run.jobs.ran] for run in runs])
    if not len(submits):
        return 0.0, 1.0
    begin, end = float(submits.min()), float(max(submits.max(), finishes.max(initial=-np.inf)))
    return begin, end if end > begin else begin + 1.0
