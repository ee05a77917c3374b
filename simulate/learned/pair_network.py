"""The network of a model that chooses a waiting job and a node: it scores each pair; the largest score is taken.

Rule: sums have a fixed order and no library of linear algebra, so the same model gives the same scores on each machine.
Scores are rounded to 40 bits (Veltkamp's splitting).
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..kernels.object_cache import is_warm, load
from ..kernels.pairs.tables import LANES, ScoredRows

#: The kernel that scores many rows.
KERNEL = "pairs.row_scores"
#: Version of what a pair's columns mean; another meaning, order or constant is another version.
PAIR_FEATURES = "pairs/1"
#: Columns of a pair: of the job, then of the node. Each is from 0 to 1.
PAIR_COLUMNS = (
    "wait", "requested time", "size", "fits a node now", "processors", "share of them that is free", "speed",
)  # fmt: skip
#: The first of them are those of the job.
JOB_COLUMNS = 4
#: Weights from each input to each output [inputs][outputs], and what is added to each output.
Layer = tuple[tuple[tuple[float, ...], ...], tuple[float, ...]]
#: The most that is seen of anything, as in the kernel `pairs.placements`.
MOST_SEEN = 1.0 - 1e-5
_ROUND = 8193.0
#: Pairs that are scored at once, so that what is between layers stays in a processor's cache.
_BLOCK = 256
#: Rows from which on the kernel is faster.
_MANY = 32


@dataclass(frozen=True, slots=True)
class PairSight:
    """The view of a network, and when it is asked.

    Args:
        due: a decision is due when `any` visible job fits a node, or when the `largest` waiting job does.
        rows: jobs that it sees, the first in the order of submission.
        longest: requested time that is seen as 1, seconds.
        patience: wait that is seen as 1, seconds.
        logarithmic: requested times are seen on a logarithmic scale.
    """

    due: str
    rows: int
    longest: float
    patience: float
    logarithmic: bool

    def requested(self, seconds: float) -> float:
        """Return how a requested time is seen."""
        if self.logarithmic:
            return min(math.log1p(seconds) / math.log1p(self.longest), MOST_SEEN)
        return min(seconds / self.longest, MOST_SEEN)


class PairNetwork:
    """The network: dense layers with ReLU between them; its output is one number a pair, or a job.

    Args:
        layers: the first has an input for each of PAIR_COLUMNS or of a job's columns, the last one output.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = [(np.array(weights), np.array(biases)) for weights, biases in layers]
        self._widths = np.array([len(layers[0][0]), *(len(biases) for _, biases in layers)], np.int64)
        columns = [np.concatenate([biases[None], weights]).T.ravel() for weights, biases in self._layers]
        self._numbers: Array = np.concatenate(columns)

    def scores(self, rows: Array) -> Array:
        """Return the score of each pair [pairs]. O(pairs x weights).

        A compiled kernel gives the same bits for many pairs sooner; a process that has none does not wait for it.

        Args:
            rows: PAIR_COLUMNS of each [pairs, columns].
        """
        scores = self._compiled(rows) if len(rows) >= _MANY and is_warm(KERNEL) else self._plain(rows)
        large = scores * _ROUND
        return large - (large - scores)

    def _compiled(self, rows: Array) -> Array:
        columns = np.ascontiguousarray(rows.T, np.float64)
        buffer = (int(self._widths.max()), LANES)
        network = ScoredRows(
            {"widths": self._widths, "numbers": self._numbers, "rows": columns},
            {"scores": (len(rows),), "inputs": buffer, "sums": buffer},
        )
        load(KERNEL)(network.address)
        scores: Array = network.scores
        return scores

    def _plain(self, rows: Array) -> Array:
        scores = np.empty(len(rows))
        for first in range(0, len(rows), _BLOCK):
            values = rows[first : first + _BLOCK].astype(np.float64).T
            for number, (weights, biases) in enumerate(self._layers, 1):
                sums = np.repeat(biases[:, None], values.shape[1], axis=1)
                product = np.empty_like(sums)
                for inputs, part in zip(values, weights, strict=True):
                    np.multiply(part[:, None], inputs, out=product)
                    sums += product
                values = np.maximum(sums, 0.0, out=sums) if number < len(self._layers) else sums
            scores[first : first + _BLOCK] = values[0]
        return scores
