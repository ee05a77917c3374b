"""Choose the constants of prediction on synthetic users: `python -m benchmarks.prediction_constants`, some minutes.

Rule: a combination is admissible if it predicts too little no more often than the last-two predictor, on average over
the scenarios and up to MOST_MORE in each; until batches counted, MOST_MORE was 0. Of those within CLOSE of the least
error, the one that predicts too little least often is chosen. Real traces are used only to judge the result
(docs/guides/prediction.md).
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
from pilotfish.profiles.prediction.predictors import AGEING, POWER, QUANTILE, Estimate, History, LastTwo

QUANTILES, POWERS, AGEINGS = (0.65, 0.7, 0.75), (0.0, 0.5, 1.0), (0.7, 0.8, 0.9)
JOBS, SEEDS = 3000, 4
CLOSE, MOST_MORE = 1.05, 0.05
Constants = tuple[float, float, float]
BestRuns = tuple[float, float]


def choose(worths: Mapping[Constants, list[BestRuns]]) -> list[Constants]:
    """Return the admissible constants: the chosen ones first, then by error.

    Args:
        worths: for each combination and scenario: (error / last-two's error, share too low - last-two's share).
    """
    more = {one: [share for _, share in scores] for one, scores in worths.items()}
    admissible = [one for one, shares in more.items() if fmean(shares) <= 0 and max(shares) <= MOST_MORE]
    errors = {one: _error(worths[one]) for one in admissible}
    ranked = sorted(errors, key=errors.__getitem__)
    close = [one for one in ranked if errors[one] <= CLOSE * errors[ranked[0]]]
    first = min(close, key=lambda one: fmean(more[one]))
    return [first, *(one for one in ranked if one != first)]


def _error(worths: list[BestRuns]) -> float:
    """Return the geometric mean of the errors."""
    return exp(fmean(log(error) for error, _ in worths))


def measured(scenario: Scenario, seed: int) -> dict[Constants, BestRuns]:
    """Return the scores of all combinations on one workload."""
    trace = traced(synthetic_users(scenario, JOBS, seed))
    error, low = _worth(trace, LastTwo())
    scores = {}
    for constants in product(QUANTILES, POWERS, AGEINGS):
        own_error, own_low = _worth(trace, History(*constants))
        scores[constants] = own_error / error, own_low - low
    return scores


def _worth(trace: TracedJobs, predictor: Estimate) -> BestRuns:
    predicted = np.array([one.value for one in predict_all(trace, predictor) if one])
    actual = trace.values
    return float(np.abs(predicted - actual).mean()), float((predicted < actual).mean())


def _by_scenario(seeds: int) -> Iterator[dict[Constants, BestRuns]]:
    """Yield the mean scores over the seeds, for each scenario."""
    tasks = list(product(SCENARIOS, range(seeds)))
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(measured, *zip(*tasks, strict=True)))
    for scenario in SCENARIOS:
        of_scenario = [one for (task_scenario, _), one in zip(tasks, results, strict=True) if task_scenario is scenario]
        yield {
            key: (_error([one[key] for one in of_scenario]), fmean(one[key][1] for one in of_scenario))
            for key in of_scenario[0]
        }


def main(seeds: int = SEEDS) -> None:
    """Print the chosen constants, the next best ones, and those in use."""
    scenarios = list(_by_scenario(seeds))
    worths = {key: [scenario[key] for scenario in scenarios] for key in scenarios[0]}
    today = (QUANTILE, POWER, AGEING)
    rows = []
    for key in dict.fromkeys([*choose(worths)[:10], today]):
        more = [share for _, share in worths[key]]
        errors = f"{_error(worths[key]):.3f}", *(f"{100 * points:+.1f} points" for points in (fmean(more), max(more)))
        rows.append([*map(str, key), *errors, "in use" if key == today else ""])
    table(["quantile", "power", "ageing", "error / last two", "too low", "worst scenario", ""], rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
