"""The machine of a replay: numbered resources, the clusters into which they fall, and what one draws.

Rule: resources are alike; those of a cluster file are its cores, or its nodes, in the order of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from ..errors import ConfigError
from ..platform import Cluster
from .powers import TAURUS, Powers, powers_of


@dataclass(frozen=True, slots=True)
class Machine:
    """Resources.

    Args:
        processors: how many.
        groups: first and last resource of each cluster of the machine; none: it is one cluster.
        powers: what each draws; None: not known, or they differ.
    """

    processors: int
    groups: tuple[tuple[int, int], ...] = ()
    powers: Powers | None = TAURUS


def machine_of(cluster: Cluster, *, whole_nodes: bool = False) -> Machine:
    """The cores of these nodes, or the nodes. Raises ConfigError: a cluster's nodes do not stand side by side."""
    each = [1 if whole_nodes else node.type.cores for node in cluster.nodes]
    powers = {powers_of(node.type, many) for node, many in zip(cluster.nodes, each, strict=True)}
    first = [0, *accumulate(each)]
    found = []
    for name, members in cluster.groups.items():
        places = sorted(cluster.index[member] for member in members)
        if places[-1] - places[0] != len(places) - 1:
            raise ConfigError(cluster.source, f"clusters.{name}", "its nodes do not stand side by side", "neighbours")
        found.append((first[places[0]], first[places[-1] + 1] - 1))
    return Machine(first[-1], tuple(sorted(found)), powers.pop() if len(powers) == 1 else None)
