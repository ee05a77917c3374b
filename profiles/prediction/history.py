"""Prediction from the jobs most like this one: those of the first kind of which enough have ended.

Rule: a quantile over the latest jobs of a kind, in which each job weighs less than the one that ended after it. Jobs of
one person or program are compared by what they needed, others by the share of their limit that they needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from operator import itemgetter
from typing import Any

from .jobs import TRAITS, Asked, Prediction, at_most, of_limit
from .weights import Weights

#: What jobs must have in common, the most telling first.
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
#: How many of the latest jobs of a kind count, and each how much of the next one (see docs/prediction.md).
WEIGHTS = Weights(latest=50, ageing=0.98)
#: The quantile that is predicted: above the median, as a job that outlasts its prediction does more harm than one that
#: ends before it.
QUANTILE = 0.7
_LOW, _HIGH = 0.1, 0.9
_NAMES = tuple(", ".join(kind) or "any job" for kind in KINDS)


class History:
    """Predicts a quantile of what the latest jobs like this one needed; O(1) in the number of jobs.

    Where no kind has jobs enough for the quantile, the most that jobs of the first one with any needed is predicted.

    Args:
        quantile: (0, 1); the higher, the fewer jobs need more than predicted.
        weights: of the latest jobs of a kind.
    """

    def __init__(self, quantile: float = QUANTILE, weights: Weights = WEIGHTS) -> None:
        if not 0 < quantile < 1:
            raise ValueError(f"quantile {quantile} is not between 0 and 1")
        self._wanted = (quantile, _LOW, _HIGH)
        self._weights, self._enough = weights, weights.enough(quantile)
        self._kinds = [_Kind(kind, weights.latest) for kind in KINDS]

    def predict(self, job: Asked) -> Prediction | None:
        """The quantile over the first kind with enough jobs in it; the limit where no job has ended yet."""
        found = self._closest(job)
        if found is None:
            return of_limit(job)
        place, latest = found
        scale = self._kinds[place].scale(job)
        bounds = self._weights.quantiles(latest, self._wanted)
        value, low, high = (at_most(bound * scale, job.limit) for bound in bounds)
        return Prediction(value, _NAMES[place], len(latest), low, high)

    def _closest(self, job: Asked) -> tuple[int, Sequence[float]] | None:
        """The first kind with enough jobs, else the first with any: its place in `KINDS`, and its latest jobs."""
        found = None
        for place, kind in enumerate(self._kinds):
            latest = kind.latest(job)
            if latest and len(latest) >= self._enough:
                return place, latest
            if latest and found is None:
                found = place, latest
        return found

    def learn(self, job: Asked, value: float) -> None:
        """Add the job to all kinds that it is of."""
        for kind in self._kinds:
            kind.add(job, value)


class _Kind:
    """The latest jobs that have some traits in common, by these traits."""

    def __init__(self, traits: Sequence[str], latest: int) -> None:
        self._latest = latest
        self._key = _key_of([TRAITS.index(trait) for trait in traits])
        self._absolute = "user" in traits or "executable" in traits
        self._jobs: dict[Hashable, deque[float]] = {}

    def scale(self, job: Asked) -> float:
        """What a job's need is measured in: its limit, or 1."""
        return 1.0 if self._absolute or job.limit is None else job.limit

    def latest(self, job: Asked) -> Sequence[float] | None:
        """What the latest jobs of this kind needed, newest first; None: there are none."""
        return self._jobs.get(self._place(job))

    def add(self, job: Asked, value: float) -> None:
        """Add a job that has ended; one of which a trait is not known is of no kind."""
        place = self._place(job)
        if place is None:
            return
        jobs = self._jobs.get(place)
        if jobs is None:
            jobs = self._jobs[place] = deque(maxlen=self._latest)
        jobs.appendleft(value / self.scale(job))

    def _place(self, job: Asked) -> Hashable | None:
        """The traits in common; jobs that are compared by share of their limit are apart from those without one."""
        key = self._key(job.traits)
        if None in key:
            return None
        return key if self._absolute else (job.limit is None, key)


def _key_of(places: Sequence[int]) -> Callable[[Any], tuple[Any, ...]]:
    """What picks these places of a tuple, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda traits: tuple(traits[place] for place in places)
