"""A network that scores pairs gives the scores of its definition, in any order of the pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.learned.pair_network import PAIR_COLUMNS, PairNetwork
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
