"""Adaptive bounds hold the promised share of the scores, in each group, and forget what is old."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.prediction.batches import LATEST
from pilotfish.profiles.prediction.conformal import ENOUGH, MOST_GROUPS, AdaptiveBounds


@pytest.mark.parametrize("level", [0.5, 0.8])
@pytest.mark.parametrize("drift", [0.0, 0.005])
def test_the_promised_share_is_held(level: float, drift: float) -> None:
    draw, bounds, inside = random.Random(1), AdaptiveBounds(level), []
    for i in range(1500):
        error = draw.gauss(drift * i, 1.0)
        if (by := bounds.of("g")) is not None:
            inside.append(-by[0] <= error <= by[1])
        bounds.learn("g", -error, error)
    assert len(inside) == 1500 - ENOUGH
    assert sum(inside) / len(inside) == pytest.approx(level, abs=0.05)


def test_the_first_group_with_enough_scores_answers() -> None:
    bounds = AdaptiveBounds(0.8)
    for i in range(ENOUGH):
        bounds.learn(["user", "all"] if i else ["all"], 1.0, 2.0)
    assert bounds.of(["user"]) is None and bounds.of(["user", "all"]) == (1.0, 2.0)
    bounds.learn(["user"], 3.0, 4.0)
    assert bounds.of(["user", "all"]) == (3.0, 4.0)


@given(st.lists(st.floats(-5, 5), min_size=ENOUGH, max_size=3 * LATEST))
def test_a_bound_is_one_of_the_latest_scores(scores: list[float]) -> None:
    bounds = AdaptiveBounds(0.8)
    for score in scores:
        bounds.learn("g", -score, score)
    below, above = bounds.of("g") or (math.nan, math.nan)
    assert above in scores[-LATEST:] and -below in scores[-LATEST:] and -below <= above


def test_a_surprise_of_one_batch_counts_once_and_the_next_batch_may_be_one() -> None:
    """Every tenth batch is a surprise: its many jobs are all off by as much."""
    draw, bounds, inside = random.Random(3), AdaptiveBounds(0.8), []
    for batch in range(300):
        error = draw.gauss(0.0, 3.0)
        jobs = [error + draw.gauss(0.0, 0.3) for _ in range(draw.choice([1, 2, 100]))]
        inside += [-by[0] <= each <= by[1] for each in jobs if (by := bounds.of("g")) is not None]
        for each in jobs:
            bounds.learn("g", -each, each, batch)
    assert sum(inside) / len(inside) == pytest.approx(0.8, abs=0.1)


def test_a_group_of_too_few_batches_leaves_the_answer_to_the_next() -> None:
    bounds = AdaptiveBounds(0.8)
    for batch in range(40):
        bounds.learn(["all"], 1.0, 2.0, batch)
    for _ in range(ENOUGH):
        bounds.learn(["user"], 3.0, 4.0, 0)
    assert bounds.of(["user", "all"]) == (1.0, 2.0)
    assert bounds.of(["user"]) == (3.0, 4.0)  # the largest that it has seen


def test_memory_is_bounded() -> None:
    bounds = AdaptiveBounds(0.8)
    for i in range(MOST_GROUPS + 50):
        bounds.learn([i], 0.0, 0.0)
    assert len(bounds._groups) == MOST_GROUPS
