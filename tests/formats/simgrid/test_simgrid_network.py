"""The network of a SimGrid platform: the links of routes, and errors."""

from __future__ import annotations

import math

import pytest

from pilotfish.formats.simgrid.cluster import cluster_of
from pilotfish.formats.simgrid.platform import parse_platform
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.network import Network, NetworkPlace

CLUSTER = '<cluster id="{0}" prefix="{0}" suffix="" radical="0-{1}" speed="1Gf" bw="1GBps" lat="1ms" {2}/>'
LINK = '<link id="{0}" bandwidth="{1}GBps" latency="{1}ms" sharing_policy="{2}"/>'


def network(inside: str, routing: str = "Full") -> Network:
    """Return the network of the hosts of a zone."""
    text = f'<platform version="4"><zone id="all" routing="{routing}">{inside}</zone></platform>'
    wiring = cluster_of(parse_platform(text.encode(), "p.xml")).wiring
    assert wiring is not None
    return wiring.network()


def way(found: Network, source: int, target: int) -> tuple[list[str], float]:
    """Return the links from one place to another, and the latency in ms."""
    one = found.ways[source * len(found.places) + target]
    return [found.links[link].name for link in one.links], round(one.latency * 1e3, 9)


def test_a_cluster_and_its_backbone() -> None:
    wiring = network(CLUSTER.format("c", 3, 'bb_bw="10GBps" bb_lat="2ms"'))
    assert wiring.places == [NetworkPlace("c", 1e9, True, loops=True)] and wiring.place_of.tolist() == [0, 0, 0, 0]
    assert way(wiring, 0, 0) == (["backbone of c"], 4.0)
    assert [link.bandwidth for link in wiring.links] == [1e10]


def test_a_cluster_without_backbone_with_half_duplex_links() -> None:
    wiring = network(CLUSTER.format("c", 1, 'sharing_policy="SHARED"'))
    assert wiring.places == [NetworkPlace("c", 1e9, False, loops=True)] and way(wiring, 0, 0) == ([], 2.0)


def test_connected_clusters_and_a_storage() -> None:
    parts = [
        CLUSTER.format("a", 1, 'bb_bw="10GBps" bb_lat="2ms"'),
        CLUSTER.format("b", 2, 'bb_bw="10GBps" bb_lat="2ms" bb_sharing_policy="FATPIPE"'),
        '<cluster id="s" prefix="disk" suffix="" radical="0" speed="1f" bw="5GBps" lat="1ms">'
        '<prop id="role" value="storage"/></cluster>',
        LINK.format("ab", 3, "SHARED"), LINK.format("as", 4, "SPLITDUPLEX"),
        '<zoneRoute src="a" dst="b" gw_src="ra" gw_dst="rb"><link_ctn id="ab"/></zoneRoute>',
        '<zoneRoute src="a" dst="s" gw_src="ra" gw_dst="rs"><link_ctn id="as" direction="UP"/></zoneRoute>',
        '<zoneRoute src="b" dst="s" gw_src="rb" gw_dst="rs"><link_ctn id="ab"/></zoneRoute>',
    ]  # fmt: skip
    wiring = network("".join(parts))
    assert [place.name for place in wiring.places] == ["a", "b", "disk0"] and wiring.storages == {"disk0": 2}
    assert wiring.places[2] == NetworkPlace("disk0") and wiring.place_of.tolist() == [0, 0, 1, 1, 1]
    assert way(wiring, 0, 1) == (["backbone of a", "ab"], 1 + 2 + 3 + 2 + 1)
    assert way(wiring, 1, 0) == (["ab", "backbone of a"], 9)
    assert way(wiring, 0, 2) == (["backbone of a", "asUP", "port of disk0DOWN"], 1 + 2 + 4 + 1)
    assert way(wiring, 2, 0) == (["port of disk0UP", "asDOWN", "backbone of a"], 8)
    assert "backbone of b" not in {link.name for link in wiring.links}, "each flow has all of it"


@pytest.mark.parametrize(
    ("more", "place", "flow"),
    [
        # 4194304 bytes / (2 x 2 ms)
        ("", NetworkPlace("c", 1e9, loops=True), 4194304 / 4e-3),
        (
            'sharing_policy="FATPIPE"',
            NetworkPlace("c", 1e9, False, loops=True),
            4194304 / 4e-3,
        ),  # plain links in SimGrid
        ('bb_bw="300MBps" bb_lat="0" bb_sharing_policy="FATPIPE"', NetworkPlace("c", 1e9, loops=True), 3e8),
        (
            'bb_bw="300MBps" bb_lat="98ms" bb_sharing_policy="FATPIPE"',
            NetworkPlace("c", 1e9, loops=True),
            4194304 / 0.2,
        ),
        ('limiter_link="60MBps"', NetworkPlace("c", 1e9, limit=6e7, loops=True), 4194304 / 4e-3),
    ],
)
def test_what_limits_each_flow_and_each_host(more: str, place: NetworkPlace, flow: float) -> None:
    wiring = network(CLUSTER.format("c", 3, more))
    assert wiring.places == [place] and not wiring.links
    assert wiring.ways[0].flow == pytest.approx(flow, rel=1e-12)


