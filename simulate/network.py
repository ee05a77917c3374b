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
