"""What joins the hosts of a machine: places, their hosts' ports, and the routes between them.

Rule: alike hosts behind one switch are one place, so that a machine of many hosts has few routes; what is a place's own
(ports) is nobody else's, what stands in routes is shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Hosts that reach all others alike.

    Args:
        port: bytes/s between each of its hosts and the place; infinite: nothing limits it.
        duplex: whether a port sends and receives at once.
    """

    name: str
    port: float = math.inf
    duplex: bool = True


@dataclass(frozen=True, slots=True)
class Link:
    """A link that jobs share.

    Args:
        bandwidth: bytes/s.
        shared: False where each job may use all of it, whoever else does.
    """

    name: str
    bandwidth: float
    shared: bool = True


@dataclass(frozen=True, slots=True)
class Way:
    """The links from one place to another, by number, without ports; and the seconds that a byte takes, with them."""

    links: tuple[int, ...] = ()
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class Network:
    """Hosts and what joins them.

    Args:
        speeds: of each host, flop/s.
        place_of: of each host.
        ways: from place to place, places x places, row by row.
        storages: name of a storage -> its place.
    """

    speeds: Array
    place_of: Array
    places: Sequence[Place]
    links: Sequence[Link] = ()
    ways: Sequence[Way] = ()
    storages: Mapping[str, int] = field(default_factory=dict)

    def storage(self, name: str) -> int:
        """The place of a storage; where there is one only, by any name."""
        return self.storages[name] if name in self.storages else next(iter(self.storages.values()))


def unlimited(speeds: Sequence[float]) -> Network:
    """Hosts of these speeds, and nothing that limits what they send. O(hosts)."""
    return Network(np.array(speeds, np.float64), np.zeros(len(speeds), np.int64), [Place("all")], ways=[Way()])


@dataclass(frozen=True, slots=True)
class Tree:
    """A switch for each group of nodes, and one that joins these; a `Wiring`.

    Args:
        port: bytes/s of each node, in both directions at once.
        switch: bytes/s that the nodes of a group send each other at most, together.
        backbone: bytes/s between groups.
        latency: seconds from any node to any other.
        speeds, group_of: of each node: flop/s, and the number of its group.
    """

    port: float
    switch: float = math.inf
    backbone: float = math.inf
    latency: float = 0.0
    speeds: tuple[float, ...] = ()
    group_of: tuple[int, ...] = ()

    @property
    def storages(self) -> tuple[str, ...]:
        """There are none."""
        return ()

    def network(self) -> Network:
        """See `Wiring`. O(groups^2)."""
        count = max(self.group_of) + 1
        links = [*(Link(f"switch {i}", self.switch) for i in range(count)), Link("backbone", self.backbone)]
        ways = [
            Way((a,) if a == b else (a, count, b), self.latency) for a in range(count) for b in range(count)
        ]  # fmt: skip
        places = [Place(f"group {i}", self.port) for i in range(count)]
        return Network(np.array(self.speeds), np.array(self.group_of, np.int64), places, links, ways)
