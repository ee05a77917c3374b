"""The network of a SimGrid platform: what joins the hosts that compute, and the storages.

Rule: links and routes are as the file has them. A host's port in a cluster is its own; all else is shared. A route
between zones goes from the source to its zone's gateway, over the links between them, and from the other gateway on.
Source: SimGrid's documentation, "Routing model" and "Platform file reference" (cluster: a link for each host, both ways
at once by default, and a backbone).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from ..network import Link, Network, Place, Way
from ..platform import Node
from .shape import from_source, shown
from .simgrid_platform import HostCluster, Route, SimGridPlatform
from .units import bad

#: Places that a platform may have, of which there is a route from each to each.
MOST_PLACES = 1000
_BOTH_WAYS = ("SPLITDUPLEX", "FULLDUPLEX")
_TOLD = ("Full", "Floyd", "Dijkstra", "DijkstraCache")
#: A link of a route: its name, and its direction.
_Step = tuple[str, str]


@dataclass(frozen=True)
class SimGridWiring:
    """See `Wiring`."""

    platform: SimGridPlatform
    nodes: tuple[Node, ...]
    storages: tuple[str, ...]

    def network(self) -> Network:
        """See `Wiring`. O(places^2 x route)."""
        return from_source(self.platform.source, _Laid(self.platform, self.nodes, self.storages).network)


@dataclass
class _Laid:
    """What is looked up in a platform."""

    platform: SimGridPlatform
    nodes: tuple[Node, ...]
    storages: tuple[str, ...]
    numbers: dict[_Step, int] = field(default_factory=dict)
    found: list[Link] = field(default_factory=list)

    def network(self) -> Network:
        """All of it."""
        firsts, place_of, places = self._places()
        if len(places) > MOST_PLACES:
            raise bad(f"{len(places):,} places that hosts are at", f"at most {MOST_PLACES:,}: clusters of hosts")
        ways = [self._way(*pair) for pair in product(firsts, repeat=2)]
        speeds = [node.type.relative_speed for node in self.nodes]
        storages = {name: len(firsts) - len(self.storages) + i for i, name in enumerate(self.storages)}
        return Network(np.array(speeds), np.array(place_of, np.int64), places, self.found, ways, storages)

    def _places(self) -> tuple[list[tuple[str, str]], list[int], list[Place]]:
        """Of each place two of its hosts (the same where there is one); the place of each node; the places."""
        members: dict[str, list[str]] = {}
        for node in self.nodes:
            members.setdefault(self._place(node.name), []).append(node.name)
        number = {name: i for i, name in enumerate(members)}
        firsts = [(hosts[0], hosts[-1]) for hosts in members.values()] + [(name, name) for name in self.storages]
        places = [self._described(name) for name in members] + [Place(name) for name in self.storages]
        return firsts, [number[self._place(node.name)] for node in self.nodes], places

    def _place(self, host: str) -> str:
        zone = self.parents[host]
        return zone if zone in self.clusters else f"{zone}/{host}"

    def _described(self, place: str) -> Place:
        if place not in self.clusters:
            return Place(place)
        cluster = self.clusters[place]
        return Place(place, cluster.bandwidth, cluster.sharing in _BOTH_WAYS)

    def _way(self, source: tuple[str, str], target: tuple[str, str]) -> Way:
        """From a host of one place to another of the other; ports of hosts that compute are their places'."""
        begin, end = source[0], target[1]
        if begin == end:
            return Way()
        steps = self.route(begin, end)
        latency = sum(self._known(name)[1] for name, _ in steps)
        ports = {_port(host) for host in (begin, end) if host not in self.storages}
        return Way(tuple(self._number(step) for step in steps if step[0] not in ports), latency)

    @cached_property
    def clusters(self) -> dict[str, HostCluster]:
        """By name."""
        return {cluster.name: cluster for cluster in self.platform.clusters}

    @cached_property
    def parents(self) -> dict[str, str]:
        """Of hosts, clusters and zones: what they are in."""
        found: dict[str, str] = {}
        inner = [(each.name, each.zone) for each in self.platform.hosts]
        inner += [(each.name, each.zone) for each in self.platform.clusters]
        for name, zone in inner + [(each.name, each.parent) for each in self.platform.zones]:
            if not name or name in found:
                problem = f"more than one is called {shown(name)!r}" if name else "one has no name"
                raise bad(f"of its hosts, clusters and zones {problem}", "names that differ")
            found[name] = zone
        return found

    @cached_property
    def told(self) -> dict[str, dict[tuple[str, str], Route]]:
        """The routes of each zone, both ways where they are symmetrical."""
        found: dict[str, dict[tuple[str, str], Route]] = {}
        for route in self.platform.routes:
            mine = found.setdefault(route.zone, {})
            if route.symmetrical:
                mine.setdefault((route.target, route.source), _reversed(route))
            mine[route.source, route.target] = route
        return found

    def route(self, source: str, target: str) -> list[_Step]:
        """The links from one host or router to another."""
        above = self._above(source)
        common = next(zone for zone in self._above(target) if zone in above)
        if common in self.clusters:
            return self._within(self.clusters[common], source, target)
        begin, end = self._child(source, common), self._child(target, common)
        steps, at = list[_Step](), source
        for part in self._hops(common, begin, end):
            enters, leaves = part.gateways or (part.source, part.target)
            steps += [*self._up_to(part.source, at, enters), *part.links]
            at = leaves
        return [*steps, *self._up_to(end, at, target)]

    def _up_to(self, zone: str, source: str, target: str) -> list[_Step]:
        """Within a zone, between a host and a gateway, which is a host or a router that nothing else is said of."""
        if source == target:
            return []
        if zone in self.clusters:
            return self._within(self.clusters[zone], source, target)
        for name in (source, target):
            self.parents.setdefault(name, zone)
        return self.route(source, target)

    def _within(self, cluster: HostCluster, source: str, target: str) -> list[_Step]:
        if cluster.topology != "FLAT":
            raise bad(f"cluster {shown(cluster.name)!r} is a {cluster.topology}", "clusters that are FLAT")
        up = [(_port(source), "UP")] if source in self.parents else []
        down = [(_port(target), "DOWN")] if target in self.parents else []
        return [*up, *([(_backbone(cluster), "")] if cluster.backbone_bandwidth else []), *down]

    def _hops(self, zone: str, source: str, target: str) -> list[Route]:
        """The routes of a zone that lead from one of its hosts or zones to another."""
        told = self.told.get(zone, {})
        if (source, target) in told:
            return [told[source, target]]
        routing = next((each.routing for each in self.platform.zones if each.name == zone), "Full")
        if routing not in _TOLD:
            raise bad(f"the routes of zone {shown(zone)!r} are {routing}", ", ".join(_TOLD))
        path = () if routing == "Full" else self._shortest(told, source, target)
        if not path:
            what = f"no route from {shown(source)!r} to {shown(target)!r} in zone {shown(zone)!r}"
            raise bad(what, "one for each pair of what is in it")
        return [told[pair] for pair in pairwise(path)]

    @staticmethod
    def _shortest(told: dict[tuple[str, str], Route], source: str, target: str) -> list[str]:
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_weighted_edges_from((*pair, len(route.links)) for pair, route in told.items())
        try:
            return list(nx.dijkstra_path(graph, source, target))
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return []

    def _above(self, name: str) -> list[str]:
        """The zones that something is in, the nearest first."""
        found = list[str]()
        while name in self.parents:
            name = self.parents[name]
            found.append(name)
        return found

    def _child(self, name: str, zone: str) -> str:
        """What is directly in a zone, and holds this."""
        while self.parents[name] != zone:
            name = self.parents[name]
        return name

    def _number(self, step: _Step) -> int:
        """Of a link, or of one of its directions, among those that routes use."""
        bandwidth, _, sharing = self._known(step[0])
        single = step if sharing in _BOTH_WAYS else (step[0], "")
        if single not in self.numbers:
            self.numbers[single] = len(self.found)
            self.found.append(Link("".join(single), bandwidth, sharing != "FATPIPE"))
        return self.numbers[single]

    def _known(self, name: str) -> tuple[float, float, str]:
        if name not in self.described:
            raise bad(f"a route has the link {shown(name)!r}, which is not there", "links of this file")
        return self.described[name]

    @cached_property
    def described(self) -> dict[str, tuple[float, float, str]]:
        """Bandwidth, latency and sharing of each link, also of those that clusters have."""
        found = {link.name: (link.bandwidths[0], link.latency, link.sharing) for link in self.platform.links}
        for cluster in self.platform.clusters:
            for host in cluster.hosts:
                found[_port(host)] = cluster.bandwidth, cluster.latency, cluster.sharing
            if cluster.backbone_bandwidth:
                about = cluster.backbone_bandwidth, cluster.backbone_latency, cluster.backbone_sharing
                found[_backbone(cluster)] = about
        return found


def _port(host: str) -> str:
    return f"port of {host}"


def _backbone(cluster: HostCluster) -> str:
    return f"backbone of {cluster.name}"


def _reversed(route: Route) -> Route:
    turned = {"UP": "DOWN", "DOWN": "UP", "": ""}
    links = tuple((name, turned[direction]) for name, direction in reversed(route.links))
    return replace(route, source=route.target, target=route.source, links=links, gateways=route.gateways[::-1])
