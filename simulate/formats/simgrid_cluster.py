"""A SimGrid platform as Batsim takes it: a resource for each host that computes, by name, with its power states.

Rule: a host is one resource of one core, whatever its cores; who has the role of the master (or one of its usual names)
or of a storage is none. Speeds are in flop/s; memory and its bandwidth are not in the format, and without bounds here.
Source: Batsim's documentation, "Platform".
"""

from __future__ import annotations

import re

from ..platform import Cluster, Contention, Node, NodeType
from .hostlist import ALLOWED, is_node_name
from .shape import from_source, inside, nearest
from .simgrid_network import SimGridWiring
from .simgrid_platform import Host, SimGridPlatform
from .simgrid_power import PROPERTIES, power_of
from .units import bad, found

#: Bytes and bytes/s of what has no bounds.
BOUNDLESS = 1e14
#: Batsim's own name for the master; and that of the one host in a cluster of masters, as in its platforms.
MASTER = "master_host"
MASTERS = (MASTER, f"{MASTER}0")
ROLES = ("", "compute_node", "master", "storage")


def cluster_of(platform: SimGridPlatform) -> Cluster:
    """The cluster that Batsim would see. O(hosts).

    Raises:
        ConfigError: a host that is no resource for Batsim, or no host that is one; with its line.
    """
    return from_source(platform.source, _cluster, platform)


def _cluster(platform: SimGridPlatform) -> Cluster:
    of = {host: cluster.name for cluster in platform.clusters for host in cluster.hosts}
    computing = sorted(filter(_computes, platform.hosts), key=lambda host: _natural(host.name))
    if not computing:
        raise bad("no host computes", "at least one that is neither the master nor a storage")
    kinds: dict[tuple[object, ...], NodeType] = {}
    names: dict[str, int] = {}
    nodes = []
    for host in computing:
        alike = (host.speeds, host.pstate, *(host.properties.get(key) for key in PROPERTIES))
        if alike not in kinds:
            base = of.get(host.name, "host")
            names[base] = names.get(base, 0) + 1
            again = f"-{names[base]}" if names[base] > 1 else ""
            kinds[alike] = inside(f"line {host.line}: host {host.name}", _node_type, host, base + again)
        nodes.append(Node(host.name, kinds[alike]))
    kept = {node.name for node in nodes}
    groups = {
        cluster.name: members
        for cluster in platform.clusters
        if (members := tuple(host for host in cluster.hosts if host in kept))
    }
    name = re.split(r"[\\/]", platform.source)[-1].removesuffix(".xml") or "platform"
    storages = tuple(host.name for host in platform.hosts if host.properties.get("role") == "storage")
    wiring = SimGridWiring(platform, tuple(nodes), storages)
    return Cluster(name, tuple(nodes), groups=groups, source=platform.source, wiring=wiring)


def _computes(host: Host) -> bool:
    role = host.properties.get("role", "")
    if role not in ROLES:
        raise bad(found(role) + nearest(role, ROLES), ", ".join(ROLES[1:]), f"line {host.line}: host {host.name}.role")
    return role in ROLES[:2] and host.name not in MASTERS


def _natural(name: str) -> list[str | int]:
    """Numbers within names compare as numbers."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)]


def _node_type(host: Host, name: str) -> NodeType:
    if not is_node_name(host.name):
        raise bad(found(host.name), ALLOWED, key="id")
    speed = host.speeds[host.pstate]
    if speed <= 0:
        raise bad(f"found {speed:g} flop/s in state {host.pstate}, in which it begins", "more than 0", key="speed")
    return NodeType(
        name, 1, BOUNDLESS, BOUNDLESS, frequency=speed, speed=speed, contention=Contention.NONE, power=power_of(host)
    )
