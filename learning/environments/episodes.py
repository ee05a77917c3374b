"""Episodes of environments: so many consecutive jobs of a trace, drawn by a generator of each copy.

Rule: what a copy draws depends on the seed and its number, and not on the number of copies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from ...simulate.model.workload import Workload
from ...simulate.wording import count


class Episodes:
    """Episodes of some traces.

    Args:
        traces: what they are of.
        length: jobs of an episode.
        starts: first jobs of the episodes that are drawn, counted through all traces; None: any that is possible.

    Attributes:
        generators: of each copy, after `seed`.

    Raises:
        ConfigError: the traces have no such episode.
    """

    def __init__(self, traces: Sequence[Workload], length: int, starts: Array | None) -> None:
        self._length, self._total = length, sum(map(len, traces))
        self.generators = list[np.random.Generator]()
        self._starts = self.checked(_possible_starts(traces, length) if starts is None else starts)

    def seed(self, seed: int, copies: int) -> None:
        """Make the generators of so many copies."""
        self.generators = [np.random.default_rng([seed, copy]) for copy in range(copies)]

    def draw(self, upcoming: Array, copies: Sequence[int]) -> None:
        """Write the first jobs of the next episodes of some copies into `upcoming` [all copies]."""
        for copy in copies:
            upcoming[copy] = self._starts[self.generators[copy].integers(len(self._starts))]

    def checked(self, starts: Array | Sequence[int]) -> Array:
        """Return the first jobs of episodes. Raises ConfigError: one does not fit into the traces."""
        starts, last = np.asarray(starts, np.int64), self._total - self._length
        if not len(starts) or starts.min() < 0 or starts.max() > last:
            problem = f"{count(self._total, 'job')}, episodes of {self._length:,}"
            raise ConfigError("environment", "starts", problem, f"first jobs from 0 to {last}" if last >= 0 else "")
        return starts


def check_numbers(**numbers: int) -> None:
    """Raise ConfigError if a number, by its name, is below 1."""
    for key, number in numbers.items():
        if number < 1:
            raise ConfigError("environment", key, repr(number), "1 or more")


def _possible_starts(traces: Sequence[Workload], length: int) -> Array:
    """Return the first jobs of all episodes, counted through all traces."""
    first, ranges = 0, list[Array]()
    for trace in traces:
        ranges.append(np.arange(first, first + max(len(trace) - length + 1, 0)))
        first += len(trace)
    return np.concatenate(ranges)
