"""The machine of a replay: numbered resources, and the clusters into which they fall.

Rule: the cores of a cluster file are numbered node by node, in the order of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from ..errors import ConfigError
from ..platform import Cluster


@dataclass(frozen=True, slots=True)
class Machine:
    """Resources.

    Args:
        processors: how many.
        groups: first and last resource of each cluster of the machine; none: it is one cluster.
    """

    processors: int
    groups: tuple[tuple[int, int], ...] = ()


def machine_of(cluster: Cluster) -> Machine:
    """The cores of these nodes. Raises ConfigError: a cluster's nodes do not stand side by side."""
    first = [0, *accumulate(node.type.cores for node in cluster.nodes)]
    found = []
    for name, members in cluster.groups.items():
        places = sorted(cluster.index[member] for member in members)
        if places[-1] - places[0] != len(places) - 1:
            raise ConfigError(cluster.source, f"clusters.{name}", "its nodes do not stand side by side", "neighbours")
        found.append((first[places[0]], first[places[-1] + 1] - 1))
    return Machine(first[-1], tuple(sorted(found)))
