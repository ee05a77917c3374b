"""Gradients are those of finite differences; pairs stay in their decisions; Adam finds a minimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.learning.agents.network import Network
from pilotfish.simulate.learned.packed_pairs import PackedPairs
from pilotfish.simulate.learned.pair_network import PAIR_COLUMNS

COUNTS = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def pairs_of(counts, seed: int = 0) -> PackedPairs:
    total = sum(counts)
    rows = np.random.default_rng(seed).random((total, len(PAIR_COLUMNS))).astype(np.float32)
    return PackedPairs(rows, np.concatenate([np.arange(count) for count in counts]), np.cumsum([0, *counts[:-1]]))


def test_the_gradient_is_that_of_finite_differences() -> None:
    generator = np.random.default_rng(1)
    network = Network((len(PAIR_COLUMNS), 6, 4), generator, 0.1)
    network.weights = [part.astype(np.float64) for part in network.weights]
    rows, slopes = generator.random((20, len(PAIR_COLUMNS))), generator.standard_normal(20)
    gradient = network.gradient(network.layers(rows), slopes)
    for part, slope in zip(network.weights, gradient, strict=True):
        for place in np.ndindex(part.shape):
            value, losses = part[place], []
            for change in (1e-5, -1e-5):
                part[place] = value + change
                losses.append(float(network.outputs(rows) @ slopes))
            part[place] = value
            assert slope[place] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-4, abs=1e-4)


def test_adam_learns_a_function_and_the_same_seed_learns_the_same() -> None:
    rows = np.random.default_rng(2).random((200, 3)).astype(np.float32)
    targets = rows[:, 0] - 2.0 * rows[:, 1]

    def learned(seed: int) -> Network:
        network = Network((3, 16), np.random.default_rng(seed), 0.01)
        for _ in range(300):
            layers = network.layers(rows)
            network.learn(network.gradient(layers, (layers[-1][:, 0] - targets) / len(rows)))
        return network

    first, again, other = learned(1), learned(1), learned(2)
    assert all((one == two).all() for one, two in zip(first.weights, again.weights, strict=True))
    assert any((one != two).any() for one, two in zip(first.weights, other.weights, strict=True))
    assert np.abs(first.outputs(rows) - targets).mean() < 0.05


@given(COUNTS, st.integers(0, 99))
def test_shares_of_a_decision_are_those_of_its_scores(counts, seed) -> None:
    pairs = pairs_of(counts, seed)
    scores = (np.random.default_rng(seed).standard_normal(sum(counts)) * 30.0).astype(np.float32)
    shares = np.exp(pairs.log_shares(scores))
    assert pairs.counts.tolist() == counts
    for first, count in zip(pairs.first, counts, strict=True):
        part = scores[first : first + count].astype(np.float64)
        expected = np.exp(part - part.max())
        assert shares[first : first + count] == pytest.approx(expected / expected.sum(), rel=1e-9, abs=1e-12)
    best = pairs.best(scores)
    assert [int(scores[first : first + count].argmax()) for first, count in zip(pairs.first, counts, strict=True)] == (
        best - pairs.first
    ).tolist()


@given(COUNTS, st.integers(0, 99))
def test_a_decision_draws_one_of_its_pairs_as_often_as_its_share(counts, seed) -> None:
    pairs = pairs_of(counts, seed)
    shares = pairs.log_shares(np.random.default_rng(seed).standard_normal(sum(counts)))
    for draw in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        drawn = pairs.drawn(shares, np.full(len(counts), draw))
        assert ((drawn >= pairs.first) & (drawn < pairs.first + counts)).all()
    grid = (np.arange(400) + 0.5) / 400
    often = np.array([pairs.drawn(shares, np.full(len(counts), draw)) for draw in grid])
    for decision, (first, count) in enumerate(zip(pairs.first, counts, strict=True)):
        share = np.bincount(often[:, decision] - first, minlength=count) / len(grid)
        assert share == pytest.approx(np.exp(shares[first : first + count]), abs=0.005)


def test_some_decisions_are_taken_in_any_order() -> None:
    pairs = pairs_of([2, 1, 3, 4])
    part, numbers = pairs.taken(np.array([3, 0]))
    assert numbers.tolist() == [6, 7, 8, 9, 0, 1] and part.first.tolist() == [0, 4] and part.counts.tolist() == [4, 2]
    assert (part.rows == pairs.rows[numbers]).all() and (part.actions == pairs.actions[numbers]).all()
    joined = PackedPairs.concatenated([pairs, part])
    assert joined.first.tolist() == [0, 2, 3, 6, 10, 14] and len(joined.rows) == 16
