"""SimGrid's platform files: elements, units, and errors."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.documents.plausible import cluster_doubts
from pilotfish.formats.simgrid.cluster import cluster_of
from pilotfish.formats.simgrid.platform import (
    PlatformLink,
    PlatformZone,
    Route,
    SimGridPlatform,
    parse_bandwidth,
    parse_platform,
    parse_speed,
    parse_time,
    read_platform,
)
from pilotfish.simulate.errors import ConfigError

WHOLE = """
<?xml version='1.0'?>
<!-- a platform -->
<!DOCTYPE platform SYSTEM "http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd">
<platform version="4.1">
<config id="General"><prop id="contexts/stack-size" value="16"/></config>
<zone id="AS0" routing="Full">
  <prop id="of" value="the zone"/>
  <zone id="AS1" routing="Full">
    <host id="master_host" speed="98.095Mf" coordinates="0 0 0">
      <disk id="d" read_bw="1MBps" write_bw="1MBps"><prop id="size" value="1"/></disk>
      <prop id="role" value="master"/>
    </host>
    <host id="alone" speed="2Gf, 1.5Gf ,1e-9Mf" core="4" pstate="1"><prop id="mem" value="4 &amp; 5"/></host>
    <router id="r"/>
  </zone>
  <cluster id="acme" prefix="node-" suffix=".org" radical="0-2,7" speed="1Gf" core="2" bw="125MBps" lat="50us"
    bb_bw="2.25GBps" bb_lat="500us" sharing_policy="FATPIPE" topology="TORUS" topo_parameters="2,2">
    <prop id="watt_per_state" value="1:2"/>
  </cluster>
  <cabinet id="acme" prefix="cab" suffix="" radical="3-3" speed="1Gf" bw="1Gbps" lat="1ms"/>
  <link id="l1" bandwidth="1Gbps" latency="100us"/>
  <link id="l2" bandwidth="1KiBps,2kBps" sharing_policy="WIFI"><prop id="x" value="y"/></link>
  <route src="a" dst="b"><link_ctn id="l1"/><link_ctn id="l2" direction="UP"/></route>
  <zoneRoute src="AS1" dst="acme" gw_src="r" gw_dst="s" symmetrical="NO"><link_ctn id="l1"/></zoneRoute>
  <bypassRoute src="a" dst="b"><link_ctn id="l1"/></bypassRoute>
