"""The search for the weights of a learned order inside exact EASY backfilling, by CMA-ES.

Rule: each generation sees one new shaken copy of each trace, the same for all its points; the value of a point is the
mean over the traces of the logarithm of the objective. The search begins at the rule that is best on the traces,
written as weights, and its result is the mean of the last generation. The bound on waits holds in the search, too.
Ancestor: J. Lelong, V. Reis, D. Trystram, "Tuning EASY-backfilling queues" (JSSPP 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..simulate.arrays import Array
from ..simulate.queue_policies.learned_order import FEATURES, MAX_WAIT_S, LearnedOrder
from ..simulate.queue_policies.policy_facts import PolicySpec
from ..simulate.queue_policies.policy_specs import Easy
from ..simulate.replay.replay import replay
from .cma_es import CmaEs
from .objectives import OBJECTIVES, metrics
from .traces import Trace

#: Weight of a rule's one feature where a search begins.
_STRENGTH = 2.0
#: Rules that are weights: name -> the weight of each of FEATURES.
RULES: dict[str, tuple[float, ...]] = {
    name: tuple(weight if place == feature else 0.0 for place in range(len(FEATURES)))
    for name, feature, weight in (
        ("first come, first served", 3, -_STRENGTH),
        ("shortest limit first", 0, _STRENGTH),
        ("shortest expected run time first", 2, _STRENGTH),
        ("fewest resources first", 1, _STRENGTH),
    )
}
#: First seeds of the copies that a search judges its result by; no generation sees them.
_JUDGING_SEED, _JUDGED_COPIES = 10**9, 5


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of a search.

    Args:
        objective: a key of OBJECTIVES.
        generations, population: replays of each trace are their product.
        sigma: first step size of each weight.
        max_wait: see `LearnedOrder`.
    """

    objective: str = "bsld"
    generations: int = 24
    population: int = 14
    sigma: float = 0.15
    max_wait: float = MAX_WAIT_S


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    Args:
        seed: its seed.
        start: the rule that it began at.
        weights: the mean of the last generation.
        value: of the weights, over copies that no generation saw: mean logarithm of the objective.
        start_value: that of the rule, over the same copies.
        course: mean value of each generation.
    """

    seed: int
    start: str
    weights: tuple[float, ...]
    value: float
    start_value: float
    course: tuple[float, ...]


def search(
    traces: Sequence[Trace], options: SearchOptions, seed: int, progress: Callable[[int, float], None] | None = None
) -> Search:
    """Search for weights. Raises ConfigError if a trace cannot be replayed.

    Args:
        traces: what to learn from.
        options: of the search.
        seed: of the search and of the shaken copies.
        progress: called after each generation with its number, from 1, and its mean value.
    """
    judging = [_copies(traces, _JUDGING_SEED + number) for number in range(_JUDGED_COPIES)]

    def judged(weights: Sequence[float]) -> float:
        return float(np.mean([value_of(weights, copies, options) for copies in judging]))

    values = {name: judged(weights) for name, weights in RULES.items()}
    start = min(values, key=values.__getitem__)
    search_state = CmaEs(np.array(RULES[start]), options.sigma, seed, options.population)
    course = list[float]()
    for generation in range(options.generations):
        copies = _copies(traces, seed * 100_000 + generation)
        points = search_state.points()
        results = np.array([value_of(point.tolist(), copies, options) for point in points])
        search_state.learn(points, results)
        course.append(float(results.mean()))
        if progress is not None:
            progress(generation + 1, course[-1])
    weights = tuple(search_state.mean.tolist())
    return Search(seed, start, weights, judged(weights), values[start], tuple(course))


def value_of(weights: Sequence[float], copies: Sequence[Trace], options: SearchOptions) -> float:
    """Return the mean logarithm of the objective over traces; infinite where an order leaves jobs out."""
    order = LearnedOrder("", tuple(weights), options.max_wait)
    return float(np.mean([math.log(objective_of(trace, Easy(order=order), options.objective)) for trace in copies]))


def objective_of(trace: Trace, policy: PolicySpec, objective: str) -> float:
    """Return the objective of a replay of a trace under a policy."""
    return OBJECTIVES[objective](metrics(replay(trace.jobs, trace.processors, policy)))


def _copies(traces: Sequence[Trace], seed: int) -> list[Trace]:
    return [trace.shaken(seed + place * 7919) for place, trace in enumerate(traces)]


def seen_quantiles(traces: Sequence[Trace], order: LearnedOrder) -> dict[str, Array]:
    """Return 33 quantiles of what jobs of the traces look like: limit, size and run time of each.

    Args:
        traces: what was learned from.
        order: the order, whose replays they are taken from.
    """
    grades, columns = np.linspace(0.0, 1.0, 33), dict[str, list[Array]]()
    for trace in traces:
        jobs = trace.jobs
        replayed = replay(jobs, trace.processors, Easy(order=order))
        waits = replayed.start_time - jobs.submit_time
        parts = {"limit": jobs.walltime, "share": jobs.size / trace.processors, "wait": waits[~np.isnan(waits)]}
        for name, column in parts.items():
            columns.setdefault(name, []).append(column)
    return {name: np.quantile(np.concatenate(parts), grades) for name, parts in columns.items()}
