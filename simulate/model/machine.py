"""The machine of a replay: numbered resources, their clusters, and their power in each state.

Rule: the resources of a cluster file are its cores or its nodes, in the order of the file. A cluster's nodes must be
adjacent only for policies that use clusters. Power may differ between resources as long as none is switched off.
A machine given as a number of processors has the power of Grid'5000 Taurus nodes: thesis of Poquet (2017), table 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

from ..errors import ConfigError
from .cluster import Cluster, NodeType
from .intervals import Interval
from .network import SOLVERS, Network, solved_as, unlimited


@dataclass(frozen=True, slots=True)
class Powers:
    """The power of one resource."""

    #: Watts while idle, and while a job computes on it.
    idle: float
    computing: float
    #: Conservative estimates of the same, used by policies with a limit.
    budget_idle: float
    budget_computing: float
    off: float | None = None  # watts while switched off; None if it cannot be switched off
    #: Watts and seconds of switching it on and off.
    on_w: float = 0.0
    on_s: float = 0.0
    off_w: float = 0.0
    off_s: float = 0.0
    together: int = 1  # adjacent resources that are switched as one: the cores of a node
    epsilon: float | None = None  # watts at a load of almost 0; None: as while idle

    @property
    def least(self) -> float:
        """Watts at a load of almost 0. At load x, a resource draws least + (computing - least) * x."""
        return self.idle if self.epsilon is None else self.epsilon


@dataclass(frozen=True, slots=True)
class MixedPowers:
    """The power of resources that differ."""

    runs: tuple[tuple[int, Powers], ...]  # (number of adjacent resources, power of each), in the order of the resources


def runs_of(powers: Powers | MixedPowers, resources: int) -> tuple[tuple[int, Powers], ...]:
    """Return the runs of adjacent resources with the same power.

    Args:
        powers: power of the resources.
        resources: their number.
    """
    return powers.runs if isinstance(powers, MixedPowers) else ((resources, powers),)


TAURUS_POWERS = Powers(95.0, 190.74, 100.0, 203.12, 9.75, 125.17, 151.52, 101.0, 6.1)


def _merged(pairs: Iterable[tuple[int, Powers | None]]) -> Powers | MixedPowers | None:
    """Merge (number of resources, power) pairs in the order of the resources; None if some power is not known."""
    runs = [(sum(size for size, _ in same), powers) for powers, same in groupby(pairs, key=itemgetter(1))]
    known_runs = tuple((size, powers) for size, powers in runs if powers is not None)
    if len(known_runs) < len(runs):
        return None
    return known_runs[0][1] if len(known_runs) == 1 else MixedPowers(known_runs)


def powers_of(kind: NodeType, resources: int = 1) -> Powers | None:
    """Return the power of one resource; None if not known.

    Args:
        kind: the node type.
        resources: resources per node, 1 or its number of cores. Nodes are switched as a whole.
    """
    power = kind.power
    if power is None or (resources > 1 and power.computing is None and power.idle_uncore != 1.0):
        return None
    uncore = power.per_socket * kind.sockets
    full = power.idle + uncore + power.per_core * kind.cores if power.computing is None else power.computing
    idle = power.idle + (uncore * power.idle_uncore if power.computing is None else 0.0)
    powers = Powers(
        idle / resources,
        full / resources,
        (idle if power.budget_idle is None else power.budget_idle) / resources,
        (full if power.budget_computing is None else power.budget_computing) / resources,
        epsilon=None if power.epsilon is None else power.epsilon / resources,
    )
    on, off = power.switch_on, power.switch_off
    if power.off is None or on is None or off is None:
        return powers
    return replace(
        powers, off=power.off / resources, on_w=on.watts / resources, on_s=on.seconds, off_w=off.watts / resources,
        off_s=off.seconds, together=resources,
    )  # fmt: skip


def equal_powers(powers: Powers | MixedPowers | None) -> Powers:
    """Return the power of each resource. Raises ConfigError if it is not known, or if resources differ."""
    if powers is None:
        allowed = "a cluster file with power, or --procs"
        raise ConfigError("policy", "", "the power of this machine is not known", allowed)
    if isinstance(powers, MixedPowers):
        problem = "the resources of this machine differ in power, and this policy needs equal ones"
        raise ConfigError("policy", "", problem, "a policy without parts added with +, or nodes of equal power")
    return powers


def switching_times(powers: Powers | MixedPowers | None) -> tuple[float, float]:
    """Return the longest seconds that switching a resource off and on takes; 0 if it is not known."""
    kinds = [kind for _, kind in runs_of(powers, 1)] if powers is not None else []
    return max((kind.off_s for kind in kinds), default=0.0), max((kind.on_s for kind in kinds), default=0.0)


@dataclass(frozen=True, slots=True)
class SplitGroups(Sequence[Interval]):
    """The clusters of a machine if the nodes of one, `split`, are not adjacent: access raises ConfigError."""

    source: str
    split: str
    clusters: int

    def __len__(self) -> int:
        return self.clusters

    def __getitem__(self, place: Any) -> Any:
        raise ConfigError(self.source, f"clusters.{self.split}", "its nodes are not adjacent", "adjacent nodes")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of numbered resources.

    Args:
        processors: number of resources.
        groups: first and last resource of each cluster; empty means one cluster.
        powers: power of each resource; None if not known.
        network: makes the network between the resources; None if not known.
        nodes: first and last resource of each node, in a plan; empty in a replay, whose machine is one node.
        names: name of each of these nodes.
        cluster: the nodes that it was made from; None: it is only a number of processors.
    """

    processors: int
    groups: Sequence[Interval] = ()
    powers: Powers | MixedPowers | None = TAURUS_POWERS
    network: Callable[[], Network] | None = None
    nodes: tuple[Interval, ...] = ()
    names: tuple[str, ...] = ()
    cluster: Cluster | None = field(default=None, compare=False, repr=False)


