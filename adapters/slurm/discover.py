"""The nodes that Slurm knows, as a cluster: where to begin while there is no cluster file.

Rule: what Slurm does not know is assumed, and each assumption is said; nodes of as many CPUs and as much memory are of
one type. A CPU of Slurm's counts as a core, because that is what it hands out.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...simulate.platform import Cluster, Node, NodeType
from .records import SlurmNode

#: bytes/s for each core where nobody has measured it: two channels of DDR4 for sixteen cores
BANDWIDTH_PER_CORE = 2.5e9


def cluster_of(nodes: Iterable[SlurmNode], name: str = "slurm") -> tuple[Cluster, tuple[str, ...]]:
    """The cluster, its nodes in Slurm's order, and a sentence for each number that had to be assumed. O(nodes).

    Nodes that have no CPUs (of the state FUTURE) are left out.
    """
    types: dict[tuple[int, float], NodeType] = {}
    found = []
    for node in nodes:
        if node.cpus < 1 or node.memory <= 0:
            continue
        shape = (node.cpus, node.memory)
        if shape not in types:
            label = f"c{node.cpus}-{node.memory / 2**30:.4g}GiB"
            types[shape] = NodeType(label, node.cpus, node.memory, node.cpus * BANDWIDTH_PER_CORE)
        found.append(Node(node.name, types[shape]))
    notes = tuple(
        f"memory bandwidth of nodes like {kind.name} is unknown to Slurm: {kind.memory_bandwidth / 1e9:g} GB/s assumed"
        for kind in types.values()
    )
    return Cluster(name, tuple(found), source="Slurm"), notes
