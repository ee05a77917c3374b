"""The network of a machine: places with equal hosts, the ports of the hosts, and the routes between places.

Rule: equal hosts behind one switch are one place, so that a large machine has few routes. Ports belong to their hosts;
links in routes are shared. What limits each flow by itself is a number of the route.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import ClassVar

from ..arrays import Array


@dataclass(frozen=True, slots=True)
class NetworkPlace:
    """Hosts that reach all other hosts in the same way.

    `port` is the bytes/s between each host and the place; a `duplex` port sends and receives at the same time.
    `limit` is the most that a host sends and receives together, bytes/s. With `loops`, what a host sends to itself also
    passes through its port.
    """

    name: str
    port: float = math.inf
    duplex: bool = True
    limit: float = math.inf
    loops: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link in routes, of `bandwidth` bytes/s, that all flows share."""

    name: str
    bandwidth: float


@dataclass(frozen=True, slots=True)
class NetworkRoute:
    """The route from one place to another.

    Args:
        links: numbers of the shared links, without ports.
        latency: seconds, with ports.
        flow: the most that a flow from one host to another gets, bytes/s.
    """

    links: tuple[int, ...] = ()
    latency: float = 0.0
    flow: float = math.inf


@dataclass(frozen=True, slots=True)
class Network:
    """Hosts and the network between them."""

    speeds: Array  # of a core of each host, flop/s [hosts]
    place_of: Array  # place of each host [hosts]
    places: Sequence[NetworkPlace]  # the places
    links: Sequence[Link] = ()  # the links of all routes
    ways: Sequence[NetworkRoute] = ()  # the route of each pair of places, row by row [places x places]
    storages: Mapping[str, int] = field(default_factory=dict)  # name of a storage -> its place
    increments: bool = False  # links are shared as SimGrid does; otherwise by max-min fairness
    own: Sequence[NetworkRoute] = ()  # from a host to itself, of each place; () = that takes no time
    cores: tuple[int, ...] = ()  # of each host [hosts]; () = one each

    def storage(self, name: str) -> int:
        """Return the place of a storage; the only storage has every name."""
        return self.storages[name] if name in self.storages else next(iter(self.storages.values()))


#: How links are shared: by max-min fairness, or as SimGrid does.
SOLVERS = ("max-min", "simgrid")


def solved_as(solver: str, network: Callable[[], Network]) -> Network:
    """Return a network whose links are shared in that way.

    Args:
        solver: one of SOLVERS.
        network: makes the network.
    """
    return replace(network(), increments=solver == "simgrid")


def unlimited(speeds: Sequence[float]) -> Network:
    """Return a network of hosts with these speeds that limits nothing. O(hosts)."""
    import numpy as np

    return Network(
        np.array(speeds, np.float64), np.zeros(len(speeds), np.int64), [NetworkPlace("all")], ways=[NetworkRoute()]
    )


@dataclass(frozen=True, slots=True)
class Tree:
    """A switch for each group of nodes, and a backbone between the switches; a `Wiring`."""

    port: float  # bytes/s of each node, in both directions at once
    switch: float = math.inf  # bytes/s of all traffic inside a group
    backbone: float = math.inf  # bytes/s between groups
    latency: float = 0.0  # seconds between any two nodes
    speeds: tuple[float, ...] = ()  # flop/s of a core of each node
    group_of: tuple[int, ...] = ()  # group number of each node
    cores: tuple[int, ...] = ()  # of each node; () = one each

    storages: ClassVar[tuple[str, ...]] = ()  # this file format has none
    ignored: ClassVar[tuple[str, ...]] = ()

    def network(self) -> Network:
        """See `Wiring`. O(groups^2)."""
        import numpy as np

        count = max(self.group_of) + 1
        links = [*(Link(f"switch {i}", self.switch) for i in range(count)), Link("backbone", self.backbone)]
        pairs = product(range(count), repeat=2)
        ways = [NetworkRoute((a,) if a == b else (a, count, b), self.latency) for a, b in pairs]
        places = [NetworkPlace(f"group {i}", self.port) for i in range(count)]
        return Network(np.array(self.speeds), np.array(self.group_of, np.int64), places, links, ways, cores=self.cores)
