"""The network of a SimGrid platform between the hosts that compute and the storages.

Rule: links and routes are those of the file. A host's port in a cluster is its own; all other links are shared, except
for FATPIPE links: each flow has all of such a link. A route between zones goes from the source to its zone's gateway,
over the links between the zones, and on from the other gateway, unless a bypass route replaces that. A flow gets at
most TCP_WINDOW / (2 x latency) bytes/s. From a host to itself, a flow takes the loopback of the cluster, or up and down
its links; outside clusters, the route from the host to itself, or SimGrid's loopback in zones without inner zones.
Source: SimGrid's documentation, "Routing model", "Platform file reference" (cluster: a link for each host, full
duplex by default, a limiter that both directions share, and a backbone), "TCP-gamma", and "Configuring loopback link".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from ...simulate.model.cluster import Node
from ...simulate.model.network import Link, Network, NetworkPlace, NetworkRoute
from ..documents.document_errors import bad, from_source, shown
from ..text import count
from .platform import HostCluster, Route, SimGridPlatform

#: Largest number of places; there is a route for each pair.
MOST_PLACES = 1000
_BOTH_WAYS, _EACH_FLOW = ("SPLITDUPLEX", "FULLDUPLEX"), "FATPIPE"
_EXPLICIT_ROUTING = ("Full", "Floyd", "Dijkstra", "DijkstraCache")
#: SimGrid's largest TCP window, bytes.
TCP_WINDOW = 4194304.0
#: The link from a host to itself by default: bytes/s, seconds, and each flow has all of it.
LOOPBACK = 10e9, 0.0, _EACH_FLOW
#: A link of a route: its name, and its direction.
_Step = tuple[str, str]


@dataclass
class SimGridWiring:
    """The `Wiring` of a platform: its places, routes and links, looked up when they are needed."""

    platform: SimGridPlatform
    nodes: tuple[Node, ...]
    storages: tuple[str, ...]
    numbers: dict[_Step, int] = field(default_factory=dict, init=False, repr=False)
    found: list[Link] = field(default_factory=list, init=False, repr=False)

    @property
    def ignored(self) -> tuple[str, ...]:
        """See `Wiring`."""
        return self.platform.ignored

    def network(self) -> Network:
        """See `Wiring`. O(places^2 x route)."""
        return from_source(self.platform.source, self._network)

    def _network(self) -> Network:
        firsts, place_of, places = self._places()
        if len(places) > MOST_PLACES:
            raise bad(
                f"found {count(len(places), 'place')} of hosts", f"at most {MOST_PLACES:,}; use clusters of hosts"
            )
        routes = [self._network_route(*pair) for pair in product(firsts, repeat=2)]
        speeds = [node.type.relative_speed for node in self.nodes]
        storages = {name: len(firsts) - len(self.storages) + i for i, name in enumerate(self.storages)}
        loops = [self._along(self.route_to_itself(host), host, host) for host, _ in firsts]
        cores_of = {host.name: host.cores for host in self.platform.hosts}
        cores = tuple(cores_of[node.name] for node in self.nodes)
        return Network(
            np.array(speeds), np.array(place_of), places, self.found, routes, storages, own=loops, cores=cores
        )

    def _places(self) -> tuple[list[tuple[str, str]], list[int], list[NetworkPlace]]:
        """Return two hosts of each place, the place of each node, and the places.

        A place with only one host has it twice.
        """
        members: dict[str, list[str]] = {}
        for node in self.nodes:
            members.setdefault(self._place(node.name), []).append(node.name)
        number = {name: i for i, name in enumerate(members)}
        firsts = [(hosts[0], hosts[-1]) for hosts in members.values()] + [(name, name) for name in self.storages]
        places = [self._described(name) for name in members] + [NetworkPlace(name) for name in self.storages]
        return firsts, [number[self._place(node.name)] for node in self.nodes], places

    def _place(self, host: str) -> str:
        zone = self.parents[host]
        return zone if zone in self.clusters else f"{zone}/{host}"

    def _described(self, place: str) -> NetworkPlace:
        if place not in self.clusters:
            return NetworkPlace(place)
        cluster = self.clusters[place]
        limit, loops = cluster.limiter or math.inf, cluster.loopback is None
        return NetworkPlace(place, cluster.bandwidth, cluster.sharing in _BOTH_WAYS, limit, loops)

    def _network_route(self, source: tuple[str, str], target: tuple[str, str]) -> NetworkRoute:
        """Return the route between hosts of two places, without the ports, which belong to the places."""
        begin, end = source[0], target[1]
        return self._along(self.route_to_itself(begin) if begin == end else self.route(begin, end), begin, end)

    def _along(self, steps: list[_Step], begin: str, end: str) -> NetworkRoute:
        links = [self._link_facts(name) for name, _ in steps]
        latency = sum(facts[1] for facts in links)
        flow = min([bandwidth for bandwidth, _, sharing in links if sharing == _EACH_FLOW], default=math.inf)
        if latency > 0:
            flow = min(flow, TCP_WINDOW / (2 * latency))
        private_links = {link(host) for host in (begin, end) if host not in self.storages for link in (_port, _limiter)}
        shared = [step for step, (*_, sharing) in zip(steps, links, strict=True) if sharing != _EACH_FLOW]
        return NetworkRoute(tuple(self._number(step) for step in shared if step[0] not in private_links), latency, flow)

    @cached_property
    def clusters(self) -> dict[str, HostCluster]:
        """Clusters by name."""
        return {cluster.name: cluster for cluster in self.platform.clusters}

    @cached_property
    def parents(self) -> dict[str, str]:
        """Name of a host, router, cluster or zone -> the zone or cluster that contains it."""
        zone_of: dict[str, str] = {}
        inner = [(host.name, host.zone) for host in self.platform.hosts]
        inner += [(cluster.name, cluster.zone) for cluster in self.platform.clusters]
        for name, zone in inner + [(inner_zone.name, inner_zone.parent) for inner_zone in self.platform.zones]:
            if not name or name in zone_of:
                problem = f"several have the name {shown(name)!r}" if name else "one has no name"
                raise bad(f"hosts, clusters and zones: {problem}", "unique names")
            zone_of[name] = zone
        return dict(self.platform.routers) | zone_of

    @cached_property
    def declared(self) -> dict[str, dict[tuple[str, str], Route]]:
        """The routes of each zone, in both directions where they are symmetrical."""
        routes: dict[str, dict[tuple[str, str], Route]] = {}
        for route in self.platform.routes:
            if route.bypass:
                continue
            of_zone = routes.setdefault(route.zone, {})
            if route.symmetrical:
                of_zone.setdefault((route.target, route.source), _reversed(route))
            of_zone[route.source, route.target] = route
        return routes

    @cached_property
    def bypasses(self) -> dict[tuple[str, str, str], Route]:
        """The bypass routes by zone, source and target."""
        return {(route.zone, route.source, route.target): route for route in self.platform.routes if route.bypass}

    def route(self, source: str, target: str) -> list[_Step]:
        """Return the links from one host or router to another."""
        source_path, target_path = self._path_up(source), self._path_up(target)
        common = next(zone for zone in target_path[1:] if zone in source_path[1:])
        if common in self.clusters:
            return self._within(self.clusters[common], source, target)
        below = [path[: path.index(common, 1)] for path in (source_path, target_path)]
        if bypass := self._bypass(common, *below):
            enters, leaves = bypass.gateways or (bypass.source, bypass.target)
            first, last = self._up_to(bypass.source, source, enters), self._up_to(bypass.target, leaves, target)
            return [*first, *bypass.links, *last]
        begin, end = (path[-1] for path in below)
        steps, at = list[_Step](), source
        for part in self._hops(common, begin, end):
            enters, leaves = part.gateways or (part.source, part.target)
            steps += [*self._up_to(part.source, at, enters), *part.links]
            at = leaves
        return [*steps, *self._up_to(end, at, target)]

    def route_to_itself(self, host: str) -> list[_Step]:
        """Return the links from a host to itself."""
        zone = self.parents[host]
        if zone in self.clusters:
            cluster = self.clusters[zone]
            if cluster.loopback:
                return [(_loopback(host), "")]
            both = cluster.sharing in _BOTH_WAYS  # else up and down are one link, which is taken once
            return list(
                dict.fromkeys(
                    (name, direction if both else "") for name, direction in self._within(cluster, host, host)
                )
            )
        if (host, host) in self.declared.get(zone, {}):
            return list(self.declared[zone][host, host].links)
        return [] if zone in self.outer else [(_loopback(""), "")]

    @cached_property
    def outer(self) -> set[str]:
        """Names of the zones with zones or clusters in them."""
        return {part.parent for part in self.platform.zones} | {part.zone for part in self.platform.clusters}

    def _bypass(self, zone: str, source_path: list[str], target_path: list[str]) -> Route | None:
        """Return the bypass route of a zone between two of its members, or members of these, the innermost first."""
        if not self.bypasses:
            return None
        pairs = product(range(len(source_path)), range(len(target_path)))
        keys = ((zone, source_path[i], target_path[k]) for i, k in sorted(pairs, key=lambda pair: (max(pair), pair)))
        return next((self.bypasses[key] for key in keys if key in self.bypasses), None)

    def _up_to(self, zone: str, source: str, target: str) -> list[_Step]:
        """Return the links inside a zone between a host and a gateway.

        A gateway is a host or a router, perhaps of a zone further inside; one that is not declared is in this zone.
        """
        if source == target:
            return []
        if zone in self.clusters:
            return self._within(self.clusters[zone], source, target)
        for name in (source, target):
            self.parents.setdefault(name, zone)
        return self.route(source, target)

    def _within(self, cluster: HostCluster, source: str, target: str) -> list[_Step]:
        if cluster.topology != "FLAT":
            raise bad(f"cluster {shown(cluster.name)!r} has the topology {cluster.topology}", "FLAT")
        up = [(_port(source), "UP")] if _port(source) in self.described else []
        down = [(_port(target), "DOWN")] if _port(target) in self.described else []
        if cluster.limiter:
            up, down = [*((_limiter(source), "") for _ in up), *up], [*down, *((_limiter(target), "") for _ in down)]
        return [*up, *([(_backbone(cluster), "")] if cluster.backbone_bandwidth else []), *down]

    def _hops(self, zone: str, source: str, target: str) -> list[Route]:
        """Return the routes of a zone that lead from one of its hosts or zones to another."""
        declared = self.declared.get(zone, {})
        if (source, target) in declared:
            return [declared[source, target]]
        routing = next((part.routing for part in self.platform.zones if part.name == zone), "Full")
        if routing not in _EXPLICIT_ROUTING:
            raise bad(f"zone {shown(zone)!r} has the routing {routing}", ", ".join(_EXPLICIT_ROUTING))
        path = () if routing == "Full" else self._shortest(declared, source, target)
        if not path:
            problem = f"no route from {shown(source)!r} to {shown(target)!r} in zone {shown(zone)!r}"
            raise bad(problem, "a route for each pair of its members")
        return [declared[pair] for pair in pairwise(path)]

    @staticmethod
    def _shortest(declared: dict[tuple[str, str], Route], source: str, target: str) -> list[str]:
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_weighted_edges_from((*pair, len(route.links)) for pair, route in declared.items())
        try:
            return list(nx.dijkstra_path(graph, source, target))
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return []

    def _path_up(self, name: str) -> list[str]:
        """Return a host, router or zone and the zones that contain it, the nearest first."""
        path = [name]
        while path[-1] in self.parents:
            path.append(self.parents[path[-1]])
        return path

    def _number(self, step: _Step) -> int:
        """Return the number of a link, or of one of its directions, among those that routes use."""
        bandwidth, _, sharing = self._link_facts(step[0])
        single = step if sharing in _BOTH_WAYS else (step[0], "")
        if single not in self.numbers:
            self.numbers[single] = len(self.found)
            self.found.append(Link("".join(single), bandwidth))
        return self.numbers[single]

    def _link_facts(self, name: str) -> tuple[float, float, str]:
        if name not in self.described:
            raise bad(f"a route uses the unknown link {shown(name)!r}", "links of this file")
        return self.described[name]

    @cached_property
    def described(self) -> dict[str, tuple[float, float, str]]:
        """Bandwidth, latency and sharing of each link, including those of clusters."""
        links = {link.name: (link.bandwidths[0], link.latency, link.sharing) for link in self.platform.links}
        links[_loopback("")] = LOOPBACK
        for cluster in self.platform.clusters:
            for host in cluster.hosts:
                sharing = "SHARED" if cluster.sharing == _EACH_FLOW else cluster.sharing  # as SimGrid does
                links[_port(host)] = cluster.bandwidth, cluster.latency, sharing
                if cluster.loopback:
                    links[_loopback(host)] = *cluster.loopback, _EACH_FLOW
                if cluster.limiter:
                    links[_limiter(host)] = cluster.limiter, 0.0, "SHARED"
            if cluster.backbone_bandwidth:
                about = cluster.backbone_bandwidth, cluster.backbone_latency, cluster.backbone_sharing
                links[_backbone(cluster)] = about
        return links


def _port(host: str) -> str:
    return f"port of {host}"


def _limiter(host: str) -> str:
    return f"limiter of {host}"


def _loopback(host: str) -> str:
    return f"loopback of {host}"


def _backbone(cluster: HostCluster) -> str:
    return f"backbone of {cluster.name}"


def _reversed(route: Route) -> Route:
    turned = {"UP": "DOWN", "DOWN": "UP", "": ""}
    links = tuple((name, turned[direction]) for name, direction in reversed(route.links))
    return replace(route, source=route.target, target=route.source, links=links, gateways=route.gateways[::-1])
