"""Comparison of predictors on a trace.

Rule: each job is predicted at its submission, from jobs that have ended before; later facts never change a prediction.
Intervals are corrected by the outcomes of the jobs of the user, then of the kind, then of all, as far as they had
ended. Predictors are compared over the jobs that all of them predict; one that predicts none is named and left out. In
a trace, values below 0 are unknown (SWF), and so are amounts of 0 and columns with one value for all jobs; an estimate
is the requested time or memory, never derived from the use.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.errors import ConfigError
from ...simulate.model.workload import Workload
from .conformal import AdaptiveBounds
from .predictors import QUANTILE, TRAITS, Estimate, History, LastTwo, Prediction, SubmittedJob, at_most

Array = npt.NDArray[Any]
#: Share of the jobs that intervals shall hold, the shares that count as well calibrated, and the least jobs of a group.
LEVEL, CALIBRATED, ENOUGH_JOBS = 0.8, (0.75, 0.85), 30
#: A user's jobs are of one batch if no more seconds pass between two submissions. Source: Zilber, Amit and Talby,
#: "What is worth learning from parallel workloads?" (ICS 2005): sessions are 20 min apart.
BATCH_GAP_S, LONGEST_BATCH_S = 1200.0, 86_400.0
_USER = TRAITS.index("user")
#: Needs are compared as if they were at least this large (s, or bytes).
_LEAST = 1.0
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
    bounds, raw, predictions = AdaptiveBounds(LEVEL), list[Prediction | None](), list[Prediction | None]()
    ended = np.argsort(trace.known_at, kind="stable")
    ended = iter(ended[np.isfinite(trace.values[ended])].tolist())
    last = next(ended, None)
    for job, now in zip(jobs, trace.asked_at.tolist(), strict=True):
        while last is not None and known_at[last] < now:
            predictor.learn(jobs[last], values[last])
            if last < len(raw):  # an end before the submission is no end of a job that was predicted
                _learn(bounds, jobs[last], raw[last], values[last])
            last = next(ended, None)
        raw.append(predictor.predict(job))
        predictions.append(_corrected(bounds, job, raw[-1]))
    return predictions


def _groups(job: SubmittedJob, prediction: Prediction) -> tuple[Hashable, ...]:
    user = job.traits[_USER]
    return (*([] if user is None else [("user", user)]), ("kind", prediction.kind), "all")


def _learn(bounds: AdaptiveBounds, job: SubmittedJob, prediction: Prediction | None, value: float) -> None:
    if prediction is not None and prediction.low is not None and prediction.high is not None:
        low, high, need = (math.log(max(number, _LEAST)) for number in (prediction.low, prediction.high, value))
        bounds.learn(_groups(job, prediction), low - need, need - high, job.batch)


def _corrected(bounds: AdaptiveBounds, job: SubmittedJob, raw: Prediction | None) -> Prediction | None:
    """Return a prediction whose interval is widened or narrowed by the outcomes so far."""
    if raw is None or raw.low is None or raw.high is None or (by := bounds.of(_groups(job, raw))) is None:
        return raw
    low = max(raw.low, _LEAST) * math.exp(-by[0])
    high = max(raw.high, _LEAST) * math.exp(by[1])
    if low > high:
        low = high = math.sqrt(low * high)
    high = at_most(high, job.limit)
    return replace(raw, low=min(low, high), high=high)


@dataclass(frozen=True, slots=True)
class Score:
    """Accuracy of predictions; errors are |predicted - actual|, in the unit of the prediction.

    Args:
        underpredicted: share of the jobs that needed more than predicted, [0, 1].
        relative: mean error / that of the user's estimate; None without an estimate, or if its error is 0.
        kinds: share of the jobs predicted from each kind, the largest first.
        intervals: None from a predictor without intervals.
    """

    mean_error: float
    median_error: float
    underpredicted: float
    relative: float | None
    kinds: Mapping[str, float]
    intervals: Intervals | None


@dataclass(frozen=True, slots=True)
class Intervals:
    """Coverage of the intervals of LEVEL.

    Args:
        jobs: number of jobs with an interval.
        inside: share of them whose need was inside, [0, 1].
        width: median of the widths, upper over lower end, each at least 1 s or 1 byte.
        no_better: share of the intervals whose upper end is the job's own limit, so that they say no more than it.
        users: users of at least ENOUGH_JOBS jobs with an interval; calibrated: those of them of whose jobs a share in
            CALIBRATED was inside; held: those with at least the lower end of that.
    """

    jobs: int
    inside: float
    width: float
    no_better: float
    users: int
    calibrated: int
    held: int


def score(actual: Array, jobs: Sequence[SubmittedJob], made: Sequence[Prediction]) -> Score:
    """Return the accuracy of predictions.

    Args:
        actual: needs of the jobs, at least one.
        jobs: as submitted.
        made: one per job.
    """
    limits = np.array([job.limit for job in jobs], float)
    predicted = np.array([one.value for one in made])
    error, estimated = np.abs(predicted - actual), float(np.abs(limits - actual).mean())
    return Score(
        float(error.mean()),
        float(np.median(error)),
        float((predicted < actual).mean()),
        float(error.mean()) / estimated if estimated > 0 else None,
        {kind: number / len(made) for kind, number in Counter(one.kind for one in made).most_common()},
        _intervals(actual.tolist(), jobs, made),
    )


def _intervals(
    actual: Sequence[float], jobs: Sequence[SubmittedJob], predictions: Sequence[Prediction]
) -> Intervals | None:
    insides, widths, reach, users = list[bool](), list[float](), 0, defaultdict[Hashable, list[bool]](list)
    for need, job, one in zip(actual, jobs, predictions, strict=True):
        if one.low is None or one.high is None:
            continue
        insides.append(max(one.low, _LEAST) - 1e-9 <= max(need, _LEAST) <= max(one.high, _LEAST) + 1e-9)
        widths.append(max(one.high, _LEAST) / max(one.low, _LEAST))
        reach += job.limit is not None and one.high >= job.limit
        users[job.traits[_USER]].append(insides[-1])
    if not insides:
        return None
    shares = [sum(hits) / len(hits) for user, hits in users.items() if user is not None and len(hits) >= ENOUGH_JOBS]
    held = [share for share in shares if share >= CALIBRATED[0]]
    return Intervals(
        len(insides),
        sum(insides) / len(insides),
        float(np.median(widths)),
        reach / len(insides),
        len(shares),
        sum(share <= CALIBRATED[1] for share in held),
        len(held),
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
    used, limit_column, unit = NEEDS[need]
    values = workload.run_time if used is None else _recorded(more, used, len(workload)) * unit
    if not np.isfinite(values).any():
        raise ConfigError(workload.name, used or "run_time", f"no job's {need} is recorded", "a trace that has it")
    limits = _recorded(more, limit_column, len(workload), even_alike=True) * unit
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
    traits = list(zip(*(_trait(columns.get(name), len(workload)) for name in TRAITS), strict=True))
    job_limits = (None if np.isnan(limit) else limit for limit in limits.tolist())
    batches = _batches([job_traits[_USER] for job_traits in traits], workload.submit_time.tolist())
    return [SubmittedJob(*row) for row in zip(traits, job_limits, batches, strict=True)]


def _batches(users: Sequence[Hashable], times: Sequence[float]) -> Iterator[int]:
    """Yield the batch of each job: one begins with a user's job that was submitted long after the one before it."""
    latest = dict[Hashable, tuple[float, float, int]]()
    for row, (user, now) in enumerate(zip(users, times, strict=True)):
        began, before, batch = latest.get(user, (now, now, row))
        if now - before > BATCH_GAP_S or now - began > LONGEST_BATCH_S:
            began, batch = now, row
        latest[user] = began, now, batch
        yield batch


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
    by_predictor = {name: predict_all(trace, PREDICTORS[name](quantile)) for name in names}
    silent = [name for name in names if not any(by_predictor[name])]
    answered = {name: predictions for name, predictions in by_predictor.items() if name not in silent}
    mask = np.isfinite(trace.values) & bool(answered)
    for predictions in answered.values():
        mask &= np.fromiter((one is not None for one in predictions), bool, len(predictions))
    rows = np.flatnonzero(mask)
    jobs = [trace.jobs[row] for row in rows.tolist()]
    scores = {
        name: score(trace.values[rows], jobs, [one for row in rows.tolist() if (one := predictions[row])])
        for name, predictions in answered.items()
        if len(rows)
    }
    return Evaluation(len(rows), len(mask) - len(rows), quantile, scores, silent, trace.unknown_waits)
