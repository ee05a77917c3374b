"""The search for the weights of a learned order inside exact EASY backfilling, by CMA-ES.

Rule: each generation sees one new shaken copy of each trace, the same for all its points; the value of a point is the
mean over the traces of the logarithm of the objective. The baseline is the EASY variant that is best on the traces. No
job waits for longer than a factor times the baseline's longest wait before it goes first, in the search as afterwards:
the bound follows the load. The search begins at the rule that is best under this bound, written as weights, and its
result is the mean of the last generation, or the rule where that is better.
Ancestor: J. Lelong, V. Reis, D. Trystram, "Tuning EASY-backfilling queues" (JSSPP 2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..simulate.arrays import Array
from ..simulate.queue_policies.learned_order import LearnedOrder
from .cma_es import CmaEs
from .contenders import RULES, Contender, Predicting, RecordedRunTimes, contender, numbers_of, replayed, variants
from .objectives import OBJECTIVES
from .order_kinds import KINDS
from .traces import Trace

#: First seeds of the copies that a search judges its result by; no generation sees them.
_JUDGING_SEED, _JUDGED_COPIES = 10**9, 5
#: How long a job waits before it goes first, in longest waits of the baseline.
PATIENCE = 1.25
#: Least bound on waits, seconds, where a baseline lets jobs hardly wait.
LEAST_WAIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of a search.

    Args:
        objective: a key of OBJECTIVES.
        generations, population: replays of each trace are their product.
        sigma: first step size of each weight.
        kind: a key of `order_kinds.KINDS`.
        max_wait: see `LearnedOrder`, seconds; None: `patience` times the longest wait of the baseline.
        patience: above 0.
    """

    objective: str = "bsld"
    generations: int = 24
    population: int = 14
    sigma: float = 0.15
    max_wait: float | None = None
    patience: float = PATIENCE
    kind: str = "linear"


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a search; it depends on the traces and not on the seed.

    Args:
        baseline: the best variant of EASY backfilling.
        baseline_value: mean logarithm of its objective over the judged copies.
        longest_wait: its longest wait, mean over the copies, seconds.
        max_wait: the bound on waits, seconds.
        rule: a key of RULES, the best one under the bound.
        predicted: whether the rule knows predicted run times.
        value: as `baseline_value`, of the rule.
    """

    baseline: Contender
    baseline_value: float
    longest_wait: float
    max_wait: float
    rule: str
    predicted: bool
    value: float


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    Args:
        seed: its seed.
        weights: the mean of the last generation: of the queue, or of kind `fill`, of the jobs behind the reservation.
        value: of the weights, over copies that no generation saw: mean logarithm of the objective.
        longest_wait: mean over these copies, seconds.
        course: mean value of each generation.
        is_rule: the weights are those of the rule, because the search found none that are better on those copies.
        state: of the distribution, as plain numbers; the search can go on from it.
    """

    seed: int
    weights: tuple[float, ...]
    value: float
    longest_wait: float
    course: tuple[float, ...]
    is_rule: bool
    state: dict[str, Any]


def start_of(traces: Sequence[Trace], options: SearchOptions, predict: Predicting | None = None) -> Start:
    """Return what searches on some traces begin with. Raises ConfigError if a trace cannot be replayed.

    Args:
        traces: what to learn from.
        options: of the search.
        predict: makes predictors of run times; None: nothing is predicted.
    """
    judging = _judging(traces)
    predicting = predict is not None
    judged = [(*_judged(side, judging, options, predict), side) for side in variants(predicting)]
    value, longest, baseline = min(judged, key=lambda row: row[0])
    bound = options.max_wait
    if bound is None:
        bound = max(options.patience * longest, LEAST_WAIT_S)
    starts = [
        (_judged(contender(LearnedOrder(name, weights, bound), predicted=predicted), judging, options, predict)[0],
         name, predicted)
        for predicted in (False, True)[: 1 + predicting]
        for name, weights in RULES.items()
    ]  # fmt: skip
    rule_value, rule, predicted = min(starts, key=lambda row: row[0])
    return Start(baseline, value, longest, bound, rule, predicted, rule_value)


