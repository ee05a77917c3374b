"""The latest values of jobs, by the batches in which the jobs were submitted.

Rule: jobs of one batch are alike, and unlike the next batch, so a batch does not count once for each of its jobs. The
values of a batch are a uniform sample: the jobs of a batch that end first are its shortest, and those that end last its
longest.
Source: Dunn, Wasserman and Ramdas, "Distribution-free prediction sets for two-layer hierarchical models" (JASA 118,
2023).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable
from itertools import accumulate
from random import Random

#: Values that are kept; the batch with the most of them, or the oldest, loses one for a new one.
LATEST = 100


class Batches:
    """A series of values, each of a batch.

    Args:
        draw: chooses the samples.
        power: weight of a batch of n jobs, as a power of n.
        ageing: weight of a batch relative to the one that ended after it, (0, 1].
    """

    __slots__ = ("_ageing", "_cumulative", "_draw", "_jobs", "_kept", "_ordered", "_power", "_values", "jobs")

    def __init__(self, draw: Random, power: float = 0.0, ageing: float = 1.0) -> None:
        self._draw, self._power, self._ageing = draw, power, ageing
        self._values, self._jobs = dict[Hashable, list[float]](), dict[Hashable, int]()
        self._kept = 0
        self._ordered, self._cumulative = list[float](), list[float]()
        self.jobs = 0  #: in the batches that are kept

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._values)

    def add(self, batch: Hashable, value: float) -> int:
        """Add the value of a job, and return the number of jobs of its batch, which is the latest now. O(batches)."""
        values = self._values[batch] = self._values.pop(batch, [])
        jobs = self._jobs[batch] = self._jobs.get(batch, 0) + 1
        self.jobs += 1
        self._ordered = []
        if len(values) < jobs - 1:
            if (place := self._draw.randrange(jobs)) < len(values):
                values[place] = value
            return jobs
        values.append(value)
        self._kept += 1
        if self._kept > LATEST:
            self._forget()
        return jobs

    def _forget(self) -> None:
        self._kept -= 1
        most = max(self._values.values(), key=len)
        if len(most) > 1:
            most.pop(self._draw.randrange(len(most)))
        else:
            oldest = next(iter(self._values))
            del self._values[oldest]
            self.jobs -= self._jobs.pop(oldest)

    def quantile(self, wanted: float, unknown: float) -> float:
        """Return an upper bound that the next value keeps with a probability; inf if too few are known to say. O(1).

        Args:
            wanted: the probability, (0, 1).
            unknown: weight of the next value, as a share of all others; it may have any value.
        """
        if not self._ordered:
            pairs = sorted(self._weighted())
            self._ordered = [value for value, _ in pairs]
            self._cumulative = list(accumulate([weight for _, weight in pairs]))
        least = wanted * (1.0 + unknown) * self._cumulative[-1] * (1.0 - 1e-12)
        place = bisect_left(self._cumulative, least)
        return self._ordered[place] if place < len(self._ordered) else math.inf

    @property
    def largest(self) -> float:
        """The largest value that is kept."""
        return max(map(max, self._values.values()))

    def _weighted(self) -> list[tuple[float, float]]:
        found, age = list[tuple[float, float]](), 1.0
        for batch, values in reversed(self._values.items()):
            weight = age * self._jobs[batch] ** self._power / len(values)
            found += [(value, weight) for value in values]
            age *= self._ageing
        return found
