"""The search for the weights of a learned order inside exact EASY backfilling, by CMA-ES.

Rule: each generation sees one new redrawn copy of each trace, the same for all its points; the value of a point is the
mean over the traces of the logarithm of the objective. The baseline is the EASY variant that is best on the traces.
Beyond a factor times the baseline's longest wait on the same copy, a longer wait of a single job counts against a point
as much as the same factor in the objective. The bound after which a job goes first, in the search as afterwards, is
`LAST_RESORT` times as long: jobs behind a bound that is often reached are served first come, first served, and the load
of later days is another. The search begins at the rule that is best, written as weights, and its result is the mean of
the last generation, or the rule where that is better.
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

#: First seed of the copies that a search judges its result by; no generation sees them.
_JUDGING_SEED = 10**9
#: How long a job may wait at no cost for the search, in longest waits of the baseline.
PATIENCE = 1.25
#: How long a job waits before it goes first, in such waits.
LAST_RESORT = 2.4
#: Shorter waits cost a search nothing, seconds: a baseline may let jobs hardly wait.
LEAST_WAIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of a search.

    Args:
        objective: a key of OBJECTIVES.
        generations, population: replays of each trace are their product.
        sigma: first step size of each weight.
        kind: a key of `order_kinds.KINDS`.
        max_wait: see `LearnedOrder`, seconds; None: `LAST_RESORT` times `patience` longest waits of the baseline.
        patience: how long a job may wait at no cost for the search, in longest waits of the baseline; above 0.
        judged: copies of each trace that the result is judged by; 1 or more.
    """

    objective: str = "bsld"
    generations: int = 24
    population: int = 14
    sigma: float = 0.15
    max_wait: float | None = None
    patience: float = PATIENCE
    judged: int = 10
    kind: str = "linear"


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a search; it depends on the traces and not on the seed.

    Args:
        baseline: the best variant of EASY backfilling.
        baseline_value: mean logarithm of its objective over the judged copies.
        longest_waits: of the baseline, seconds, in each judged copy of each trace.
        baseline_excess: what its long waits cost it, see `Search`.
        max_wait: the bound on waits, seconds.
        rule: a key of RULES, the best one under the bound.
        predicted: whether the rule knows predicted run times.
        value, excess, rule_longest_wait: of the rule, see `Search`.
    """

    baseline: Contender
    baseline_value: float
    longest_waits: tuple[tuple[float, ...], ...]
    baseline_excess: float
    max_wait: float
    rule: str
    predicted: bool
    value: float
    excess: float
    rule_longest_wait: float

    @property
    def longest_wait(self) -> float:
        """The longest wait of the baseline in a copy, mean over the copies, seconds."""
        return float(np.mean([max(waits) for waits in self.longest_waits]))


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    Args:
        seed: its seed.
        weights: the mean of the last generation: of the queue, or of kind `fill`, of the jobs behind the reservation.
        value: of the weights, over copies that no generation saw: mean logarithm of the objective.
        excess: what long waits cost them there: mean logarithm of the longest wait over the longest one that costs
            nothing, 0 where it is shorter. A search wants the sum of the two to be small.
        longest_wait: mean over these copies, seconds.
        course: mean of that sum in each generation.
        is_rule: the weights are those of the rule, because the search found none that are better on those copies.
        state: of the distribution, as plain numbers; the search can go on from it.
    """

    seed: int
    weights: tuple[float, ...]
    value: float
    excess: float
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
    judging, predicting = _judging(traces, options.judged), predict is not None
    sides = [(side, _numbers(side, judging, predict)) for side in variants(predicting)]
    baseline, rows = min(sides, key=lambda one: _objective(one[1], options.objective))
    longest = tuple(tuple(row["longest_wait"] for row in numbers) for numbers in rows)
    excess = _mean_excess(rows, longest, options.patience)
    bound = options.max_wait
    if bound is None:
        bound = max(LAST_RESORT * options.patience * _longest(rows), LEAST_WAIT_S)
    rules = []
    for predicted in (False, True)[: 1 + predicting]:
        for name, weights in RULES.items():
            side = contender(LearnedOrder(name, weights, bound), predicted=predicted)
            judged = _judged(side, judging, longest, options, predict)
            rules.append((judged[0] + judged[1], name, predicted, judged))
    _, rule, predicted, judged = min(rules)
    return Start(baseline, _objective(rows, options.objective), longest, excess, bound, rule, predicted, *judged)


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

    rule = order_of(first)
    distribution, course = CmaEs(np.array(first), options.sigma, seed, options.population), list[float]()
    if earlier is not None:
        distribution.restore(earlier["state"])
        course += earlier["course"]
    for generation in range(len(course), options.generations if until is None else until):
        copies = _copies(traces, seed * 100_000 + generation)
        predictions = [_recorded(copy, rule, predict) for copy in copies]
        longest = [row["longest_wait"] for row in _replays(start.baseline, copies, predictions)]
        points, results = distribution.points(), []
        for point in points:
            rows = _replays(order_of(point.tolist()), copies, predictions)
            results.append(_value(rows, options.objective) + _excess(rows, longest, options.patience))
        distribution.learn(points, np.array(results))
        course.append(float(np.mean(results)))
    judging = _judging(traces, options.judged)
    weights, is_rule = tuple(distribution.mean.tolist()), False
    value, excess, waited = _judged(order_of(weights), judging, start.longest_waits, options, predict)
    if value + excess >= start.value + start.excess:
        weights, is_rule = first, True
        value, excess, waited = _judged(rule, judging, start.longest_waits, options, predict)
    return Search(seed, weights, value, excess, waited, tuple(course), is_rule, distribution.state())


