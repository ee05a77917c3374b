"""Clusters of nodes that are alike at a moment: k-means of what is seen of them.

Rule: the same nodes give the same clusters. The first centres are the first node, then always the node that is farthest
from all centres so far; a tie goes to the node, or to the cluster, that comes first. A cluster without nodes keeps its
centre.
Source: S. Lloyd, "Least squares quantization in PCM" (1982); T. Gonzalez, "Clustering to minimize the maximum
intercluster distance" (1985), for the first centres.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array

#: Rounds at most.
_ROUNDS = 20


def node_clusters(nodes: Array, count: int) -> tuple[Array, Array]:
    """Return the cluster of each node [decisions, nodes] and the centres [decisions, clusters, columns].

    Complexity: O(rounds x decisions x nodes x clusters).

    Args:
        nodes: what is seen of each node [decisions, nodes, columns].
        count: clusters, 1 or more; those beyond the distinct nodes stay empty.
    """
    points = nodes.astype(np.float64)
    centres, clusters = _first_centres(points, count), np.full(points.shape[:2], -1)
    numbers = np.arange(count)
    for _ in range(_ROUNDS):
        nearest = _distances(points, centres).argmin(axis=2)
        if (nearest == clusters).all():
            break
        clusters = nearest
        member = nearest[:, :, None] == numbers
        sizes = member.sum(axis=1)
        sums = (member[:, :, :, None] * points[:, :, None, :]).sum(axis=1)
        centres = np.where(sizes[:, :, None] > 0, sums / np.maximum(sizes, 1)[:, :, None], centres)
    return clusters, centres


def _first_centres(points: Array, count: int) -> Array:
    """Return nodes that are far from each other [decisions, count, columns]."""
    decisions = np.arange(len(points))
    centres = np.empty((len(points), count, points.shape[2]))
    centres[:, 0] = points[:, 0]
    distances = np.full(points.shape[:2], np.inf)
    for number in range(1, count):
        distances = np.minimum(distances, _distances(points, centres[:, number - 1 : number])[:, :, 0])
        centres[:, number] = points[decisions, distances.argmax(axis=1)]
    return centres


def _distances(points: Array, centres: Array) -> Array:
    """Return the squared distance of each point to each centre [decisions, points, centres]."""
    differences = points[:, :, None, :] - centres[:, None, :, :]
    squares: Array = differences[..., 0] ** 2
    for column in range(1, points.shape[2]):
        squares += differences[..., column] ** 2
    return squares
