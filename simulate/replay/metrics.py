"""Summary metrics of a replay.

Rule: rejected jobs count only as rejected; means over no jobs are None. Times are seconds.
Definitions: waiting = start - submit, turnaround = finish - submit, slowdown = turnaround / run time, bounded slowdown
= max(1, turnaround / max(run time, TAU_S)) (Feitelson and Rudolph 1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..model.machine import MixedPowers, Powers
from ..model.objective import TAU_S as TAU_S
from ..world.replay_result import Replayed
from .energy import consumed, switches


@dataclass(frozen=True, slots=True)
class Summary:
    """The metrics of one replay; times in seconds.

    Args:
        makespan: when the last job ends, on the trace's clock.
        median_..., p95_..., p99_...: percentiles; linear interpolation between the two nearest jobs.
        utilisation: of the resources, from the first submission to the last end, [0, 1].
        consumed_joules: None if the power of the machine is not known.
        simulation_time: seconds in the engine alone.
        ..._stretch: run time as a factor on that in the workload, of jobs that ended by themselves after 1 s or more.
        model_share: of the decisions of a learned policy, those that its model took and not its baseline, [0, 1];
            None for another policy.
    """

    nb_jobs: int
    nb_jobs_finished: int
    nb_jobs_success: int
    nb_jobs_killed: int
    nb_jobs_rejected: int
    makespan: float | None
    mean_waiting_time: float | None
    median_waiting_time: float | None
    p95_waiting_time: float | None
    p99_waiting_time: float | None
    max_waiting_time: float | None
    mean_turnaround_time: float | None
    max_turnaround_time: float | None
    mean_slowdown: float | None
    max_slowdown: float | None
    mean_bounded_slowdown: float | None
    median_bounded_slowdown: float | None
    p95_bounded_slowdown: float | None
    p99_bounded_slowdown: float | None
    utilisation: float | None
    consumed_joules: float | None
    nb_machine_switches: int
    nb_computing_machines: int
    simulation_time: float
    mean_stretch: float | None = None
    p95_stretch: float | None = None
    model_share: float | None = None


def failed(replayed: Replayed) -> Array:
    """Return which jobs ended by themselves but returned an error, if the workload has return codes."""
    jobs = replayed.workload
    wrong: Array = jobs.more.get("returns", np.zeros(len(jobs), np.int64)) != 0
    wrong = wrong & ~replayed.overran & ~replayed.rejected
    return wrong if replayed.killed is None else wrong & ~replayed.killed


def summarise(replayed: Replayed, powers: Powers | MixedPowers | None = None) -> Summary:
    """Return the metrics of a replay. O(jobs).

    Args:
        replayed: the replay.
        powers: power of the resources; None if not known.
    """
    jobs, ran = replayed.workload, ~replayed.rejected
    submit, start, finish = replayed.submit_time[ran], replayed.start_time[ran], replayed.finish_time[ran]
    size, killed = (
        replayed.sizes[ran],
        replayed.overran if replayed.killed is None else replayed.overran | replayed.killed,
    )
    ended = int(killed.sum())
    waiting, turnaround, run = start - submit, finish - submit, finish - start
    slow = turnaround[run > 0] / run[run > 0]
    bounded = np.maximum(1.0, turnaround / np.maximum(run, TAU_S))
    count = len(submit)
    span = float(finish.max() - submit.min()) if count else 0.0
    joules = consumed(replayed, powers) if powers else None
    contended: Any = replayed
    if replayed.contends:
        joules = contended.joules
    return Summary(
        nb_jobs=len(jobs),
        nb_jobs_finished=count,
        nb_jobs_success=count - ended - int(failed(replayed).sum()),
        nb_jobs_killed=ended,
        nb_jobs_rejected=len(jobs) - count,
        makespan=_largest(finish),
        mean_waiting_time=_mean(waiting),
        **_percentiles("waiting_time", waiting),
        max_waiting_time=_largest(waiting),
        mean_turnaround_time=_mean(turnaround),
        max_turnaround_time=_largest(turnaround),
        mean_slowdown=_mean(slow),
        max_slowdown=_largest(slow),
        mean_bounded_slowdown=_mean(bounded),
        **_percentiles("bounded_slowdown", bounded),
        utilisation=float((run * size).sum()) / (span * replayed.machine) if span > 0 else None,
        consumed_joules=joules,
        nb_machine_switches=switches(replayed),
        nb_computing_machines=replayed.machine,
        simulation_time=replayed.simulation_time,
        **_stretch(replayed),
        model_share=None if replayed.model_use is None else replayed.model_use.share,
    )


def _stretch(replayed: Replayed) -> dict[str, float | None]:
    """Return by how much jobs were slowed down. O(jobs)."""
    alone = replayed.workload.run_time
    counted = ~replayed.rejected & ~replayed.overran & (alone >= 1.0)
    factors = (replayed.finish_time - replayed.start_time)[counted] / alone[counted]
    return {
        "mean_stretch": _mean(factors),
        "p95_stretch": _quantiles(factors, [0.95])[0] if len(factors) else None,
    }


def _percentiles(name: str, values: Array) -> dict[str, float | None]:
    """Return the percentiles 50, 95 and 99 of some jobs' numbers, None over no jobs. O(jobs)."""
    keys = [f"{part}_{name}" for part in ("median", "p95", "p99")]
    percentiles = _quantiles(values, [0.5, 0.95, 0.99]) if len(values) else [None] * 3
    return dict(zip(keys, percentiles, strict=True))


def _quantiles(values: Array, shares: list[float]) -> list[float]:
    """Return quantiles of one or more values, as numpy.quantile, which imports much to do so. O(values)."""
    places = np.array(shares) * (len(values) - 1)
    low = places.astype(np.int64)
    high = np.minimum(low + 1, len(values) - 1)
    ordered, share = np.partition(values, [*low, *high]), places - low
    below, above = ordered[low], ordered[high]
    step = above - below
    quantiles: list[float] = np.where(share < 0.5, below + step * share, above - step * (1.0 - share)).tolist()
    return quantiles


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


def _largest(values: Array) -> float | None:
    return float(values.max()) if len(values) else None
