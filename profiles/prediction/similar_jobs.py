"""Prediction from the most similar jobs: those of the first kind with enough ended jobs.

Rule: the prediction is a quantile over the latest jobs of a kind, in which each job weighs less than the one that ended
after it. Jobs of one user or program are compared by their need, others by the share of their limit that they needed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

from .predictors import TRAITS, Estimate, Prediction, SubmittedJob, at_most

#: Traits that jobs must share, the most specific kind first.
KINDS = (
    ("user", "executable", "size", "walltime"),
    ("user", "executable", "size"),
    ("user", "executable"),
    ("user", "size", "walltime"),
    ("user", "walltime"),
    ("user", "size"),
    ("user",),
    ("executable", "size"),
    ("executable",),
    ("group", "walltime"),
    ("queue", "walltime"),
    ("size", "walltime"),
    ("walltime",),
    (),
)

#: The predicted quantile: above the median, because a job that outlasts its prediction does the most harm.
QUANTILE = 0.7
_LOW, _HIGH = 0.1, 0.9


class Weights:
    """Weights of the latest values of a series, the newest first: ageing, ageing^2, ...

    Args:
        latest: number of values that count, >= 1.
        ageing: weight of a value relative to the next newer one, (0, 1].
    """

    def __init__(self, latest: int, ageing: float) -> None:
        self.latest, self.ageing = latest, ageing
        self._weights = tuple(ageing**age for age in range(1, latest + 1))
        self._cumulative = (0.0, *accumulate(self._weights))

    def enough(self, quantile: float) -> int:
        """Return how many values support a quantile; `latest` if even they do not."""
        cumulative = self._cumulative
        return next((n for n in range(1, self.latest) if cumulative[n] >= quantile * (1 + cumulative[n])), self.latest)

    def quantiles(self, newest_first: Iterable[float], wanted: Sequence[float]) -> list[float]:
        """Return upper bounds that the next value of the series keeps with these probabilities. O(1).

        The next value has weight 1; a bound is the least value whose cumulative share of the whole weight reaches the
        probability, or the largest value if none does.

        Args:
            newest_first: the values, 1 to `latest`.
            wanted: probabilities in (0, 1).

        Source: Barber, Candes, Ramdas and Tibshirani, "Conformal prediction beyond exchangeability" (Annals of
        Statistics 51(2), 2023), section 3.
        """
        pairs = sorted(zip(newest_first, self._weights, strict=False))
        reached = list(accumulate(weight for _, weight in pairs))
        last = len(pairs) - 1
        return [pairs[min(bisect_left(reached, quantile * (1 + reached[-1])), last)][0] for quantile in wanted]


#: Number and ageing of the latest jobs of a kind (see docs/guides/prediction.md).
WEIGHTS = Weights(latest=50, ageing=0.98)


class History(Estimate):
    """Predicts a quantile of the need of the latest similar jobs; O(1) in the number of jobs.

    If no kind has enough jobs for the quantile, it predicts the highest need in the first kind with any job.

    Args:
        quantile: (0, 1); the higher, the fewer jobs need more than predicted.
        weights: of the latest jobs of a kind.
    """

    def __init__(self, quantile: float = QUANTILE, weights: Weights = WEIGHTS) -> None:
        if not 0 < quantile < 1:
            raise ValueError(f"quantile {quantile} is not between 0 and 1")
        self._quantiles = (quantile, _LOW, _HIGH)
        self._weights, self._enough = weights, weights.enough(quantile)
        self._kinds = [_JobsOfKind(kind, weights.latest) for kind in KINDS]

    def predict(self, job: SubmittedJob) -> Prediction | None:
        """Return the quantile over the first kind with enough jobs; the limit if no job has ended yet."""
        closest = None
        for kind in self._kinds:
            latest = kind.latest(job)
            if latest and (closest is None or len(latest) >= self._enough):
                closest = kind, latest
                if len(latest) >= self._enough:
                    break
        if closest is None:
            return super().predict(job)
        kind, latest = closest
        bounds = self._weights.quantiles(latest, self._quantiles)
        value, low, high = (at_most(bound * kind.scale(job), job.limit) for bound in bounds)
        return Prediction(value, kind.name, len(latest), low, high)

    def learn(self, job: SubmittedJob, value: float) -> None:
        """Add the job to all its kinds."""
        for kind in self._kinds:
            kind.add(job, value)


class _JobsOfKind:
    """The latest jobs with the same values of some traits, by these values."""

    def __init__(self, traits: Sequence[str], latest: int) -> None:
        self.name = ", ".join(traits) or "any job"
        self._latest = latest
        self._key = _selector([TRAITS.index(trait) for trait in traits])
        self._absolute = "user" in traits or "executable" in traits
        self._jobs: dict[Hashable, deque[float]] = {}

    def scale(self, job: SubmittedJob) -> float:
        """Return the unit of a job's need: its limit, or 1."""
        return 1.0 if self._absolute or job.limit is None else job.limit

    def latest(self, job: SubmittedJob) -> Sequence[float] | None:
        """Return the needs of the latest jobs of this kind, newest first; None without any."""
        return self._jobs.get(self._group_key(job))

    def add(self, job: SubmittedJob, value: float) -> None:
        """Add a job that has ended; a job without one of the traits is ignored."""
        key = self._group_key(job)
        if key is None:
            return
        jobs = self._jobs.get(key)
        if jobs is None:
            jobs = self._jobs[key] = deque(maxlen=self._latest)
        jobs.appendleft(value / self.scale(job))

    def _group_key(self, job: SubmittedJob) -> Hashable | None:
        """Return the trait values; jobs compared by share of their limit are apart from those without one."""
        key = self._key(job.traits)
        if None in key:
            return None
        return key if self._absolute else (job.limit is None, key)


def _selector(places: Sequence[int]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that picks these places of a tuple, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda traits: tuple(traits[place] for place in places)
