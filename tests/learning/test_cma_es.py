"""The search finds minima, the same ones for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from pilotfish.learning.cma_es import CmaEs


def searched(seed: int, size: int, generations: int) -> CmaEs:
    target, scales = np.arange(size) / 3.0, 10.0 ** np.linspace(0, 3, size)
    state = CmaEs(np.zeros(size), 0.5, seed, 4 + int(3 * np.log(size)) + 4)
    for _ in range(generations):
        points = state.points()
        state.learn(points, ((points - target) ** 2 * scales).sum(axis=1))
    return state


@pytest.mark.parametrize("size", [1, 2, 10])
def test_it_finds_the_minimum_of_a_stretched_bowl(size: int) -> None:
    state = searched(3, size, 300)
    assert np.allclose(state.mean, np.arange(size) / 3.0, atol=1e-4) and state.sigma < 1e-2


def test_the_same_seed_draws_the_same() -> None:
    assert np.array_equal(searched(5, 4, 20).mean, searched(5, 4, 20).mean)
    assert not np.array_equal(searched(5, 4, 20).mean, searched(6, 4, 20).mean)


def test_points_of_no_use_do_not_move_it_there() -> None:
    state = CmaEs(np.full(3, 2.0), 0.3, 1, 12)
    for _ in range(60):
        points = state.points()
        values = (points**2).sum(axis=1)
        values[points[:, 0] < 1.0] = np.inf  # a wall
        state.learn(points, values)
    assert 0.9 < state.mean[0] < 1.3 and abs(state.mean[1]) < 0.1