def machine_of(cluster: Cluster, *, whole_nodes: bool = False, solver: str = SOLVERS[0]) -> Machine:
    """Return the machine of a cluster.

    Args:
        cluster: the cluster.
        whole_nodes: its resources are nodes, not cores.
        solver: how jobs share the links of its network, one of SOLVERS.
    """
    sizes = [1 if whole_nodes else node.type.cores for node in cluster.nodes]
    powers = [(size, powers_of(node.type, size)) for node, size in zip(cluster.nodes, sizes, strict=True)]
    network: Callable[[], Network] | None = None
    if cluster.wiring is not None:
        network = partial(solved_as, solver, cluster.wiring.network)
    if network is None and len(set(speeds_of(cluster))) > 1:  # then only the speeds of the hosts matter
        speeds = [
            (node.type.speed or 0.0) * node.type.pace
            for node, size in zip(cluster.nodes, sizes, strict=True)
            for _ in range(size)
        ]
        network = partial(unlimited, speeds)
    return Machine(sum(sizes), groups_of(cluster, sizes), _merged(powers), network, cluster=cluster)


def groups_of(cluster: Cluster, each: Sequence[int]) -> Sequence[Interval]:
    """Return the first and last resource of each cluster of nodes; none for one without resources.

    Args:
        cluster: the nodes.
        each: number of resources of each node.
    """
    first, groups, split = [0, *accumulate(each)], list[Interval](), ""
    for name, members in cluster.groups.items():
        places = sorted(cluster.index[member] for member in members)
        if places[-1] - places[0] != len(places) - 1:
            split = split or name
        groups.append((first[places[0]], first[places[-1] + 1] - 1))
    if split:
        return SplitGroups(cluster.source, split, len(groups))
    return tuple(sorted(group for group in groups if group[0] <= group[1]))


def core_powers(cluster: Cluster) -> Powers | MixedPowers | None:
    """Return the power of a core; of each type one if they differ, None if one is not known. O(types)."""
    return _merged((1, powers_of(kind, kind.cores)) for kind in cluster.types)


def powers_by_node(cluster: Cluster) -> Powers | MixedPowers | None:
    """Return the power of a core of each node; None if one is not known. O(nodes)."""
    return _merged((1, powers_of(node.type, node.type.cores)) for node in cluster.nodes)


def speeds_of(cluster: Cluster | None) -> tuple[float, ...]:
    """Return the distinct speeds of a cluster's cores, flop/s; empty if one is not known."""
    kinds = cluster.types if cluster is not None else ()
    return () if any(kind.speed is None for kind in kinds) else tuple(kind.relative_speed for kind in kinds)


def storages_of(cluster: Cluster | None) -> Collection[str] | None:
    """Return the names of the storages in a cluster's network; None if it has no wiring."""
    return None if cluster is None or cluster.wiring is None else cluster.wiring.storages
