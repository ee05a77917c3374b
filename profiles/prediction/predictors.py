"""The interface of predictors, and the two baselines.

The baselines are the user's own estimate, and the mean of the user's last two jobs.

Rule: an unknown trait is None and never equal to another; a prediction never exceeds the job's limit, and names the
kind and number of jobs behind it. The baselines are as published, so that comparisons are valid.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

#: Traits of a job at its submission, in the order of `SubmittedJob.traits`.
TRAITS = ("user", "group", "executable", "queue", "size", "walltime")
#: The kind of a prediction that is the job's own limit, without similar jobs.
LIMIT = "limit"
_USER = TRAITS.index("user")


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job at its submission.

    Args:
        traits: one for each of `TRAITS`; None = unknown.
        limit: the user's limit (s, or bytes), > 0; None = none.
    """

    traits: tuple[Hashable | None, ...]
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted need of a job.

    Args:
        value: the requested quantile, in the unit of the limit, at most the limit.
        kind: traits shared with the jobs behind it, such as `user, size`; `LIMIT`: no such job.
        jobs: number of jobs behind it.
        low, high: bounds that such a job exceeds with probability 0.9 and 0.1, at most the limit; None without a
            distribution.
    """

    value: float
    kind: str
    jobs: int
    low: float | None = None
    high: float | None = None


def at_most(value: float, limit: float | None) -> float:
    """Return the value, or the limit if that is less."""
    return value if limit is None or value < limit else limit


class Estimate:
    """Predicts the user's limit; the base of all predictors, which learn from jobs in the order in which they end."""

    def predict(self, job: SubmittedJob) -> Prediction | None:
        """Return the predicted need; None if nothing is known, not even a limit."""
        return None if job.limit is None else Prediction(job.limit, LIMIT, 0)

    def learn(self, job: SubmittedJob, value: float) -> None:
        """Learn the need of a job that has ended."""


class LastTwo(Estimate):
    """Predicts the mean of the user's last two ended jobs, at most the limit; the limit with fewer than two.

    Source: Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user runtime
    estimates" (IEEE TPDS 18(6), 2007).
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, ...]] = {}

    def predict(self, job: SubmittedJob) -> Prediction | None:
        """Return the mean, or the limit."""
        user = job.traits[_USER]
        last = () if user is None else self._last.get(user, ())
        if len(last) < 2:
            return super().predict(job)
        return Prediction(at_most(sum(last) / 2, job.limit), "user", 2)

    def learn(self, job: SubmittedJob, value: float) -> None:
        """Store the user's last two."""
        user = job.traits[_USER]
        if user is not None:
            self._last[user] = (*self._last.get(user, ())[-1:], value)
