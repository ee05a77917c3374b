"""What a replay amounts to, in the field's numbers.

Rule: jobs that were rejected count as such and in nothing else; means over no jobs are None. Times are seconds.
Definitions: DESIGN of the field: waiting = start - submit, turnaround = finish - submit, slowdown = turnaround / run
time, bounded slowdown = max(1, turnaround / max(run time, TAU_S)) (Feitelson and Rudolph 1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .contended import Contended
from .energy import consumed, switches
from .powers import Mixed, Powers
from .replay import Replayed

Array = npt.NDArray[Any]
#: Bound of the bounded slowdown, seconds.
TAU_S = 10.0


@dataclass(frozen=True, slots=True)
class Summary:
    """One row of numbers.

    Args:
        makespan: when the last job ends, on the trace's clock.
        utilisation: of the resources, from the first submission to the last end, [0, 1].
        consumed_joules: None where the power of a machine is not known.
        simulation_time: seconds in the engine alone.
    """

    nb_jobs: int
    nb_jobs_finished: int
    nb_jobs_success: int
    nb_jobs_killed: int
    nb_jobs_rejected: int
    makespan: float | None
    mean_waiting_time: float | None
    max_waiting_time: float | None
    mean_turnaround_time: float | None
    max_turnaround_time: float | None
    mean_slowdown: float | None
    max_slowdown: float | None
    mean_bounded_slowdown: float | None
    utilisation: float | None
    consumed_joules: float | None
    nb_machine_switches: int
    nb_computing_machines: int
    simulation_time: float


def failed(replayed: Replayed) -> Array:
    """Which jobs ended by themselves, and returned something else than success, where the workload says so."""
    jobs = replayed.workload
    wrong: Array = jobs.more.get("returns", np.zeros(len(jobs), np.int64)) != 0
    return wrong & ~replayed.overran & ~replayed.rejected


def summarise(replayed: Replayed, powers: Powers | Mixed | None = None) -> Summary:
    """The numbers of one replay. O(jobs).

    Args:
        powers: of the resources, where they are known.
    """
    jobs, ran = replayed.workload, ~replayed.rejected
    submit, start, finish = replayed.submit_time[ran], replayed.start_time[ran], replayed.finish_time[ran]
    size, ended = jobs.size[ran], int(replayed.overran.sum())
    waiting, turnaround, run = start - submit, finish - submit, finish - start
    slow = turnaround[run > 0] / run[run > 0]
    bounded = np.maximum(1.0, turnaround / np.maximum(run, TAU_S))
    count = len(submit)
    span = float(finish.max() - submit.min()) if count else 0.0
    return Summary(
        nb_jobs=len(jobs),
        nb_jobs_finished=count,
        nb_jobs_success=count - ended - int(failed(replayed).sum()),
        nb_jobs_killed=ended,
        nb_jobs_rejected=len(jobs) - count,
        makespan=_largest(finish),
        mean_waiting_time=_mean(waiting),
        max_waiting_time=_largest(waiting),
        mean_turnaround_time=_mean(turnaround),
        max_turnaround_time=_largest(turnaround),
        mean_slowdown=_mean(slow),
        max_slowdown=_largest(slow),
        mean_bounded_slowdown=_mean(bounded),
        utilisation=float((run * size).sum()) / (span * replayed.machine) if span > 0 else None,
        consumed_joules=_joules(replayed, powers),
        nb_machine_switches=switches(replayed),
        nb_computing_machines=replayed.machine,
        simulation_time=replayed.simulation_time,
    )


def _joules(replayed: Replayed, powers: Powers | Mixed | None) -> float | None:
    if isinstance(replayed, Contended):
        return replayed.joules
    return consumed(replayed, powers) if powers else None


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


def _largest(values: Array) -> float | None:
    return float(values.max()) if len(values) else None
