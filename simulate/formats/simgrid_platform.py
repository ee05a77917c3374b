"""What a SimGrid platform is made of: hosts, clusters of them, links and routes, as frozen values.

Rule: this is what the file says, in its order and in base units; what Batsim makes of it is said in `simgrid_cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Host:
    """A host.

    Args:
        speeds: flop/s of a core in each performance state, one or more.
        pstate: the performance state that it begins in.
        line: where in the file it is.
        zone: the zone or cluster that it is in.
    """

    name: str
    speeds: tuple[float, ...]
    cores: int = 1
    pstate: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    line: int = 0
    zone: str = ""


@dataclass(frozen=True, slots=True)
class HostCluster:
    """Hosts that are alike, each behind a link (bytes/s, s), and all on a backbone if there is one."""

    name: str
    hosts: tuple[str, ...]
    bandwidth: float
    latency: float
    backbone_bandwidth: float | None = None
    backbone_latency: float = 0.0
    sharing: str = "SPLITDUPLEX"
    topology: str = "FLAT"
    backbone_sharing: str = "SHARED"
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A link: bytes/s (one for each of its states) and seconds."""

    name: str
    bandwidths: tuple[float, ...]
    latency: float = 0.0
    sharing: str = "SHARED"


@dataclass(frozen=True, slots=True)
class Route:
    """The links from one host or zone to another; of zones, through these gateways.

    Args:
        links: each with its direction, where it has one: UP, DOWN, or "".
    """

    source: str
    target: str
    links: tuple[tuple[str, str], ...]
    symmetrical: bool = True
    gateways: tuple[str, ...] = ()
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone, the one that it is in ("" = none), and how its routes are told."""

    name: str
    parent: str
    routing: str


@dataclass(frozen=True, slots=True)
class SimGridPlatform:
    """What a platform file holds, in its order."""

    hosts: tuple[Host, ...]
    clusters: tuple[HostCluster, ...] = ()
    links: tuple[Link, ...] = ()
    routes: tuple[Route, ...] = ()
    zones: tuple[Zone, ...] = ()
    source: str = ""
