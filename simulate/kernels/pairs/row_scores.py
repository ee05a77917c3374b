"""Scores of many rows by a small network of dense layers with ReLU between them.

Rule: each sum begins with the bias and adds the products in the order of the inputs, each rounded by itself, so the
scores are those of `PairNetwork` without rounding, to the bit. Rows are taken LANES at a time, so that one vector
instruction serves several.
Complexity: O(rows x weights).
"""

from __future__ import annotations

from ..compile import register
from ..jit import inner
from .tables import LANES, ScoredRows

ScoredRowsType = register(ScoredRows, __name__)


@inner
def call(network: ScoredRows) -> int:
    """Write the score of each row; return 0."""
    rows, scores, last = network.rows, network.scores, len(network.widths) - 2
    inputs, sums = network.inputs, network.sums
    for first in range(0, len(scores), LANES):
        lanes = min(LANES, len(scores) - first)
        for column in range(network.widths[0]):
            for lane in range(lanes):
                inputs[column, lane] = rows[column, first + lane]
        at = 0
        for layer in range(last + 1):
            at = _pass(network, network.widths[layer], network.widths[layer + 1], at)
            for column in range(network.widths[layer + 1]):
                for lane in range(LANES):
                    value = sums[column, lane]
                    inputs[column, lane] = value if layer == last or value > 0.0 else 0.0
        for lane in range(lanes):
            scores[first + lane] = inputs[0, lane]
    return 0


@inner
def _pass(network: ScoredRows, width: int, outputs: int, at: int) -> int:
    """Write the sums of a layer, whose numbers begin at `at`; return where those of the next layer begin."""
    inputs, sums, numbers = network.inputs, network.sums, network.numbers
    for column in range(outputs):
        row = sums[column]
        row[:] = numbers[at]
        at += 1
        for source in range(0, width - 3, 4):  # four at a time, so that the sums are read and written less often
            a, b, c, d = inputs[source], inputs[source + 1], inputs[source + 2], inputs[source + 3]
            of_a, of_b, of_c, of_d = numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]
            at += 4
            for lane in range(LANES):
                row[lane] = (((row[lane] + of_a * a[lane]) + of_b * b[lane]) + of_c * c[lane]) + of_d * d[lane]
        for source in range(width - width % 4, width):
            values, weight = inputs[source], numbers[at]
            at += 1
            for lane in range(LANES):
                row[lane] += weight * values[lane]
    return at


SIGNATURES = {"pairs.row_scores": (ScoredRowsType(),)}
