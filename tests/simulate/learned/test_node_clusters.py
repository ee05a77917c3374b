"""Clusters are nearest centres that are means; the same whatever other decisions are at hand; and few nodes are enough."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.learned.node_clusters import node_clusters


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 12), st.integers(1, 6), st.integers(2, 9))
def test_each_node_is_in_the_nearest_cluster_and_centres_are_means(
    seed: int, decisions: int, count: int, clusters: int, levels: int
) -> None:
    nodes = (np.random.default_rng(seed).integers(0, levels, (decisions, count, 3)) / levels).astype(np.float32)
    numbers, centres = node_clusters(nodes, clusters)
    for points, labels, places in zip(nodes.astype(np.float64), numbers, centres, strict=True):
        distances = ((points[:, None] - places[None]) ** 2).sum(axis=2)
        assert np.allclose(distances.min(axis=1), distances[np.arange(count), labels])
        for number in set(labels.tolist()):
            assert np.allclose(places[number], points[labels == number].mean(axis=0))
        if clusters >= len(set(map(tuple, points.tolist()))):
            assert np.allclose(places[labels], points)  # equal nodes, and only these, are together
    for place in range(decisions):
        alone = node_clusters(nodes[place : place + 1], clusters)
        assert (alone[0][0] == numbers[place]).all() and (alone[1][0] == centres[place]).all()
