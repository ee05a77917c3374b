"""What a run amounts to: the numbers by which policies are compared.

Rule: as `batch.metrics` defines them, from what was written of a run. Jobs that never began count in none; no jobs,
no number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..batch.metrics import TAU_S
from .power import joules_at
from .run import Run
from .steps import busy

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Figures:
    """One run's numbers; None = not known.

    Args:
        mean_waiting, makespan: seconds; the latter on the trace's clock.
        utilisation: of the machine's resources in the time looked at, [0, 1].
        joules: consumed in the time looked at.
    """

    mean_waiting: float | None
    mean_bounded_slowdown: float | None
    utilisation: float | None
    joules: float | None
    makespan: float | None


def figures(run: Run, window: tuple[float, float] | None = None) -> Figures:
    """The numbers of a run; or of the jobs submitted in a window, from its begin on and before its end."""
    jobs = run.within(*window).jobs if window else run.jobs
    ran = jobs.ran
    submit, start, finish = jobs.submit[ran], jobs.start[ran], jobs.finish[ran]
    bounded = np.maximum(1.0, (finish - submit) / np.maximum(finish - start, TAU_S))
    return Figures(
        mean_waiting=_of(np.mean, start - submit),
        mean_bounded_slowdown=_of(np.mean, bounded),
        utilisation=_utilisation(run, window or (_of(np.min, submit), _of(np.max, finish))),
        joules=run.joules if window is None and run.joules is not None else _joules(run, window),
        makespan=_of(np.max, finish),
    )


def _utilisation(run: Run, window: tuple[float | None, float | None]) -> float | None:
    begin, end = window
    if begin is None or end is None or end <= begin:
        return None
    return float(busy(run.jobs).mean_over(np.array([begin, end]))[0]) / run.machine


def _joules(run: Run, window: tuple[float, float] | None) -> float | None:
    if run.energy is None or not len(run.energy.time):
        return None
    first, last = run.energy.time[0], run.energy.time[-1]
    begin, end = np.clip(window or (first, last), first, last)
    return float(np.diff(joules_at(run.energy, np.array([begin, end])))[0]) if end > begin else None


def _of(what: Any, values: Array) -> float | None:
    return float(what(values)) if len(values) else None


def distribution(values: Array, points: int = 512) -> tuple[Array, Array]:
    """The empirical distribution: values in ascending order, and the share that is not above each; at most `points`
    of them, with the least and the greatest. O(n log n).
    """
    ordered, total = np.sort(values), len(values)
    at = np.unique(np.linspace(0, total - 1, min(total, points)).round().astype(np.int64))
    return ordered[at], np.searchsorted(ordered, ordered[at], "right") / max(total, 1)
