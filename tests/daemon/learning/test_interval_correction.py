"""Intervals hold the share of jobs that they promise, whatever the forecasts are like."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.learning.interval_correction import IntervalCorrection, groups_of
from pilotfish.profiles.prediction.conformal import ENOUGH
from pilotfish.simulate.model.plan import PlannedJob, PredictionInterval

P = groups_of("cmd: p 1", "measured", 1000)
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
        within = correction.corrected(job(), P).within
        actual = 10.0 * WORLDS[world](draw, i)
        if i >= 30:
            assert within is not None
            inside.append(within.shortest - 1e-9 <= actual <= within.longest + 1e-9)
        correction.learn(P, 10.0, actual)
    share = sum(inside) / len(inside)
    # The forecast itself is always inside, so that biased and exact forecasts have more than was promised.
    assert share >= 0.72 and (share <= 0.90 or world in ("biased", "exact", "drifting"))


def test_too_few_jobs_of_a_profile_leave_it_to_others_of_its_program_user_and_source() -> None:
    correction = IntervalCorrection((P, 10.0, 20.0) for _ in range(ENOUGH - 1))
    assert correction.corrected(job(), P) == job()
    correction.learn(P, 10.0, 20.0)
    found = correction.corrected(job(), P).within
    assert found is not None and found.longest == pytest.approx(20.0) and found.shortest == pytest.approx(10.0 / 1.01)
    unknown = correction.corrected(job(0.0, within=None), P).within
    assert unknown is not None and unknown.latest == pytest.approx(20.0), "also where the needs have no interval"
    for other in (("cmd: p 2", 1001), ("cmd: q", 1000), ("q", 1001), ("q", None)):
        assert correction.corrected(job(0.0, within=None), groups_of(other[0], "measured", other[1])).within == unknown
    assert correction.corrected(job(), groups_of("q", "predicted", 1000)) == job()


def test_where_it_is_not_known_when_a_job_begins_its_end_has_no_interval() -> None:
    correction = IntervalCorrection((P, 10.0, 20.0) for _ in range(ENOUGH))
    assert correction.corrected(job(within=None), P) == job(within=None)


def test_an_interval_of_others_makes_none_narrower() -> None:
    wide = PredictionInterval(10.0 + 1.0, 10.0 + 90.0, 1.0, 90.0)
    correction = IntervalCorrection((P, 10.0, 10.0) for _ in range(ENOUGH))
    assert correction.corrected(job(within=wide), groups_of("cmd: p 2", "measured", 1000)).within == wide
    narrower = correction.corrected(job(within=wide), P).within
    assert narrower is not None and narrower.longest == pytest.approx(10.1)


def test_no_interval_reaches_beyond_the_walltime() -> None:
    correction = IntervalCorrection((P, 10.0, 40.0) for _ in range(ENOUGH))
    for walltime, longest in ((None, 40.0), (100.0, 40.0), (25.0, 25.0), (9.0, 10.0)):
        within = correction.corrected(job(), P, walltime).within
        assert within is not None and within.longest == pytest.approx(longest)
        assert within.latest == pytest.approx(10.0 + longest)


def test_users_with_few_runs_of_many_commands_have_intervals_that_hold() -> None:
    draw, correction, inside = random.Random(1), IntervalCorrection(), []
    for i in range(600):
        groups = groups_of(f"cmd: p {i // 4}", "predicted", i % 2)
        actual = 10.0 * math.exp(draw.gauss(0.2, 0.5))
        within = correction.corrected(job(0.0, within=None), groups).within
        if within is not None:
            inside.append(within.shortest <= actual <= within.longest)
        correction.learn(groups, 10.0, actual)
    assert len(inside) > 580 and 0.75 <= sum(inside) / len(inside) <= 0.85


def test_what_ended_before_a_restart_counts_as_if_there_had_been_none() -> None:
    draw = random.Random(1)
    past = [(P, 10.0, 10.0 * math.exp(draw.gauss(0.0, 0.5))) for _ in range(200)]
    going_on = IntervalCorrection()
    for one in past:
        going_on.learn(*one)
    assert IntervalCorrection(past).corrected(job(), P) == going_on.corrected(job(), P)


def test_guesses_say_nothing() -> None:
    assert groups_of("default", "default", 1000) == groups_of(None, None, 1000) == ()
    correction = IntervalCorrection(((), 60.0, float(i + 1)) for i in range(50))
    assert correction.corrected(job(), ()) == job()


@given(
    st.lists(st.tuples(st.floats(0.0, 1e9), st.floats(0.0, 1e9)), max_size=60),
    st.floats(0.0, 1e6),
    st.floats(1e-3, 1e6),
)
def test_laws_of_any_interval(past: list[tuple[float, float]], start: float, took: float) -> None:
    found = IntervalCorrection((P, *one) for one in past).corrected(job(start, took, None), P).within
    if found is not None:
        assert 0.0 <= found.shortest <= took <= found.longest < math.inf
        assert 0.0 <= found.earliest <= start + took <= found.latest
