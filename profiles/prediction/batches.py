"""The latest values of jobs, by the batches in which the jobs were submitted.

Rule: jobs of one batch are alike, and unlike the next batch, so a batch does not count once for each of its jobs. The
values of a batch are a uniform sample: the jobs of a batch that end first are its shortest, and those that end last its
longest.
Source: Dunn, Wasserman and Ramdas, "Distribution-free prediction sets for two-layer hierarchical models" (JASA 118,
2023).
"""

from __future__ import annotations

import math
from bisect import bisect, bisect_left
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import accumulate
from random import Random

#: Values that are kept; the batch with the most of them, or the oldest, loses one for a new one.
LATEST = 100


class _Batch:
    """The values of a batch that are kept, the number of its jobs, and the weight of a value."""

    __slots__ = ("jobs", "values", "weight")

    def __init__(self) -> None:
        self.values, self.jobs, self.weight = list[float](), 0, 0.0


class Batches:
    """A series of values, each of a batch.

    Args:
        draw: chooses the samples.
        power: weight of a batch of n jobs, as a power of n.
        ageing: weight of a batch relative to the one that ended after it, (0, 1].
    """

    __slots__ = (
        "_ageing", "_batches", "_by_size", "_cumulative", "_draw", "_owners", "_power", "_values", "_weighted", "jobs",
    )  # fmt: skip

    def __init__(self, draw: Random, power: float = 0.0, ageing: float = 1.0) -> None:
        self._draw, self._power, self._ageing = draw, power, ageing
        self._weighted = power != 0.0 or ageing < 1.0  # the number of jobs, or the order of the batches, counts
        self._batches = dict[Hashable, _Batch]()  # the one that was added to last is the last
        self._by_size = [dict[Hashable, None]()]  # batches by the number of values that are kept
        self._values, self._owners = list[float](), list[_Batch]()  # by value
        self._cumulative = list[float]()
        self.jobs = 0  #: in the batches that are kept

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def add(self, batch: Hashable, value: float) -> int:
        """Add the value of a job, and return the number of jobs of its batch, which is the latest now. O(LATEST)."""
        entry = self._batches.pop(batch, None) or _Batch()
        self._batches[batch] = entry
        entry.jobs += 1
        self.jobs += 1
        size = len(entry.values)
        if size == entry.jobs - 1:
            self._insert(entry, value)
            self._resize(batch, size, size + 1)
            if len(self._values) > LATEST:
                self._forget()
        elif (place := int(self._draw.random() * entry.jobs)) < size:
            self._remove(entry, place)
            self._insert(entry, value)
        elif self._weighted:
            self._cumulative = []
        return entry.jobs

    def _insert(self, entry: _Batch, value: float) -> None:
        self._cumulative = []
        entry.values.append(value)
        entry.weight = 1.0 / len(entry.values)
        place = bisect(self._values, value)
        self._values.insert(place, value)
        self._owners.insert(place, entry)

    def _remove(self, entry: _Batch, place: int) -> None:
        at = self._owners.index(entry, bisect_left(self._values, entry.values.pop(place)))
        del self._values[at], self._owners[at]
        entry.weight = 1.0 / max(1, len(entry.values))

    def _resize(self, batch: Hashable, before: int, now: int) -> None:
        self._by_size[before].pop(batch, None)
        if now == len(self._by_size):
            self._by_size.append({})
        self._by_size[now][batch] = None

    def _forget(self) -> None:
        while not self._by_size[-1]:
            self._by_size.pop()
        size = len(self._by_size) - 1
        batch = next(iter(self._by_size[-1] if size > 1 else self._batches))
        entry = self._batches[batch]
        self._remove(entry, int(self._draw.random() * size))
        self._resize(batch, size, size - 1)
        if size == 1:
            self.jobs -= self._batches.pop(batch).jobs
            del self._by_size[0][batch]

    def quantile(self, wanted: float, unknown: float) -> float:
        """Return an upper bound that the next value keeps with a probability; inf if too few are known to say. O(1).

        Args:
            wanted: the probability, (0, 1).
            unknown: weight of the next value, as a share of all others; it may have any value.
        """
        if not self._cumulative:
            if self._weighted:
                for entry, age in zip(reversed(self._batches.values()), _ages(self._ageing), strict=False):
                    entry.weight = age * entry.jobs**self._power / len(entry.values)
            self._cumulative = list(accumulate([entry.weight for entry in self._owners]))
        least = wanted * (1.0 + unknown) * self._cumulative[-1] * (1.0 - 1e-12)
        place = bisect_left(self._cumulative, least)
        return self._values[place] if place < len(self._values) else math.inf

    @property
    def largest(self) -> float:
        """The largest value that is kept."""
        return self._values[-1]


@lru_cache
def _ages(ageing: float) -> Sequence[float]:
    """Return the weights of batches by their age, the newest first."""
    return [ageing**age for age in range(LATEST)]
