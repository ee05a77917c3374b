"""The machine of a replay: numbered resources, the clusters into which they fall, and what one draws.

Rule: resources are alike; those of a cluster file are its cores, or its nodes, in the order of the file. Its clusters
have to be neighbours only for who looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import overload

from ..errors import ConfigError
from ..network import Network, unlimited
from ..platform import Cluster
from .intervals import Interval
from .powers import TAURUS, Mixed, Powers, joined_powers, powers_of


@dataclass(frozen=True, slots=True)
class Groups(Sequence[Interval]):
    """First and last resource of each cluster of a machine, ascending. Looking at one raises ConfigError where the
    nodes of some cluster do not stand side by side.

    Args:
        source: the cluster file.
        known: of each cluster, ascending.
        split: the name of one whose nodes do not; "" = there is none.
    """

    source: str
    known: tuple[Interval, ...]
    split: str = ""

    def __len__(self) -> int:
        return len(self.known)

    def __iter__(self) -> Iterator[Interval]:
        return iter(self._whole())

    @overload
    def __getitem__(self, place: int) -> Interval: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Interval, ...]: ...
    def __getitem__(self, place: int | slice) -> Interval | tuple[Interval, ...]:
        return self._whole()[place]

    def _whole(self) -> tuple[Interval, ...]:
        if self.split:
            raise ConfigError(
                self.source, f"clusters.{self.split}", "its nodes do not stand side by side", "neighbours"
            )
        return self.known


@dataclass(frozen=True, slots=True)
class Machine:
    """Resources.

    Args:
        processors: how many.
        groups: first and last resource of each cluster of the machine; none: it is one cluster.
        powers: what each draws; None: of some it is not known.
        network: what joins them, where jobs are such that it matters; None: nothing is known of it.
    """

    processors: int
    groups: Sequence[Interval] = ()
    powers: Powers | Mixed | None = TAURUS
    network: Callable[[], Network] | None = None


def machine_of(cluster: Cluster, *, whole_nodes: bool = False) -> Machine:
    """The cores of these nodes, or the nodes."""
    each = [1 if whole_nodes else node.type.cores for node in cluster.nodes]
    powers = [(many, powers_of(node.type, many)) for node, many in zip(cluster.nodes, each, strict=True)]
    first, found, split = [0, *accumulate(each)], list[Interval](), ""
    for name, members in cluster.groups.items():
        places = sorted(cluster.index[member] for member in members)
        if places[-1] - places[0] != len(places) - 1:
            split = split or name
        found.append((first[places[0]], first[places[-1] + 1] - 1))
    groups = Groups(cluster.source, tuple(sorted(found)), split)
    return Machine(first[-1], groups, joined_powers(powers), _network_of(cluster, each))


def _network_of(cluster: Cluster, each: Sequence[int]) -> Callable[[], Network] | None:
    """What joins so many resources of each node: of nodes whose wires are not known, nothing limits what they send."""
    if cluster.wiring is not None:
        return cluster.wiring.network
    if len(set(speeds_of(cluster))) < 2:
        return None
    speeds = [node.type.speed or 0.0 for node, many in zip(cluster.nodes, each, strict=True) for _ in range(many)]
    return partial(unlimited, speeds)


def speeds_of(cluster: Cluster | None) -> tuple[float, ...]:
    """Flop/s of a cluster's cores, all that there are; none where one of them is not known."""
    found = [kind.speed for kind in cluster.types] if cluster is not None else []
    return tuple(speed for speed in found if speed is not None) if None not in found else ()


def storages_of(cluster: Cluster | None) -> Collection[str] | None:
    """Names of the storages in its network; None = nothing is known of a network."""
    return None if cluster is None or cluster.wiring is None else cluster.wiring.storages
