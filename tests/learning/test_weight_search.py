"""The search for priority weights: it begins at the site's, learns from the first half alone, and is repeatable."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.learning.weight_search import (
    MOST,
    WEIGHTS,
    WeightOptions,
    Weights,
    first_half,
    is_later,
    of_later_jobs,
    search_weights,
    value_of,
    weights_of,
    with_weights,
)
from pilotfish.simulate.slurm.site import Site
from tests.simulate.slurm.test_site_effect import outcome, spread

START = dict.fromkeys(WEIGHTS, 0) | {"PriorityWeightAge": 1000}


def bowl(points: Sequence[Weights], seed: int) -> list[float]:
    """Return values that are least at an age of 10,000 and a size of 100."""
    best = {"PriorityWeightAge": 4.0, "PriorityWeightJobSize": 2.0}
    return [sum((math.log10(1 + point[name]) - at) ** 2 for name, at in best.items()) for point in points]


def test_it_finds_the_least_and_leaves_what_is_not_searched() -> None:
    searched = ["PriorityWeightAge", "PriorityWeightJobSize"]
    best = search_weights(START, searched, WeightOptions(generations=40, population=10), bowl)
    assert 5_000 < best["PriorityWeightAge"] < 20_000 and 50 < best["PriorityWeightJobSize"] < 200
    assert {name: best[name] for name in WEIGHTS if name not in searched} == {
        name: START[name] for name in WEIGHTS if name not in searched
    }


@given(st.integers(1, 50), st.integers(1, 4), st.integers(4, 8))
@settings(max_examples=30, deadline=None)
def test_the_same_seed_finds_the_same_and_all_weights_are_allowed(seed: int, generations: int, population: int) -> None:
    tried = list[Weights]()

    def values(points: Sequence[Weights], phase: int) -> list[float]:
        tried.extend(points)
        return bowl(points, phase)

    options = WeightOptions(generations=generations, population=population, sigma=3.0, seed=seed)
    first, second = (search_weights(START, [*WEIGHTS], options, values) for _ in range(2))
    assert first == second and len(tried) == 2 * generations * population
    assert all(0 <= weight <= MOST for point in tried for weight in point.values())


@pytest.fixture(scope="module")
def site() -> Site:
    return spread(21)


def test_the_halves_are_apart_and_have_as_many_jobs(site: Site) -> None:
    later = is_later(site)
    earlier = [job.submit for job, is_late in zip(site.jobs, later, strict=True) if not is_late]
    assert [job.submit for job in first_half(site).jobs] == earlier and later.sum() == 11
    assert max(earlier) <= min(job.submit for job, is_late in zip(site.jobs, later, strict=True) if is_late)
    counted = of_later_jobs(outcome(np.arange(21.0), 3.0), later)
    assert np.isnan(counted.wait_s[~later]).all() and not np.isnan(counted.wait_s[later]).any()


def test_a_value_is_of_the_jobs_that_start_and_grows_with_those_that_do_not() -> None:
    waits = np.arange(20.0)
    assert value_of(outcome(waits, 3.0), "bsld") == pytest.approx(math.log(3.0))
    assert value_of(outcome(waits, 3.0), "wait") == pytest.approx(math.log(10.5))
    starved = outcome(np.where(waits > 15.0, np.nan, waits), np.where(waits > 15.0, np.nan, 3.0))
    assert value_of(starved, "wait") > value_of(outcome(waits, 3.0), "wait")
    assert value_of(outcome(waits * np.nan, np.nan), "bsld") == math.inf


def test_weights_are_read_and_replaced(site: Site) -> None:
    other = with_weights(site, {"PriorityWeightFairshare": 77})
    assert weights_of(other) == weights_of(site) | {"PriorityWeightFairshare": 77}
    assert other.rules.priority.fair_share == 77.0
