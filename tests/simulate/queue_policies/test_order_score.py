"""Scores of learned orders: one job, many jobs in NumPy, and what moves a score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.kernels.queue.tables import FEATURE_COUNT, HIDDEN, UNIT
from pilotfish.simulate.queue_policies.learned_order import FEATURES
from pilotfish.simulate.queue_policies.order_score import NETWORK, bend, parts_of, score_of, scores_of

SEEDS = st.integers(0, 10_000)


def numbers(seed: int, *shape: int, spread: float = 2.0) -> list:
    return np.random.default_rng(seed).normal(0.0, spread, shape).tolist()


def test_a_network_has_72_numbers_and_each_feature_a_weight() -> None:
    assert (72, len(FEATURES)) == (NETWORK, FEATURE_COUNT)


@given(SEEDS, st.sampled_from([FEATURE_COUNT, NETWORK]), st.integers(0, 70), st.sampled_from([1e-3, 1.0, 50.0]))
def test_many_jobs_have_the_scores_of_each_to_the_bit(seed: int, size: int, jobs: int, spread: float) -> None:
    weights, rows = numbers(seed, size, spread=spread), numbers(seed + 1, jobs, FEATURE_COUNT)
    matrix = np.array(rows).reshape(-1, FEATURE_COUNT)
    assert scores_of(weights, matrix).tolist() == [score_of(weights, row) for row in rows]


@given(st.floats(-10.0, 10.0), st.floats(-10.0, 10.0))
def test_the_bend_ascends_from_minus_one_to_one_near_tanh(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert -1.0 <= bend(low) <= bend(high) <= 1.0 and bend(-one) == -bend(one)
    assert bend(one) == pytest.approx(math.tanh(one), abs=0.025)


def test_a_network_is_the_sum_of_its_units() -> None:
    weights, row = numbers(1, NETWORK, spread=0.3), numbers(2, FEATURE_COUNT)
    units = np.array(weights).reshape(HIDDEN, UNIT)
    expected = sum(unit[-1] * bend(float(unit[0] + unit[1:-1] @ row)) for unit in units)
    assert score_of(weights, row) == pytest.approx(expected, rel=1e-9)


@given(SEEDS)
def test_the_parts_of_a_linear_score_are_weights_times_differences(seed: int) -> None:
    weights, row, usual = (numbers(seed + part, FEATURE_COUNT) for part in range(3))
    expected = np.array(weights) * (np.array(row) - np.array(usual))
    assert parts_of(weights, row, usual) == pytest.approx(expected.tolist(), abs=1e-9)
    network = numbers(seed, NETWORK)
    assert parts_of(network, row, row) == [0.0] * FEATURE_COUNT
