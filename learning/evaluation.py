"""The verdict on a learned order: against every exact rival, on shaken copies, paired, with intervals.

Rule: all sides replay the same copies. A ratio is the geometric mean over copies, and over training seeds where there
are several; its interval of 95 % is of a bootstrap over both. "Beats" means that the upper end is below 1 after Holm's
correction over the traces. The rival is the one that was best on the traces of the training; the best in hindsight
is named, too. What is worse is printed as what is better is.
Sources: B. Efron, R. Tibshirani, "An Introduction to the Bootstrap" (1993); S. Holm, "A Simple Sequentially Rejective
Multiple Test Procedure" (1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..simulate.arrays import Array
from .traces import Trace

#: Returns the numbers of a policy on a trace.
Numbers = Callable[[Trace], dict[str, float]]

#: Draws of the bootstrap, and the share of them in an interval.
DRAWS, LEVEL = 10_000, 0.95
#: First seed of the copies; searches use others.
_COPY_SEED = 2 * 10**9


@dataclass(frozen=True, slots=True)
class Scores:
    """The numbers of contenders on the copies of a trace.

    Args:
        trace: its name.
        numbers: contender -> number of `metrics` -> its values [copies].
    """

    trace: str
    numbers: dict[str, dict[str, Array]]

    def mean(self, contender: str, number: str) -> float:
        """Return the geometric mean of a contender's number over the copies; numbers of 0 count as 1e-9."""
        return float(np.exp(np.log(np.maximum(self.numbers[contender][number], 1e-9)).mean()))

    def best(self, contenders: Sequence[str], number: str) -> str:
        """Return the contender with the smallest mean; the first of equal ones."""
        return min(contenders, key=lambda name: self.mean(name, number))


@dataclass(frozen=True, slots=True)
class Verdict:
    """A learned order against one rival on one trace.

    Args:
        ratio: geometric mean of the order's number over the rival's; below 1 is better.
        low, high: interval of 95 %.
        p_value: of "it is not better", one-sided, from the same draws.
        won: share of copies and seeds with a ratio below 1.
        longest_wait: geometric mean ratio of the longest wait.
        least, most: of the ratios of one copy and seed.
    """

    trace: str
    rival: str
    ratio: float
    low: float
    high: float
    p_value: float
    won: float
    longest_wait: float
    least: float
    most: float


def scores(trace: Trace, contenders: Mapping[str, Numbers], copies: int, first: int = 0) -> Scores:
    """Replay shaken copies of a trace under each contender.

    Args:
        trace: the trace.
        contenders: replays a copy, by the name of the contender.
        copies: number of copies, 1 or more.
        first: number of the first copy.
    """
    results = dict[str, list[dict[str, float]]]()
    for number in range(first, first + copies):
        copy = trace.shaken(_COPY_SEED + number)
        for name, numbers in contenders.items():
            results.setdefault(name, []).append(numbers(copy))
    return Scores(
        trace.name,
        {name: {key: np.array([row[key] for row in rows]) for key in rows[0]} for name, rows in results.items()},
    )


def verdict(scored: Scores, learned: Sequence[str], rival: str, number: str, seed: int = 0) -> Verdict:
    """Return how learned orders compare with a rival.

    Args:
        scored: the numbers of all.
        learned: names of the orders, one a training seed.
        rival: name of the rival.
        number: a key of `metrics`.
        seed: of the draws.
    """
    ratios = _log_ratios(scored, learned, rival, number)
    longest = _log_ratios(scored, learned, rival, "longest_wait").mean()
    return Verdict(
        scored.trace, rival, *interval(ratios, seed), won=float((ratios < 0.0).mean()), longest_wait=math.exp(longest),
        least=math.exp(ratios.min()), most=math.exp(ratios.max()),
    )  # fmt: skip


def interval(log_ratios: Array, seed: int = 0) -> tuple[float, float, float, float]:
    """Return a geometric mean ratio, the ends of its interval, and the p-value of "it is not below 1".

    Args:
        log_ratios: logarithms of the ratios [training seeds, copies].
        seed: of the draws.
    """
    generator = np.random.default_rng(seed)
    seeds, copies = (
        generator.multinomial(size, [1.0 / size] * size, DRAWS) / size for size in log_ratios.shape
    )  # how often each is drawn, as shares
    draws = ((seeds @ log_ratios) * copies).sum(axis=1)
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.exp(np.quantile(draws, (tail, 1.0 - tail)))
    return math.exp(log_ratios.mean()), float(low), float(high), float(((draws >= 0.0).sum() + 1) / (DRAWS + 1))


def _log_ratios(scored: Scores, learned: Sequence[str], rival: str, number: str) -> Array:
    """Return the logarithms of an order's number over the rival's [seeds, copies]."""
    base = np.log(np.maximum(scored.numbers[rival][number], 1e-9))
    return np.array([np.log(np.maximum(scored.numbers[name][number], 1e-9)) - base for name in learned])


def beaten(verdicts: Sequence[Verdict]) -> list[bool]:
    """Return for each verdict whether the rival is beaten, by Holm's correction over them."""
    order = sorted(range(len(verdicts)), key=lambda place: verdicts[place].p_value)
    beats = [False] * len(verdicts)
    for rank, place in enumerate(order):
        if verdicts[place].p_value > (1.0 - LEVEL) / 2.0 / (len(verdicts) - rank):
            break
        beats[place] = verdicts[place].high < 1.0
    return beats
