"""Intervals hold the share of jobs that they promise, whatever the forecasts are like."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.learning.interval_correction import ENOUGH, MOST_PROFILES, IntervalCorrection
from pilotfish.simulate.model.plan import PlannedJob, PredictionInterval

NARROW = PredictionInterval(10.0 + 9.9, 10.0 + 10.1, 9.9, 10.1)


def job(start: float = 10.0, took: float = 10.0, within: PredictionInterval | None = NARROW) -> PlannedJob:
    return PlannedJob("j", ("a",), start, start + took, took, 1.0, within=within)


WORLDS: dict[str, Callable[[random.Random, int], float]] = {
    "biased": lambda draw, i: 1.8 * math.exp(draw.gauss(0.0, 0.1)),
    "wide": lambda draw, i: math.exp(draw.gauss(0.0, 1.0)),
    "exact": lambda draw, i: math.exp(draw.gauss(0.0, 0.001)),
    "beside a load that comes and goes": lambda draw, i: (1.0 + 2.0 * (i // 40 % 2)) * math.exp(draw.gauss(0.0, 0.05)),
    "drifting": lambda draw, i: (1.0 + i / 300) * math.exp(draw.gauss(0.0, 0.05)),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("seed", range(3))
def test_most_jobs_end_inside(world: str, seed: int) -> None:
    draw, correction, inside = random.Random(seed), IntervalCorrection(), []
    for i in range(400):
        within = correction.corrected(job(), "p").within
        actual = 10.0 * WORLDS[world](draw, i)
        if i >= 30:
            assert within is not None
            inside.append(within.shortest - 1e-9 <= actual <= within.longest + 1e-9)
        correction.learn("p", 10.0, actual)
    share = sum(inside) / len(inside)
    # The forecast itself is always inside, so that biased and exact forecasts have more than was promised.
    assert share >= 0.72 and (share <= 0.90 or world in ("biased", "exact", "drifting"))


def test_too_few_jobs_change_nothing_and_profiles_are_apart() -> None:
    correction = IntervalCorrection(("p", 10.0, 20.0) for _ in range(ENOUGH - 1))
    assert correction.corrected(job(), "p") == job()
    correction.learn("p", 10.0, 20.0)
    found = correction.corrected(job(), "p").within
    assert found is not None and found.longest == pytest.approx(20.0) and found.shortest == pytest.approx(10.0 / 1.01)
    assert correction.corrected(job(), "q") == job()
    unknown = correction.corrected(job(within=None), "p").within
    assert unknown is not None and unknown.latest == pytest.approx(30.0), "also where the needs have no interval"


def test_what_ended_before_a_restart_counts_as_if_there_had_been_none() -> None:
    draw = random.Random(1)
    past = [("p", 10.0, 10.0 * math.exp(draw.gauss(0.0, 0.5))) for _ in range(200)]
    going_on = IntervalCorrection()
    for one in past:
        going_on.learn(*one)
    assert IntervalCorrection(past).corrected(job(), "p") == going_on.corrected(job(), "p")


def test_guesses_say_nothing_and_memory_is_bounded() -> None:
    correction = IntervalCorrection()
    for i in range(50):
        correction.learn("default", 60.0, float(i + 1))
        correction.learn(None, 60.0, float(i + 1))
    assert correction.corrected(job(), "default") == job()
    for i in range(MOST_PROFILES + 50):
        correction.learn(f"p{i}", 1.0, 1.0)
    assert len(correction._profiles) == MOST_PROFILES


@given(
    st.lists(st.tuples(st.floats(0.0, 1e9), st.floats(0.0, 1e9)), max_size=60),
    st.floats(0.0, 1e6),
    st.floats(1e-3, 1e6),
)
def test_laws_of_any_interval(past: list[tuple[float, float]], start: float, took: float) -> None:
    found = IntervalCorrection(("p", *one) for one in past).corrected(job(start, took, None), "p").within
    if found is not None:
        assert 0.0 <= found.shortest <= took <= found.longest < math.inf
        assert 0.0 <= found.earliest <= start + took <= found.latest
