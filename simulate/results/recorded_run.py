"""A finished run of a workload: its jobs with their times and resources, and what is known of machines and energy.

Rule: times are seconds on the trace's clock; what is not known is None, and nan in a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: How jobs ended: as they should, by their walltime, otherwise before their time; or they never began.
DONE, WALLTIME, KILLED, REJECTED = range(4)
#: States of a machine, as the columns of `MachineStates.counts`.
STATES = ("sleeping", "switching_on", "switching_off", "idle", "computing")


@dataclass(frozen=True, slots=True)
class Jobs:
    """One row a job, in any order.

    Args:
        id: texts.
        submit, start, finish: seconds; the last two nan where it never began.
        size: resources it asked for.
        ending: DONE, WALLTIME, KILLED or REJECTED.
        pieces: first and last resource of each run of resources, one row a run, for all jobs.
        owner: the row of the job that a piece belongs to.
    """

    id: Array
    submit: Array
    start: Array
    finish: Array
    size: Array
    ending: Array
    pieces: Array
    owner: Array

    def __len__(self) -> int:
        return len(self.id)

    @property
    def ran(self) -> Array:
        """Which of them ever began."""
        began: Array = self.ending != REJECTED
        return began

    @property
    def held(self) -> Array:
        """Resources that each had."""
        wide = self.pieces[:, 1] - self.pieces[:, 0] + 1
        held: Array = np.bincount(self.owner, wide, len(self)).astype(np.int64)
        return held

    def take(self, chosen: Array) -> Jobs:
        """These only (a mask)."""
        rows = np.cumsum(chosen) - 1
        kept = chosen[self.owner]
        columns = {name: getattr(self, name)[chosen] for name in ("id", "submit", "start", "finish", "size", "ending")}
        return Jobs(**columns, pieces=self.pieces[kept], owner=rows[self.owner[kept]])


@dataclass(frozen=True, slots=True)
class MachineStates:
    """How many machines are in each state: `counts[i]` from `time[i]` until `time[i + 1]`; times do not descend."""

    time: Array
    counts: Array


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules consumed until each time, growing evenly between two; times do not descend."""

    time: Array
    joules: Array


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a workload.

    Args:
        workload, policy: their names; "" = not said.
        machine: resources; at least those that were used.
        sure: the size of the machine was said, and not guessed from what was used.
        joules: consumed in all.
    """

    workload: str
    policy: str
    machine: int
    sure: bool
    jobs: Jobs
    states: MachineStates | None = None
    energy: Energy | None = None
    joules: float | None = None

    def within(self, begin: float, end: float) -> Run:
        """Only with the jobs that were submitted from `begin` on and before `end`."""
        submit = self.jobs.submit
        return replace(self, jobs=self.jobs.take((submit >= begin) & (submit < end)))


def span(runs: Sequence[Run]) -> tuple[float, float]:
    """From the first submission to the last end or submission, of all runs; a second where nothing takes time."""
    submits = np.concatenate([run.jobs.submit for run in runs])
    finishes = np.concatenate([run.jobs.finish[run.jobs.ran] for run in runs])
    if not len(submits):
        return 0.0, 1.0
    begin, end = float(submits.min()), float(max(submits.max(), finishes.max(initial=-np.inf)))
    return begin, end if end > begin else begin + 1.0
