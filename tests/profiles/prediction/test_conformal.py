"""Adaptive bounds hold the promised share of the scores, in each group, and forget what is old."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.prediction.conformal import ENOUGH, LATEST, MOST_GROUPS, AdaptiveBounds


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


def test_memory_is_bounded() -> None:
    bounds = AdaptiveBounds(0.8)
    for i in range(MOST_GROUPS + 50):
        bounds.learn([i], 0.0, 0.0)
    assert len(bounds._groups) == MOST_GROUPS
