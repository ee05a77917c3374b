"""Predictors of the needs of jobs: two baselines, and a quantile over the most similar jobs.

The baselines are the user's own estimate, and the mean of the user's last two jobs, as published.

Rule: an unknown trait is None and never equal to another; a prediction never exceeds the job's limit, and names the
kind and number of jobs behind it. The similar jobs are the latest of the first kind with enough ended jobs, in which
each batch weighs less than the one that ended after it. Jobs of one user or program are compared by their need, others
by the share of their limit that they needed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random

from .batches import Batches

#: Traits of a job at its submission, in the order of `SubmittedJob.traits`.
TRAITS = ("user", "group", "executable", "queue", "size", "walltime", "script")
#: The kind of a prediction that rests on the job's own limit, without similar jobs.
LIMIT = "limit"
_USER = TRAITS.index("user")
#: Traits that jobs must share, the most specific kind first.
KINDS = (
    ("user", "script", "size"),
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
#: Share of its limit that a job is expected to need while no job at all has ended: the median of a uniform share, which
#: is about what users' estimates show. Source: Mu'alem and Feitelson (IEEE TPDS 12(6), 2001), section 5.
UNKNOWN_SHARE = 0.5
#: The predicted quantile: above the median, because a job that outlasts its prediction does the most harm.
QUANTILE = 0.7
_LOW, _HIGH = 0.1, 0.9
Traits = tuple[Hashable | None, ...]


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job at its submission.

    Args:
        traits: one for each of `TRAITS`; None = unknown.
        limit: the user's limit (s, or bytes), > 0; None = none.
        batch: of jobs that the user submitted together.
    """

    traits: Traits
    limit: float | None = None
    batch: Hashable = 0


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


#: Number of the latest runs of a program that say what its next command needs, and the weight of each relative to the
#: next newer one.
LATEST_RUNS, RUN_AGEING = 50, 0.98
_WEIGHTS = tuple(RUN_AGEING**age for age in range(1, LATEST_RUNS + 1))


def weighted_quantiles(newest_first: Iterable[float], wanted: Sequence[float]) -> list[float]:
    """Return upper bounds that the next value of a series keeps with these probabilities. O(1).

    The next value has weight 1; a bound is the least value whose cumulative share of the whole weight reaches the
    probability, or the largest value if none does.

    Args:
        newest_first: the values, 1 to LATEST_RUNS.
        wanted: probabilities in (0, 1).

    Source: Barber, Candes, Ramdas and Tibshirani, "Conformal prediction beyond exchangeability" (Annals of Statistics
    51(2), 2023), section 3.
    """
    pairs = sorted(zip(newest_first, _WEIGHTS, strict=False))
    reached = list(accumulate(weight for _, weight in pairs))
    last = len(pairs) - 1
    return [pairs[min(bisect_left(reached, quantile * (1 + reached[-1])), last)][0] for quantile in wanted]


#: Weight of a batch of n similar jobs as a power of n, and relative to the next newer one (docs/guides/prediction.md).
POWER, AGEING = 0.5, 0.8


class History(Estimate):
    """Predicts a quantile of the need of the latest similar jobs; O(1) in the number of jobs.

    If no kind has enough jobs for the quantile, it predicts the highest need in the first kind with any job.

    Args:
        quantile: (0, 1); the higher, the fewer jobs need more than predicted.
        power: weight of a batch of n similar jobs, as a power of n.
        ageing: weight of a batch relative to the next newer one, (0, 1].
    """

    def __init__(self, quantile: float = QUANTILE, power: float = POWER, ageing: float = AGEING) -> None:
        if not 0 < quantile < 1:
            raise ValueError(f"quantile {quantile} is not between 0 and 1")
        self._quantiles = (quantile, _LOW, _HIGH)
        self._enough = math.ceil(quantile / (1.0 - quantile) * (1.0 - 1e-9))
        draw = Random(0)
        self._kinds = [_JobsOfKind(kind, lambda: Batches(draw, power, ageing)) for kind in KINDS]
        self._keys = lru_cache(4096)(self._keys_of)

    def predict(self, job: SubmittedJob) -> Prediction | None:
        """Return the quantile over the first kind with enough jobs; a share of the limit if no job has ended yet."""
        closest = None
        for kind, key in zip(self._kinds, self._keys(job.traits, job.limit is not None), strict=True):
            latest = kind.latest(key)
            if latest and (closest is None or latest.jobs >= self._enough):
                closest = kind, latest
                if latest.jobs >= self._enough:
                    break
        if closest is None:
            return None if job.limit is None else Prediction(UNKNOWN_SHARE * job.limit, LIMIT, 0)
        kind, latest = closest
        bounds = (min(latest.quantile(quantile, 1.0 / latest.jobs), latest.largest) for quantile in self._quantiles)
        value, low, high = (at_most(bound * kind.scale(job), job.limit) for bound in bounds)
        return Prediction(value, kind.name, latest.jobs, low, high)

    def learn(self, job: SubmittedJob, value: float) -> None:
        """Add the job to all its kinds."""
        for kind, key in zip(self._kinds, self._keys(job.traits, job.limit is not None), strict=True):
            kind.add(key, job, value)

    def _keys_of(self, traits: Traits, limited: bool) -> Sequence[Hashable | None]:
        return [kind.key(traits, limited=limited) for kind in self._kinds]


class _JobsOfKind:
    """The latest jobs with the same values of some traits, by these values."""

    def __init__(self, traits: Sequence[str], series: Callable[[], Batches]) -> None:
        self.name = ", ".join(traits) or "any job"
        self._series = series
        self._places = [TRAITS.index(trait) for trait in traits]
        self._absolute = "user" in traits or "executable" in traits
        self._jobs = dict[Hashable, Batches]()
        # jobs that no prediction asked for yet
        self._unsorted = defaultdict[Hashable, list[tuple[Hashable, float]]](list)

    def scale(self, job: SubmittedJob) -> float:
        """Return the unit of a job's need: its limit, or 1."""
        return 1.0 if self._absolute or job.limit is None else job.limit

    def latest(self, key: Hashable | None) -> Batches | None:
        """Return the needs of the latest jobs of this kind; None without any."""
        if unsorted := self._unsorted.pop(key, None):
            jobs = self._jobs.get(key) or self._jobs.setdefault(key, self._series())
            for batch, value in unsorted:
                jobs.add(batch, value)
        return self._jobs.get(key)

    def add(self, key: Hashable | None, job: SubmittedJob, value: float) -> None:
        """Add a job that has ended; a job without one of the traits is ignored."""
        if key is not None:
            self._unsorted[key].append((job.batch, value / self.scale(job)))

    def key(self, traits: Traits, *, limited: bool) -> Hashable | None:
        """Return the trait values; jobs compared by share of their limit are apart from those without one."""
        values = tuple([traits[place] for place in self._places])
        if None in values:
            return None
        return values if self._absolute else (limited, values)