def test_the_limiter_of_a_storage_is_shared_by_all_that_use_it() -> None:
    disk = '<cluster id="s" prefix="disk" suffix="" radical="0" speed="1f" bw="1GBps" lat="0" limiter_link="60MBps">'
    parts = [
        CLUSTER.format("a", 1, ""),
        f'{disk}<prop id="role" value="storage"/></cluster>',
        LINK.format("as", 4, "SHARED"),
        '<zoneRoute src="a" dst="s" gw_src="ra" gw_dst="rs"><link_ctn id="as"/></zoneRoute>',
    ]
    wiring = network("".join(parts))
    assert way(wiring, 0, 1)[0] == ["as", "port of disk0DOWN", "limiter of disk0"]
    assert way(wiring, 1, 0)[0] == ["limiter of disk0", "port of disk0UP", "as"]


def test_a_bypass_route_between_hosts_holds_in_one_direction() -> None:
    links = LINK.format("slow", 1, "SHARED") + LINK.format("fast", 5, "SHARED")
    route = '<route src="a" dst="b"><link_ctn id="slow"/></route>'
    bypass = '<bypassRoute src="a" dst="b"><link_ctn id="fast"/></bypassRoute>'
    wiring = network(HOSTS + links + route + bypass)
    assert way(wiring, 0, 1) == (["fast"], 5.0) and way(wiring, 1, 0) == (["slow"], 1.0)


def test_a_bypass_route_between_zones_goes_from_gateway_to_gateway() -> None:
    parts = [
        *(CLUSTER.format(name, 1, "") for name in "ab"),
        LINK.format("slow", 1, "SHARED"), LINK.format("fast", 5, "SHARED"),
        '<zoneRoute src="a" dst="b" gw_src="ra" gw_dst="rb"><link_ctn id="slow"/></zoneRoute>',
        '<bypassZoneRoute src="a" dst="b" gw_src="ra" gw_dst="rb"><link_ctn id="fast"/></bypassZoneRoute>',
    ]  # fmt: skip
    wiring = network("".join(parts))
    assert way(wiring, 0, 1) == (["fast"], 1 + 5 + 1) and way(wiring, 1, 0) == (["slow"], 1 + 1 + 1)


def test_single_hosts_and_nested_zones() -> None:
    zone = (
        '<zone id="{0}" routing="Full"><host id="{0}1" speed="1f"/><host id="{0}2" speed="1f"/><router id="{0}r"/>'
        '<route src="{0}1" dst="{0}2"><link_ctn id="w"/></route>'
        '<route src="{0}1" dst="{0}r"><link_ctn id="g"/></route>'
        '<route src="{0}2" dst="{0}r"><link_ctn id="w"/><link_ctn id="g"/></route></zone>'
    )
    links = LINK.format("w", 1, "SHARED") + LINK.format("g", 2, "SHARED") + LINK.format("top", 3, "SHARED")
    joined = '<zoneRoute src="x" dst="y" gw_src="xr" gw_dst="yr"><link_ctn id="top"/></zoneRoute>'
    wiring = network(links + zone.format("x") + zone.format("y") + joined)
    assert [place.port for place in wiring.places] == [math.inf] * 4 and wiring.place_of.tolist() == [0, 1, 2, 3]
    assert way(wiring, 0, 1) == (["w"], 1.0) and way(wiring, 1, 1) == ([], 0.0)
    assert way(wiring, 1, 2) == (["w", "g", "top", "g"], 1 + 2 + 3 + 2)
    assert way(wiring, 0, 3) == (["g", "top", "g", "w"], 8.0), "a symmetrical route is turned round"


def test_the_gateway_of_a_zone_may_be_a_router_of_a_zone_inside_it() -> None:
    inner = CLUSTER.format("c", 2, "") + CLUSTER.format("d", 2, 'router_id="rd"')
    inner += '<zoneRoute src="c" dst="d" gw_src="rc" gw_dst="rd"><link_ctn id="w"/></zoneRoute>'
    last = '<zone id="e" routing="Full"><host id="e0" speed="1f"/><router id="re"/><link id="g" bandwidth="1Bps" latency="4ms"/>'
    last += '<route src="e0" dst="re"><link_ctn id="g"/></route></zone>'
    links = LINK.format("w", 2, "SHARED") + LINK.format("top", 3, "SHARED")
    joined = '<zoneRoute src="in" dst="out" gw_src="rd" gw_dst="re"><link_ctn id="top"/></zoneRoute>'
    wiring = network(
        f'{links}<zone id="in" routing="Full">{inner}</zone><zone id="out" routing="Full">{last}</zone>{joined}'
    )
    assert way(wiring, 0, 2) == (["w", "top", "g"], 1 + 2 + 3 + 4), (
        "from the first cluster over the second one's router"
    )
    assert way(wiring, 1, 2) == (["top", "g"], 1 + 3 + 4)


