"""The constants of prediction, chosen on made-up users: `python -m tests.benchmarks.choosing`, some minutes.

Rule: those are eligible that predict too little no more often than the last two jobs do, in any of the worlds; of all
that come within CLOSE of the least error, the one that forgets fastest is chosen. Traces have no say: on them it is
judged what comes of it (docs/prediction.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from math import exp, log
from statistics import fmean

import numpy as np

from pilotfish.profiles.prediction.baselines import LastTwo
from pilotfish.profiles.prediction.history import QUANTILE, WEIGHTS, History
from pilotfish.profiles.prediction.jobs import Predictor
from pilotfish.profiles.prediction.online import predict_all
from pilotfish.profiles.prediction.trace import Traced, traced
from pilotfish.profiles.prediction.weights import Weights

from .habits import WORLDS, World, made_up
from .show import table

QUANTILES = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)
LATEST, AGEING = (10, 25, 50, 100), (0.9, 0.95, 0.98, 1.0)
JOBS, SEEDS = 3000, 4
CLOSE = 1.05
Constants = tuple[float, int, float]
Worth = tuple[float, float]


def choose(worths: Mapping[Constants, list[Worth]]) -> list[Constants]:
    """Constants, the chosen one first, then by their error; those that predict too little too often are left out.

    Args:
        worths: of each, in each world: (error / that of the last two, share too low - that of the last two).
    """
    errors = {one: _error(found) for one, found in worths.items() if max(more for _, more in found) <= 0}
    ranked = sorted(errors, key=errors.__getitem__)
    close = [one for one in ranked if errors[one] <= CLOSE * errors[ranked[0]]]
    first = min(close, key=_memory)
    return [first, *(one for one in ranked if one != first)]


def _memory(constants: Constants) -> float:
    """How many jobs count, by their weights."""
    _, latest, ageing = constants
    return sum(ageing**age for age in range(1, latest + 1))


def _error(worths: list[Worth]) -> float:
    """The geometric mean of errors."""
    return exp(fmean(log(error) for error, _ in worths))


def measured(world: World, seed: int) -> dict[Constants, Worth]:
    """What each of the constants is worth on one workload."""
    trace = traced(made_up(world, JOBS, seed))
    error, low = _worth(trace, LastTwo())
    found = {}
    for quantile, latest, ageing in product(QUANTILES, LATEST, AGEING):
        own_error, own_low = _worth(trace, History(quantile, Weights(latest, ageing)))
        found[quantile, latest, ageing] = own_error / error, own_low - low
    return found


def _worth(trace: Traced, predictor: Predictor) -> Worth:
    predicted = np.array([one.value for one in predict_all(trace.observed, predictor) if one])
    actual = trace.observed.values
    return float(np.abs(predicted - actual).mean()), float((predicted < actual).mean())


def _by_world(seeds: int) -> Iterator[dict[Constants, Worth]]:
    """Means over the seeds, for each world."""
    tasks = list(product(WORLDS, range(seeds)))
    with ProcessPoolExecutor() as crew:
        found = list(crew.map(measured, *zip(*tasks, strict=True)))
    for world in WORLDS:
        own = [one for (other, _), one in zip(tasks, found, strict=True) if other is world]
        yield {key: (_error([one[key] for one in own]), fmean(one[key][1] for one in own)) for key in own[0]}


def main(seeds: int = SEEDS) -> None:
    """Print what is chosen, the best after it, and what is in use."""
    worlds = list(_by_world(seeds))
    worths = {key: [world[key] for world in worlds] for key in worlds[0]}
    today = (QUANTILE, WEIGHTS.latest, WEIGHTS.ageing)
    rows = []
    for key in dict.fromkeys([*choose(worths)[:10], today]):
        errors = f"{_error(worths[key]):.3f}", f"{100 * max(more for _, more in worths[key]):+.1f} points"
        rows.append([*map(str, key), *errors, "in use" if key == today else ""])
    table(["quantile", "latest", "ageing", "error / last two", "too low, worst world", ""], rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
