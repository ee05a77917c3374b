"""Comparison of predictors on a trace.

Rule: each job is predicted at its submission, from jobs that have ended before; later facts never change a prediction.
Predictors are compared over the jobs that all of them predict; one that predicts none is named and left out. In a
trace, values below 0 are unknown (SWF), and so are amounts of 0 and columns with one value for all jobs; an estimate is
the requested time or memory, never derived from the use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.errors import ConfigError
from ...simulate.model.workload import Workload
from .predictors import QUANTILE, TRAITS, Estimate, History, LastTwo, Prediction, SubmittedJob

Array = npt.NDArray[Any]
#: Predictable needs -> (column of the use, column of the request, their unit in ours); None = the run time.
NEEDS = {"run-time": (None, "requested_time", 1.0), "memory": ("used_memory", "requested_memory", 1024.0)}
#: Predictors by name, each created for a quantile, which only some predict.
PREDICTORS: Mapping[str, Callable[[float], Estimate]] = {
    "estimate": lambda quantile: Estimate(),
    "last-two": lambda quantile: LastTwo(),
    "history": History,
}


@dataclass(frozen=True, slots=True)
class TracedJobs:
    """Jobs in the order of submission, and their needs (s, or bytes per processor).

    Args:
        jobs: as submitted, with the users' limits.
        asked_at: submission times, ascending (s).
        known_at: end times (s).
        values: needs; nan = not recorded.
        unknown_waits: number of jobs without a waiting time, which are assumed to have started at once.
    """

    jobs: Sequence[SubmittedJob]
    asked_at: Array
    known_at: Array
    values: Array
    unknown_waits: int = 0


def predict_all(trace: TracedJobs, predictor: Estimate) -> list[Prediction | None]:
    """Predict each job at its submission, learning from each that ended before. O(n log n).

    Args:
        trace: the jobs.
        predictor: learns and predicts.
    """
    jobs, values, known_at = trace.jobs, trace.values.tolist(), trace.known_at.tolist()
    ended = np.argsort(trace.known_at, kind="stable")
    ended = iter(ended[np.isfinite(trace.values[ended])].tolist())
    last = next(ended, None)
    found = []
    for job, now in zip(jobs, trace.asked_at.tolist(), strict=True):
        while last is not None and known_at[last] < now:
            predictor.learn(jobs[last], values[last])
            last = next(ended, None)
        found.append(predictor.predict(job))
    return found


@dataclass(frozen=True, slots=True)
class Score:
    """Accuracy of predictions; errors are |predicted - actual|, in the unit of the prediction.

    Args:
        underpredicted: share of the jobs that needed more than predicted, [0, 1].
        relative: mean error / that of the user's estimate; None without an estimate, or if its error is 0.
        kinds: share of the jobs predicted from each kind, the largest first.
    """

    mean_error: float
    median_error: float
    underpredicted: float
    relative: float | None
    kinds: Mapping[str, float]


def score(actual: Array, limits: Array, made: Sequence[Prediction]) -> Score:
    """Return the accuracy of predictions.

    Args:
        actual: needs of the jobs, at least one.
        limits: users' limits; nan = none.
        made: one per job.
    """
    predicted = np.array([one.value for one in made])
    error, estimated = np.abs(predicted - actual), float(np.abs(limits - actual).mean())
    return Score(
        float(error.mean()),
        float(np.median(error)),
        float((predicted < actual).mean()),
        float(error.mean()) / estimated if estimated > 0 else None,
        {kind: jobs / len(made) for kind, jobs in Counter(one.kind for one in made).most_common()},
    )


def traced(workload: Workload, need: str = "run-time") -> TracedJobs:
    """Return the jobs of a trace for predicting a need.

    Args:
        workload: the trace.
        need: one of `NEEDS`.

    Raises:
        ConfigError: the trace does not record the need.
    """
    more = workload.more
    used, wanted, unit = NEEDS[need]
    values = workload.run_time if used is None else _recorded(more, used, len(workload)) * unit
    if not np.isfinite(values).any():
        raise ConfigError(workload.name, used or "run_time", f"no job's {need} is recorded", "a trace that has it")
    limits = _recorded(more, wanted, len(workload), even_alike=True) * unit
    waits = more.get("wait_time", np.full(len(workload), -1.0))
    ended = workload.submit_time + np.maximum(waits, 0.0) + workload.run_time
    jobs = submitted_jobs(workload, limits, more.get("requested_time"))
    return TracedJobs(jobs, workload.submit_time, ended, values, int((waits < 0).sum()))


def submitted_jobs(workload: Workload, limits: Array, walltimes: Array | None) -> list[SubmittedJob]:
    """Return the jobs of a workload as they are submitted.

    Args:
        workload: the jobs.
        limits: users' limits of what is predicted; nan = none.
        walltimes: requested times, seconds; below 0 = unknown.
    """
    columns = {**workload.more, "size": workload.size, "walltime": walltimes}
    traits = zip(*(_trait(columns.get(name), len(workload)) for name in TRAITS), strict=True)
    asked = (None if np.isnan(limit) else limit for limit in limits.tolist())
    return [SubmittedJob(own, limit) for own, limit in zip(traits, asked, strict=True)]


def _recorded(more: Mapping[str, Array], name: str, jobs: int, *, even_alike: bool = False) -> Array:
    """Return a column with nan for unknown values; all nan if one value holds for all jobs, unless `even_alike`."""
    column = more.get(name)
    if column is None or (not even_alike and len(np.unique(column)) < 2):
        return np.full(jobs, np.nan)
    return np.where(column > 0, column, np.nan)


def _trait(column: Array | None, jobs: int) -> list[Hashable | None]:
    if column is None or len(np.unique(column)) < 2:
        return [None] * jobs
    return [None if value < 0 else value for value in column.tolist()]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Accuracy of predictors on a trace.

    Args:
        jobs: number of compared jobs; left_out: number of others.
        scores: by the predictor's name; silent: predictors without any prediction.
        unknown_waits: jobs with an unknown waiting time, which count as ended that much earlier.
    """

    jobs: int
    left_out: int
    quantile: float
    scores: Mapping[str, Score]
    silent: Sequence[str]
    unknown_waits: int


def evaluate(trace: TracedJobs, names: Sequence[str], quantile: float = QUANTILE) -> Evaluation:
    """Let predictors predict a trace's jobs, each at its submission, and score them.

    Args:
        trace: the jobs.
        names: of `PREDICTORS`.
        quantile: (0, 1), for predictors of a quantile.
    """
    made = {name: predict_all(trace, PREDICTORS[name](quantile)) for name in names}
    silent = [name for name in names if not any(made[name])]
    answered = {name: predictions for name, predictions in made.items() if name not in silent}
    known = np.isfinite(trace.values) & bool(answered)
    for predictions in answered.values():
        known &= np.fromiter((one is not None for one in predictions), bool, len(predictions))
    rows, limits = np.flatnonzero(known), np.array([job.limit for job in trace.jobs], float)
    scores = {
        name: score(trace.values[rows], limits[rows], [one for row in rows.tolist() if (one := predictions[row])])
        for name, predictions in answered.items()
        if len(rows)
    }
    return Evaluation(len(rows), len(known) - len(rows), quantile, scores, silent, trace.unknown_waits)