def _recorded(trace: Trace, side: Contender, predict: Predicting | None) -> Predicting | None:
    """Return what makes the predictions of one replay of a trace, for others of it; None: they need none."""
    if predict is None or not side.predicted:
        return predict
    run_times = RecordedRunTimes(trace, side, predict)
    return lambda _: run_times


def _replays(
    side: Contender, copies: Sequence[Trace], predictions: Sequence[Predicting | None]
) -> list[dict[str, float]]:  # fmt: skip
    """Return the numbers of a contender on copies of the traces."""
    return [numbers_of(copy, side, predict) for copy, predict in zip(copies, predictions, strict=True)]


def _numbers(
    side: Contender, judging: Sequence[Sequence[Trace]], predict: Predicting | None
) -> list[list[dict[str, float]]]:
    """Return the numbers of a contender on each judged copy of each trace."""
    return [_replays(side, copies, [predict] * len(copies)) for copies in judging]


def _judged(
    side: Contender, judging: Sequence[Sequence[Trace]], allowed: Sequence[Sequence[float]], options: SearchOptions,
    predict: Predicting | None,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the value of a contender, its excess, and its longest wait in seconds, as means over copies.

    Args:
        side: the contender.
        judging: the copies.
        allowed: longest waits of the baseline, by copy and trace, seconds.
        options: of the search.
        predict: see `start_of`.
    """
    rows = _numbers(side, judging, predict)
    return _objective(rows, options.objective), _mean_excess(rows, allowed, options.patience), _longest(rows)


def _objective(rows: Sequence[Sequence[dict[str, float]]], objective: str) -> float:
    return float(np.mean([_value(numbers, objective) for numbers in rows]))


def _value(numbers: Sequence[dict[str, float]], objective: str) -> float:
    """Return the mean logarithm of the objective over the replays of some traces."""
    return float(np.mean([math.log(OBJECTIVES[objective](row)) for row in numbers]))


def _excess(numbers: Sequence[dict[str, float]], longest: Sequence[float], patience: float) -> float:
    """Return what the longest waits in the replays of some traces cost, see `Search`; `longest`: of the baseline."""
    ratios = [
        row["longest_wait"] / max(patience * wait, LEAST_WAIT_S) for row, wait in zip(numbers, longest, strict=True)
    ]
    return float(np.mean([math.log(max(ratio, 1.0)) for ratio in ratios]))


def _mean_excess(
    rows: Sequence[Sequence[dict[str, float]]], allowed: Sequence[Sequence[float]], patience: float
) -> float:  # fmt: skip
    """Return the mean of `_excess` over copies."""
    return float(np.mean([_excess(*one, patience) for one in zip(rows, allowed, strict=True)]))


def _longest(rows: Sequence[Sequence[dict[str, float]]]) -> float:
    """Return the longest wait in a copy of all traces, mean over the copies, seconds."""
    return float(np.mean([max(row["longest_wait"] for row in numbers) for numbers in rows]))


def _judging(traces: Sequence[Trace], copies: int) -> list[list[Trace]]:
    return [_copies(traces, _JUDGING_SEED + number) for number in range(copies)]


def _copies(traces: Sequence[Trace], seed: int) -> list[Trace]:
    return [trace.redrawn(seed + place * 7919) for place, trace in enumerate(traces)]


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