def search(
    traces: Sequence[Trace], options: SearchOptions, start: Start, seed: int, predict: Predicting | None = None,
    *, until: int | None = None, earlier: Mapping[str, Any] | None = None,
) -> Search:  # fmt: skip
    """Search for weights; in stages, too, with the same result. Raises ConfigError if a trace cannot be replayed.

    Args:
        traces: what to learn from.
        options: of the search.
        start: of `start_of`.
        seed: of the search and of the shaken copies.
        predict: see `start_of`.
        until: how many generations it has at the end; None: all.
        earlier: `course` and `state` of a search with the same arguments that has fewer; None: it begins.
    """
    kind = KINDS[options.kind]
    first = tuple(kind.first(RULES[start.rule], seed).tolist())

    def order_of(weights: Sequence[float]) -> Contender:
        order = kind.order(weights, RULES[start.rule], start.max_wait)
        return contender(order, predicted=start.predicted)

    def judged(side: Contender, copies: Sequence[Trace], predictions: Sequence[Predicting | None]) -> float:
        rows = [numbers_of(copy, side, again) for copy, again in zip(copies, predictions, strict=True)]
        return _value(rows, options.objective)

    rule = order_of(first)
    distribution, course = CmaEs(np.array(first), options.sigma, seed, options.population), list[float]()
    if earlier is not None:
        distribution.restore(earlier["state"])
        course += earlier["course"]
    for generation in range(len(course), options.generations if until is None else until):
        copies = _copies(traces, seed * 100_000 + generation)
        predictions = [_recorded(copy, rule, predict) for copy in copies]
        points = distribution.points()
        results = np.array([judged(order_of(point.tolist()), copies, predictions) for point in points])
        distribution.learn(points, results)
        course.append(float(results.mean()))
    weights, is_rule = tuple(distribution.mean.tolist()), False
    value, longest = _judged(order_of(weights), _judging(traces), options, predict)
    if value >= start.value:
        weights, is_rule = first, True
        value, longest = _judged(rule, _judging(traces), options, predict)
    return Search(seed, weights, value, longest, tuple(course), is_rule, distribution.state())


def _recorded(trace: Trace, side: Contender, predict: Predicting | None) -> Predicting | None:
    """Return what makes the predictions of one replay of a trace, for others of it; None: they need none."""
    if predict is None or not side.predicted:
        return None
    run_times = RecordedRunTimes(trace, side, predict)
    return lambda _: run_times


def _judged(
    side: Contender, judging: Sequence[Sequence[Trace]], options: SearchOptions, predict: Predicting | None
) -> tuple[float, float]:
    """Return the value of a contender, and its longest wait in seconds, as means over copies."""
    rows = [[numbers_of(trace, side, predict) for trace in copies] for copies in judging]
    value = float(np.mean([_value(numbers, options.objective) for numbers in rows]))
    return value, float(np.mean([max(row["longest_wait"] for row in numbers) for numbers in rows]))


def _value(numbers: Sequence[dict[str, float]], objective: str) -> float:
    """Return the mean logarithm of the objective over the replays of some traces."""
    return float(np.mean([math.log(OBJECTIVES[objective](row)) for row in numbers]))


def _judging(traces: Sequence[Trace]) -> list[list[Trace]]:
    return [_copies(traces, _JUDGING_SEED + number) for number in range(_JUDGED_COPIES)]


def _copies(traces: Sequence[Trace], seed: int) -> list[Trace]:
    return [trace.shaken(seed + place * 7919) for place, trace in enumerate(traces)]


def seen_quantiles(traces: Sequence[Trace], side: Contender, predict: Predicting | None = None) -> dict[str, Array]:
    """Return 33 quantiles of what jobs of the traces look like: their limits, shares of the machine, and waits.

    Args:
        traces: what was learned from.
        side: the contender whose replays the waits are of.
        predict: see `start_of`.
    """
    grades, columns = np.linspace(0.0, 1.0, 33), dict[str, list[Array]]()
    for trace in traces:
        jobs = trace.jobs
        waits = replayed(trace, side, predict).start_time - jobs.submit_time
        parts = {"limit": jobs.walltime, "share": jobs.size / trace.processors, "wait": waits[~np.isnan(waits)]}
        for name, column in parts.items():
            columns.setdefault(name, []).append(column)
    return {name: np.quantile(np.concatenate(parts), grades) for name, parts in columns.items()}