</zone>
</platform>
"""


def parse(text: str) -> SimGridPlatform:
    """Return the platform in this text."""
    return parse_platform(text.encode(), "p.xml")


def zone(inside: str) -> str:
    """Return a platform of one zone, on one line."""
    return f'<platform version="4"><zone id="z" routing="Full">{inside}</zone></platform>'


HOST = '<host id="h" speed="1Gf"/>'


def test_every_element_of_a_platform(tmp_path: Path) -> None:
    (tmp_path / "p.xml").write_text(WHOLE)
    platform = read_platform(tmp_path / "p.xml")
    assert [host.name for host in platform.hosts] == [
        "master_host", "alone", "node-0.org", "node-1.org", "node-2.org", "node-7.org", "cab3"
    ]  # fmt: skip
    master, alone, node = platform.hosts[:3]
    assert master.properties == {"role": "master"} and master.line == 10
    assert (alone.speeds, alone.cores, alone.pstate) == ((2e9, 1.5e9, 1e-9 * 1e6), 4, 1)
    assert alone.properties == {"mem": "4 & 5"}
    assert (node.speeds, node.cores, node.properties) == ((1e9,), 2, {"watt_per_state": "1:2"})
    acme, cabinet = platform.clusters
    assert acme.hosts == ("node-0.org", "node-1.org", "node-2.org", "node-7.org") and acme.topology == "TORUS"
    assert (acme.bandwidth, acme.latency) == (125e6, 50 * 1e-6)
    assert (acme.backbone_bandwidth, acme.backbone_latency) == (2.25e9, 500 * 1e-6)
    assert (cabinet.name, cabinet.hosts, cabinet.bandwidth) == ("acme-2", ("cab3",), 0.125e9)
    assert platform.links == (
        PlatformLink("l1", (0.125e9,), 100 * 1e-6), PlatformLink("l2", (1024.0, 2000.0), sharing="WIFI")
    )  # fmt: skip
    assert platform.routes == (
        Route("a", "b", (("l1", ""), ("l2", "UP")), zone="AS0"),
        Route("AS1", "acme", (("l1", ""),), symmetrical=False, gateways=("r", "s"), zone="AS0"),
        Route("a", "b", (("l1", ""),), symmetrical=False, zone="AS0", bypass=True),
    )
    assert platform.zones == (PlatformZone("AS0", "", "Full"), PlatformZone("AS1", "AS0", "Full"))
    assert (alone.zone, node.zone, acme.zone, cabinet.zone) == ("AS1", "acme", "AS0", "AS0")


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_speed, "1Gf", 1e9),
        (parse_speed, "98.095Mf", 98.095 * 1e6),
        (parse_speed, "1e-9Mf", 1e-9 * 1e6),
        (parse_speed, ".5f", 0.5),
        (parse_speed, "5.f", 5.0),
        (parse_speed, "1e3", 1000.0),
        (parse_speed, "0.1Ef", 1e17),
        (parse_speed, "1Yf", 1e18),
        (parse_speed, "2yottaflops", 1e18),
        (parse_bandwidth, "1EBps", 1e18),
        (parse_bandwidth, "1000EBps", 1e18),
        (parse_bandwidth, "1ZiBps", 1e18),
        (parse_bandwidth, "8Ebps", 1e18),
        (parse_speed, "2gigaflops", 2e9),
        (parse_speed, "3kiloflops", 3e3),
        (parse_bandwidth, "125MBps", 125e6),
        (parse_bandwidth, "1Gbps", 125e6),
        (parse_bandwidth, "1GiBps", 2.0**30),
        (parse_bandwidth, "8Kibps", 1024.0),
        (parse_time, "0", 0.0),
        (parse_time, "50us", 50 * 1e-6),
        (parse_time, "2m", 120.0),
        (parse_time, "1.461517ms", 1.461517 * 1e-3),
    ],
)
def test_units(parse, text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text", ["", "f", "1 Gf", "1GF", "1gf", "-1f", "nan", "infGf", "0x1f", "1e999f", "1Xf", "1,5f", "1MBps"]
)
def test_invalid_speeds_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="flop/s"):
        parse_speed(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "not XML: no element found"),
        ("<platform version='4'>", "line 1: not XML"),
        ("x", "line 1: not XML"),
        ("<adag/>", "line 1: adag: unknown element as the root of a SimGrid platform"),
        ("<platform/>", "line 1: platform.version: missing"),
        ("<platform version='3'/>", "line 1: platform.version: found '3' .*simgrid_update_xml"),
        ("<platform version='4.1'/>", "no hosts"),
        (zone(""), "no hosts"),
        (zone("\n<hots/>"), "line 2: hots: unknown element within zone; did you mean 'host'"),
        (zone('<host id="h"/>'), "line 1: host.speed: missing"),
        (zone('<host id="h" sped="1Gf"/>'), "host.sped: unknown attribute; did you mean 'speed'"),
        (zone('<host id="" speed="1Gf"/>'), "host.id: found ''"),
        (zone('<host id="h" speed="1"><host id="i" speed="1"/></host>'), "unknown element within host"),
        (zone('<host id="h" speed="1Gf,"/>'), "host.speed: found ''"),
        (zone('<host id="h" speed="1Gf" core="0"/>'), "host.core: found 0"),
        (zone('<host id="h" speed="1Gf" core="two"/>'), "host.core: found 'two'"),
        (zone('<host id="h" speed="1Gf" pstate="1"/>'), "host.pstate: found 1 .*a state from 0 to 0"),
        (zone('<host id="h" speed="1Gf" pstate="-1"/>'), "host.pstate: found '-1'"),
        (zone('<host id="h" speed="1Gf" state_file="s"/>'), "host.state_file: platforms that change"),
        (zone(HOST + HOST), "host.id: 'h' is defined twice"),
        (zone(HOST + '<link id="l"/>'), "link.bandwidth: missing"),
        (zone(HOST + '<link id="l" bandwidth="1Gf"/>'), "link.bandwidth: found '1Gf'"),
        (zone(HOST + '<link id="l" bandwidth="1Bps" latency="5Bps"/>'), "link.latency: found '5Bps'"),
        (zone(HOST + '<link id="l" bandwidth="1Bps" sharing_policy="FAIR"/>'), "link.sharing_policy: found 'FAIR'"),
        (zone(HOST + '<route src="h"/>'), "route.dst: missing"),
        (zone(HOST + '<route src="h" dst="h" symmetrical="MAYBE"/>'), "route.symmetrical: found 'MAYBE'"),
        (zone(HOST + '<zoneRoute src="h" dst="h"/>'), "zoneRoute.gw_src: missing"),
        (zone(HOST + '<link_ctn id="l"/>'), "link_ctn: unknown element within zone"),
        (zone(HOST + '<prop id="l"/>'), "prop.value: missing"),
        (zone('<include file="/etc/passwd"/>'), "include: unknown element"),
        (zone('<trace id="t" periodicity="1"/>'), "trace: unknown element"),
        (zone("<config>" + "<a>" * 70 + "</a>" * 70 + "</config>"), "nested more than 64 deep"),
    ],
)
def test_an_error_names_the_line(text: str, where: str) -> None:
    with pytest.raises(ConfigError, match=f"p.xml: .*{where}"):
        parse(text)


def cluster(**more: str) -> str:
    """Return a platform of one cluster."""
    pairs = {"id": "c", "prefix": "n", "suffix": "", "radical": "0-1", "speed": "1Gf", "bw": "1Bps", "lat": "0s"} | more
    return zone("<cluster " + " ".join(f'{key}="{value}"' for key, value in pairs.items()) + "/>")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("radical", "", "found ''"),
        ("radical", "3-1", "found '3-1'"),
        ("radical", "1-2-3", "found '1-2-3'"),
        ("radical", "a-b", "found 'a-b'"),
        ("radical", "0-999999999", "too many hosts"),
        ("radical", "1,1", "is defined twice"),
        ("prefix", "\n", "blanks at its ends"),
        ("speed", "fast", "found 'fast'"),
        ("bw", "", "found ''"),
        ("lat", "1f", "found '1f'"),
        ("bb_bw", "x", "found 'x'"),
        ("topology", "STAR", "found 'STAR'"),
        ("sharing_policy", "ALL", "found 'ALL'"),
        ("state", "on", "unknown attribute"),
    ],
)
def test_invalid_clusters_are_refused(key: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"line 1: cluster.*{why}"):
        parse(cluster(**{key: value}))


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 30))
BOMBS = [
    f'<!DOCTYPE platform [<!ENTITY l0 "ha">{LAUGHS}]><platform version="4">&l29;</platform>',
    '<!DOCTYPE platform [<!ENTITY e SYSTEM "file:///etc/passwd">]><platform version="4">&e;</platform>',
    '<!DOCTYPE platform [<!ENTITY % e SYSTEM "http://127.0.0.1:9/x">%e;]><platform version="4"/>',
    '<!DOCTYPE platform SYSTEM "x" [<!ATTLIST host speed CDATA "1Gf">]><platform version="4"/>',
    '<!DOCTYPE platform SYSTEM "x"><!DOCTYPE platform SYSTEM "x"><platform version="4"/>',
    '<!DOCTYPE platform SYSTEM "x"><platform version="&e;"/>',
    '<!DOCTYPE platform SYSTEM "x"><platform version="4"><zone id="&e;z" routing="Full"/></platform>',
]


@pytest.mark.parametrize("text", BOMBS)
def test_entities_are_neither_expanded_nor_fetched(text: str) -> None:
    with pytest.raises(ConfigError, match=r"p.xml: line 1: (a document type or entity|not XML: )"):
        parse(text)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_truncated_or_damaged_file_is_one_clear_error(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(WHOLE)))
    damage = data.draw(st.sampled_from(["", "<", '"', "0", "&", "\0", "é", "</zone>"]))
    text = WHOLE[:at] + damage + ("" if data.draw(st.booleans()) else WHOLE[at + 1 :])
    try:
        platform = parse(text)
    except ConfigError as error:
        assert "p.xml" in str(error)
    else:
        assert all(math.isfinite(speed) for host in platform.hosts for speed in host.speeds)


@given(st.binary(max_size=100))
def test_garbage_is_one_clear_error(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"p.xml: "):
        parse_platform(data, "p.xml")


def test_what_no_replay_honours_is_said_once() -> None:
    inside = (
        '<config><prop id="network/TCP-gamma" value="1"/></config><host id="a" speed="1f"><disk id="d"/><disk id="e"/></host>'
        '<router id="r"/><link id="l" bandwidth="1Bps,2Bps"><prop id="x" value="1"/></link>'
    )
    text = f'<platform version="4"><zone id="z" routing="Full">{inside}</zone></platform>'
    site = cluster_of(parse_platform(text.encode(), "p.xml"))
    ignored = "<config>, <disk>, <prop> of <link>, bandwidth of <link> after the first"
    assert cluster_doubts(site) == [f"p.xml: ignored: {ignored}"]
