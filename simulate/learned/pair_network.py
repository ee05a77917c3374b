"""The network of a model that chooses a waiting job and a node: it scores each pair; the largest score is taken.

Rule: sums have a fixed order and no library of linear algebra, so the same model gives the same scores on each machine.
Scores are rounded to 40 bits (Veltkamp's splitting).
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), section 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array

#: Version of what a pair's columns mean; another meaning, order or constant is another version.
PAIR_FEATURES = "pairs/1"
#: Columns of a pair: of the job, then of the node. Each is from 0 to 1.
PAIR_COLUMNS = (
    "wait", "requested time", "size", "fits a node now", "processors", "share of them that is free", "speed",
)  # fmt: skip
#: Weights from each input to each output [inputs][outputs], and what is added to each output.
Layer = tuple[tuple[tuple[float, ...], ...], tuple[float, ...]]
_ROUND = 8193.0


class PairNetwork:
    """The network: dense layers with ReLU between them; its output is one number a pair.

    Args:
        layers: the first has an input for each of PAIR_COLUMNS, the last one output.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = [(np.array(weights), np.array(biases)) for weights, biases in layers]

    def scores(self, rows: Array) -> Array:
        """Return the score of each pair [pairs]. O(pairs x weights).

        Args:
            rows: PAIR_COLUMNS of each [pairs, columns].
        """
        values = rows.astype(np.float64)
        for number, (weights, biases) in enumerate(self._layers, 1):
            sums = np.broadcast_to(biases, (len(rows), len(biases))).copy()
            for column, part in zip(values.T, weights, strict=True):
                sums += column[:, None] * part
            values = np.maximum(sums, 0.0) if number < len(self._layers) else sums
        large = values[:, 0] * _ROUND
        scores: Array = large - (large - values[:, 0])
        return scores
