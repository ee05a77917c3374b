"""What a predictor is asked, and what it answers.

Rule: a trait that is not known is None and never equal to another; a prediction never exceeds the job's limit, and
says from how many jobs of which kind it comes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

#: What may be known of a job when it is submitted, in the order of `Asked.traits`.
TRAITS = ("user", "group", "executable", "queue", "size", "walltime")
#: The kind of a prediction that is the job's own limit, for want of jobs like it.
LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class Asked:
    """A job at its submission.

    Args:
        traits: one for each of `TRAITS`; None = not known.
        limit: what the user says it needs at the most (s, or bytes), above 0; None = nothing said.
    """

    traits: tuple[Hashable | None, ...]
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a job will need.

    Args:
        value: the quantile that was asked for, in the unit of the limit, and at most the limit.
        kind: what the jobs behind it have in common with this one, such as `user, size`; `LIMIT`: none is known.
        jobs: how many jobs it comes from.
        low, high: bounds that such a job exceeds with probability 0.9 and 0.1, as far as so many jobs tell, and at most
            the limit; None where it comes from no distribution.
    """

    value: float
    kind: str
    jobs: int
    low: float | None = None
    high: float | None = None


class Predictor(Protocol):
    """Learns from jobs in the order in which they end."""

    def predict(self, job: Asked) -> Prediction | None:
        """What the job will need; None where nothing is known, not even a limit."""

    def learn(self, job: Asked, value: float) -> None:
        """Take in what a job needed that has ended."""


def of_limit(job: Asked) -> Prediction | None:
    """The job's own limit as a prediction, None where it has none."""
    return None if job.limit is None else Prediction(job.limit, LIMIT, 0)


def at_most(value: float, limit: float | None) -> float:
    """The value, or the limit where that is less."""
    return value if limit is None or value < limit else limit
