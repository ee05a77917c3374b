"""A verdict is paired, has an interval that holds what was planted, and is corrected for many traces."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.learning.contenders import RULES, Contender, numbers_of, rivals
from pilotfish.learning.evaluation import Numbers, Scores, Verdict, beaten, scores, verdict
from pilotfish.simulate.queue_policies.learned_order import MAX_WAIT_S, LearnedOrder
from pilotfish.simulate.queue_policies.policy_specs import Easy
from tests.learning.test_order_search import trace


def sides(*contenders: Contender) -> dict[str, Numbers]:
    return {side.name: partial(numbers_of, side=side, predict=None) for side in contenders}


def drawn(seed: int, factor: float, seeds: int = 3, copies: int = 20) -> Scores:
    """Return made-up numbers: each order has the rival's number times a factor, with noise of copy and seed."""
    random = np.random.default_rng(seed)
    rival = np.exp(random.normal(2.0, 0.5, copies))
    numbers = {"rival": rival}
    for place in range(seeds):
        numbers[f"m{place}"] = rival * factor * np.exp(random.normal(0.0, 0.1, copies) + random.normal(0.0, 0.05))
    return Scores("t", {name: {"bsld": row, "longest_wait": row} for name, row in numbers.items()})


@pytest.mark.long
def test_intervals_hold_the_planted_ratio_as_often_as_they_say() -> None:
    held = 0
    for seed in range(60):
        names = [f"m{place}" for place in range(8)]
        one = verdict(drawn(seed, 0.9, seeds=8), names, "rival", "bsld", seed)
        held += one.low <= 0.9 <= one.high
    assert held >= 50  # 95 % of 60 are 57; a bootstrap over 8 seeds is a little narrow


@given(st.integers(0, 1000), st.floats(0.1, 10.0))
def test_scaling_both_sides_changes_nothing(seed: int, scale: float) -> None:
    scored = drawn(seed, 0.8)
    scaled = Scores(
        "t", {name: {key: row * scale for key, row in rows.items()} for name, rows in scored.numbers.items()}
    )
    names = ["m0", "m1", "m2"]
    plain, other = (verdict(one, names, "rival", "bsld") for one in (scored, scaled))
    assert math.isclose(plain.ratio, other.ratio, rel_tol=1e-9) and math.isclose(plain.high, other.high, rel_tol=1e-9)


@given(st.integers(0, 1000), st.floats(0.1, 10.0))
def test_the_ends_hold_each_single_ratio(seed: int, factor: float) -> None:
    scored = drawn(seed, factor)
    ratios = [scored.numbers[name]["bsld"] / scored.numbers["rival"]["bsld"] for name in ("m0", "m1", "m2")]
    one = verdict(scored, ["m0", "m1", "m2"], "rival", "bsld")
    assert math.isclose(one.least, np.min(ratios)) and math.isclose(one.most, np.max(ratios))
    assert one.least <= one.low <= one.ratio <= one.high <= one.most


def test_an_order_that_equals_its_rival_does_not_beat_it() -> None:
    sjf = Contender("mine", Easy(order=LearnedOrder("m", RULES["shortest limit first"])))
    scored = scores(trace(5), sides(Contender("sjf", Easy(order="sjf")), sjf), 4)
    one = verdict(scored, ["mine"], "sjf", "bsld")
    assert (one.ratio, one.low, one.high, one.won) == (1.0, 1.0, 1.0, 0.0) and beaten([one]) == [False]


def test_copies_are_numbered_so_that_parts_make_the_whole() -> None:
    side = sides(Contender("sjf", Easy(order="sjf")))
    entire, parts = scores(trace(5), side, 4), [scores(trace(5), side, 2, first=first) for first in (0, 2)]
    joined = np.concatenate([part.numbers["sjf"]["wait"] for part in parts])
    assert entire.numbers["sjf"]["wait"].tolist() == joined.tolist()


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        ([0.001], [True]),
        ([0.03], [False]),
        ([0.001, 0.02], [True, True]),
        ([0.013, 0.013], [False, False]),
        ([0.02, 0.001, 0.5], [False, True, False]),
    ],
)
def test_holms_correction(p_values: list[float], expected: list[bool]) -> None:
    verdicts = [Verdict("t", "r", 0.9, 0.8, 0.99, value, 1.0, 1.0, 0.8, 0.99) for value in p_values]
    assert beaten(verdicts) == expected


def test_the_rivals_are_exact_orders_and_rules_with_the_same_bound() -> None:
    names = [one.name for one in rivals(MAX_WAIT_S, predicting=True)]
    assert len(set(names)) == len(names) and {"easy:order=f1", "easy:order=sjf, predicted"} <= set(names)
    assert not [one for one in rivals(MAX_WAIT_S, predicting=False) if one.predicted]
