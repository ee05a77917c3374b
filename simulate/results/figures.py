"""Metrics of a recorded run, for comparing policies.

Rule: definitions as in `replay.metrics`. Jobs that never started are ignored; metrics over no jobs are None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..model.objective import TAU_S
from .recorded_run import RecordedRun
from .timeseries import busy, joules_at


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Metrics of one run; None if not known."""

    #: Seconds; the makespan on the trace's clock.
    mean_waiting: float | None
    mean_bounded_slowdown: float | None
    utilisation: float | None  # share of resource time used in the time window, [0, 1]
    joules: float | None  # energy consumed in the time window
    makespan: float | None


def figures(run: RecordedRun, window: tuple[float, float] | None = None) -> RunMetrics:
    """Return the metrics of a run.

    Args:
        run: the run.
        window: (begin, end) in seconds: only jobs submitted in [begin, end).
    """
    jobs = run.within(*window).jobs if window else run.jobs
    ran = jobs.ran
    submit, start, finish = jobs.submit[ran], jobs.start[ran], jobs.finish[ran]
    bounded = np.maximum(1.0, (finish - submit) / np.maximum(finish - start, TAU_S))
    return RunMetrics(
        mean_waiting=_of(np.mean, start - submit),
        mean_bounded_slowdown=_of(np.mean, bounded),
        utilisation=_utilisation(run, window or (_of(np.min, submit), _of(np.max, finish))),
        joules=run.joules if window is None and run.joules is not None else _joules(run, window),
        makespan=_of(np.max, finish),
    )


def _utilisation(run: RecordedRun, window: tuple[float | None, float | None]) -> float | None:
    begin, end = window
    if begin is None or end is None or end <= begin:
        return None
    return float(busy(run.jobs).mean_over(np.array([begin, end]))[0]) / run.machine


def _joules(run: RecordedRun, window: tuple[float, float] | None) -> float | None:
    if run.energy is None or not len(run.energy.time):
        return None
    first, last = run.energy.time[0], run.energy.time[-1]
    begin, end = np.clip(window or (first, last), first, last)
    return float(np.diff(joules_at(run.energy, np.array([begin, end])))[0]) if end > begin else None


def _of(statistic: Any, values: Array) -> float | None:
    return float(statistic(values)) if len(values) else None


def distribution(values: Array, points: int = 512) -> tuple[Array, Array]:
    """Return the empirical distribution: ascending values, and the share of values that are at most each. O(n log n).

    Args:
        values: the sample.
        points: most values to return; the least and the greatest are always included.
    """
    ordered, total = np.sort(values), len(values)
    at = np.unique(np.linspace(0, total - 1, min(total, points)).round().astype(np.int64))
    return ordered[at], np.searchsorted(ordered, ordered[at], "right") / max(total, 1)