@pytest.mark.parametrize("routing", ["Floyd", "Dijkstra"])
def test_computed_routes(routing: str) -> None:
    hosts = "".join(f'<host id="h{i}" speed="1f"/>' for i in range(4))
    links = "".join(LINK.format(f"l{i}", 1, "SHARED") for i in range(4))
    hops = "".join(f'<route src="h{i}" dst="h{i + 1}"><link_ctn id="l{i}"/></route>' for i in range(3))
    wiring = network(hosts + links + hops, routing)
    assert way(wiring, 0, 3) == (["l0", "l1", "l2"], 3.0) and way(wiring, 3, 1) == (["l2", "l1"], 2.0)


HOSTS = '<host id="a" speed="1f"/><host id="b" speed="1f"/>'


@pytest.mark.parametrize(
    ("inside", "routing", "why"),
    [
        (HOSTS, "Full", "no route from 'a' to 'b' in zone 'all'"),
        (HOSTS, "Floyd", "no route from 'a' to 'b' in zone 'all'"),
        (HOSTS, "Vivaldi", "zone 'all' has the routing Vivaldi"),
        (HOSTS + '<route src="a" dst="b"><link_ctn id="x"/></route>', "Full", "the unknown link 'x'"),
        (CLUSTER.format("c", 3, 'topology="TORUS"'), "Full", "cluster 'c' has the topology TORUS"),
        (CLUSTER.format("", 3, ""), "Full", "one has no name"),
        (f'<zone id="all" routing="Full">{HOSTS}</zone>', "Full", "several have the name 'all'"),
        (HOSTS + '<zone id="a" routing="Full"/>', "Full", "several have the name 'a'"),
        ("".join(f'<host id="h{i}" speed="1f"/>' for i in range(1001)), "Full", "1,001 places of hosts"),
    ],
)
def test_a_network_that_cannot_be_simulated_is_refused(inside: str, routing: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"p.xml: .*{why}"):
        network(inside, routing)


def own(found: Network, place: int) -> tuple[list[str], float, float]:
    """Return the links from a host of a place to itself, the latency in us, and the most that a flow gets."""
    one = found.own[place]
    return [found.links[link].name for link in one.links], round(one.latency * 1e6, 9), one.flow


@pytest.mark.parametrize(
    ("more", "loops", "expected"),
    [
        ("", True, ([], 2000.0, 4194304 / 4e-3)),  # up and down its port
        ('bb_bw="10GBps" bb_lat="1us"', True, (["backbone of c"], 2001.0, 4194304 / 4.002e-3)),
        ('sharing_policy="SHARED"', True, ([], 1000.0, 4194304 / 2e-3)),  # one link, taken once
        ('loopback_bw="3GBps" loopback_lat="2us"', False, ([], 2.0, 3e9)),
    ],
)
def test_from_a_host_of_a_cluster_to_itself(more: str, loops: bool, expected: tuple[list[str], float, float]) -> None:
    wiring = network(CLUSTER.format("c", 3, more))
    assert wiring.places[0].loops == loops and own(wiring, 0) == pytest.approx(expected)


def test_from_a_single_host_to_itself() -> None:
    """The route of its own, or SimGrid's loopback; none in a zone with zones in it."""
    hosts = '<host id="a" speed="1f"/><host id="b" speed="1f"/>' + LINK.format("l", 2, "SHARED")
    routes = '<route src="a" dst="b"><link_ctn id="l"/></route>'
    loop = '<route src="a" dst="a"><link_ctn id="l"/></route>'
    wiring = network(hosts + routes + loop)
    assert own(wiring, 0) == (["l"], 2000.0, 4194304 / 4e-3) and own(wiring, 1) == ([], 0.0, 10e9)
    inner = '<zone id="z" routing="Full"><host id="c" speed="1f"/></zone>'
    parts = [
        f'<zoneRoute src="z" dst="{host}" gw_src="c" gw_dst="{host}"><link_ctn id="l"/></zoneRoute>' for host in "ab"
    ]
    wiring = network(hosts + routes + inner + "".join(parts))
    assert own(wiring, 0) == ([], 0.0, math.inf) and own(wiring, 2) == ([], 0.0, 10e9)
