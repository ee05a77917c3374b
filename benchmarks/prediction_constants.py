"""Choose the constants of prediction on synthetic users: `python -m benchmarks.prediction_constants`, some minutes.

Rule: a combination is eligible if it never predicts too little more often than the last-two predictor, in any scenario.
Of those within CLOSE of the least error, the one with the shortest memory is chosen. Real traces are used only to judge
the result (docs/guides/prediction.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from math import exp, log
from statistics import fmean

import numpy as np

from pilotfish.benchmarks.show import table
from pilotfish.benchmarks.synthetic_users import SCENARIOS, Scenario, synthetic_users
from pilotfish.profiles.prediction.evaluate import TracedJobs, predict_all, traced
from pilotfish.profiles.prediction.predictors import QUANTILE, WEIGHTS, Estimate, History, LastTwo, Weights

QUANTILES = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)
LATEST, AGEING = (10, 25, 50, 100), (0.9, 0.95, 0.98, 1.0)
JOBS, SEEDS = 3000, 4
CLOSE = 1.05
Constants = tuple[float, int, float]
BestRuns = tuple[float, float]


def choose(worths: Mapping[Constants, list[BestRuns]]) -> list[Constants]:
    """Return the eligible constants: the chosen ones first, then by error.

    Args:
        worths: for each combination and scenario: (error / last-two's error, share too low - last-two's share).
    """
    errors = {one: _error(found) for one, found in worths.items() if max(more for _, more in found) <= 0}
    ranked = sorted(errors, key=errors.__getitem__)
    close = [one for one in ranked if errors[one] <= CLOSE * errors[ranked[0]]]
    first = min(close, key=_memory)
    return [first, *(one for one in ranked if one != first)]


def _memory(constants: Constants) -> float:
    """Return the sum of the weights of past jobs."""
    _, latest, ageing = constants
    return sum(ageing**age for age in range(1, latest + 1))


def _error(worths: list[BestRuns]) -> float:
    """Return the geometric mean of the errors."""
    return exp(fmean(log(error) for error, _ in worths))


def measured(scenario: Scenario, seed: int) -> dict[Constants, BestRuns]:
    """Return the scores of all combinations on one workload."""
    trace = traced(synthetic_users(scenario, JOBS, seed))
    error, low = _worth(trace, LastTwo())
    found = {}
    for quantile, latest, ageing in product(QUANTILES, LATEST, AGEING):
        own_error, own_low = _worth(trace, History(quantile, Weights(latest, ageing)))
        found[quantile, latest, ageing] = own_error / error, own_low - low
    return found


def _worth(trace: TracedJobs, predictor: Estimate) -> BestRuns:
    predicted = np.array([one.value for one in predict_all(trace, predictor) if one])
    actual = trace.values
    return float(np.abs(predicted - actual).mean()), float((predicted < actual).mean())


def _by_scenario(seeds: int) -> Iterator[dict[Constants, BestRuns]]:
    """Yield the mean scores over the seeds, for each scenario."""
    tasks = list(product(SCENARIOS, range(seeds)))
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(measured, *zip(*tasks, strict=True)))
    for scenario in SCENARIOS:
        own = [one for (other, _), one in zip(tasks, found, strict=True) if other is scenario]
        yield {key: (_error([one[key] for one in own]), fmean(one[key][1] for one in own)) for key in own[0]}


def main(seeds: int = SEEDS) -> None:
    """Print the chosen constants, the next best ones, and those in use."""
    scenarios = list(_by_scenario(seeds))
    worths = {key: [scenario[key] for scenario in scenarios] for key in scenarios[0]}
    today = (QUANTILE, WEIGHTS.latest, WEIGHTS.ageing)
    rows = []
    for key in dict.fromkeys([*choose(worths)[:10], today]):
        errors = f"{_error(worths[key]):.3f}", f"{100 * max(more for _, more in worths[key]):+.1f} points"
        rows.append([*map(str, key), *errors, "in use" if key == today else ""])
    table(["quantile", "latest", "ageing", "error / last two", "too low, worst scenario", ""], rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
