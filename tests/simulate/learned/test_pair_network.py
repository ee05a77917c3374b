"""A network that scores pairs gives the scores of its definition, in any order of the pairs."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.learned.pair_network import KERNEL, PAIR_COLUMNS, PairNetwork
from tests.support.pair_models import random_layers


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_scores_are_those_of_the_definition(seed: int, count: int) -> None:
    layers = random_layers(seed)
    rows = np.random.default_rng(seed).random((count, len(PAIR_COLUMNS)))
    values = rows
    for place, (weights, biases) in enumerate(layers):
        values = values @ np.array(weights) + np.array(biases)
        values = values if place == len(layers) - 1 else np.maximum(values, 0.0)
    scores = PairNetwork(layers).scores(rows)
    assert np.allclose(scores, values[:, 0], rtol=1e-11, atol=1e-10)
    order = np.random.default_rng(seed + 1).permutation(count)
    assert (PairNetwork(layers).scores(rows[order]) == scores[order]).all()


@given(st.integers(0, 10**6), st.integers(32, 200), st.lists(st.integers(1, 9), max_size=3))
def test_the_kernel_gives_the_same_bits(seed: int, count: int, hidden: list[int]) -> None:
    load(KERNEL)
    network = PairNetwork(random_layers(seed, (7, *hidden, 1)))
    rows = np.random.default_rng(seed).standard_normal((count, 7)).astype(np.float32)
    batches = np.concatenate([network.scores(rows[first : first + 16]) for first in range(0, count, 16)])
    assert (network.scores(rows) == batches).all()


@pytest.mark.real
def test_the_time_of_a_full_machine(record_property: Callable[[str, object], None]) -> None:
    """128 jobs on 20 nodes; CPU time, and the least of many, because tests share the cores."""
    load(KERNEL)
    network, times = PairNetwork(random_layers(1, (7, 32, 16, 8, 1))), list[float]()
    rows = np.random.default_rng(1).random((2560, 7)).astype(np.float32)
    for _ in range(200):
        begin = time.process_time()
        network.scores(rows)
        times.append(time.process_time() - begin)
    record_property("measured", f"128 jobs on 20 nodes: {1e3 * min(times):.2f} ms of CPU time")
