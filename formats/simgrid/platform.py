"""SimGrid's platform files, version 4: hosts, clusters, links and routes as frozen values.

Values are in base units and in file order.

Rule: an element that is not known is refused with its line; elements about network models, and about the location of
hosts, are ignored. A quantity is a number and its unit; a bare number is in flop/s, bytes/s or seconds, as in SimGrid.
Speeds and bandwidths above 1e18, such as the 1000EBps of a loopback that costs nothing, count as 1e18.
`cluster` says what Batsim makes of a platform.
Source: SimGrid's documentation, "Platform file reference", and its document type (4.1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

from ...simulate.errors import did_you_mean
from ..documents.document_errors import bad, found, from_source, inside, shown
from ..documents.files import read_bytes
from ..documents.quantities import LARGEST, Convert, whole
from ..documents.schema import name, one_of, require
from ..documents.xml import Element, parse_xml
from ..hostlist import MOST_NODES


@dataclass(frozen=True, slots=True)
class Host:
    """A host.

    Args:
        name: unique in the platform.
        speeds: flop/s of a core in each performance state, at least one.
        cores: 1 or more.
        pstate: the initial performance state.
        properties: its `prop` elements.
        line: its line in the file.
        zone: the zone or cluster that contains it.
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
    """Equal hosts, each behind a link (bytes/s, s), and connected by a backbone if there is one."""

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
    limiter: float | None = None  # bytes/s that each host sends and receives together
    loopback: tuple[float, float] | None = None  # bytes/s and seconds from a host to itself; None: over its link


@dataclass(frozen=True, slots=True)
class PlatformLink:
    """A link: bytes/s in each of its states, and latency in seconds."""

    name: str
    bandwidths: tuple[float, ...]
    latency: float = 0.0
    sharing: str = "SHARED"


@dataclass(frozen=True, slots=True)
class Route:
    """The links from one host or zone to another; between zones, from gateway to gateway.

    Args:
        source: name of a host, router or zone.
        target: name of a host, router or zone.
        links: (name, direction) of each link; direction is UP, DOWN, or "".
        symmetrical: whether the route holds in both directions.
        gateways: of the two zones; () between hosts.
        zone: the zone that declares it.
        bypass: whether it replaces the routes that the zones would take.
    """

    source: str
    target: str
    links: tuple[tuple[str, str], ...]
    symmetrical: bool = True
    gateways: tuple[str, ...] = ()
    zone: str = ""
    bypass: bool = False


@dataclass(frozen=True, slots=True)
class PlatformZone:
    """A zone, the zone that contains it ("" = none), and its routing."""

    name: str
    parent: str
    routing: str


@dataclass(frozen=True, slots=True)
class SimGridPlatform:
    """The content of a platform file, in its order."""

    hosts: tuple[Host, ...]
    clusters: tuple[HostCluster, ...] = ()
    links: tuple[PlatformLink, ...] = ()
    routes: tuple[Route, ...] = ()
    zones: tuple[PlatformZone, ...] = ()
    source: str = ""
    ignored: tuple[str, ...] = ()  # what the file says and no replay honours, in plain words, each once
    routers: tuple[tuple[str, str], ...] = ()  # name of each router, and the zone or cluster that contains it


_QUANTITY = re.compile(r"([+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)([A-Za-z]*)")
_TENS = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_TWOS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_WORDS = ("", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta")


def _scaled(unit: str, value: float, prefixes: tuple[str, ...], step: float = 1000.0) -> dict[str, float]:
    return {prefix + unit: value * step**i for i, prefix in enumerate(prefixes)}


_SPEEDS = _scaled("f", 1.0, _TENS) | _scaled("flops", 1.0, _WORDS)
_RATES = _scaled("Bps", 1.0, _TENS) | _scaled("Bps", 1.0, _TWOS, 1024.0)
_RATES |= _scaled("bps", 0.125, _TENS) | _scaled("bps", 0.125, _TWOS, 1024.0)
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
_TIMES |= {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def _quantity(units: dict[str, float], allowed: str, *, endless: bool = False) -> Convert[float]:
    """Return a converter of text with one of these units; `endless`: more than LARGEST counts as LARGEST."""

    def convert(text: str) -> float:
        match = _QUANTITY.fullmatch(text.strip()) if len(text) < 100 else None
        if match is None or match[2] not in units | {"": 1.0}:
            raise bad(found(text), allowed)
        value = float(match[1]) * units.get(match[2], 1.0)
        if endless and isfinite(value):
            return min(value, LARGEST)
        if value > LARGEST:
            raise bad(found(text), f"{allowed}, at most {LARGEST:g}")
        return value

    return convert


parse_speed = _quantity(_SPEEDS, "flop/s such as 1Gf or 98.095Mf", endless=True)
parse_bandwidth = _quantity(_RATES, "bytes or bits per second such as 125MBps or 1Gbps", endless=True)
parse_time = _quantity(_TIMES, "a time such as 50us or 0.1s")


def parse_speeds(text: str) -> tuple[float, ...]:
    """Return the flop/s of each performance state, separated by commas. Raises ConfigError."""
    return tuple(map(parse_speed, text.split(",")))


def read_platform(path: str | Path) -> SimGridPlatform:
    """Return the platform in a file. Raises ConfigError, see `parse_platform`."""
    return parse_platform(read_bytes(path), str(path))


def parse_platform(data: bytes, source: str) -> SimGridPlatform:
    """Return the platform that XML holds. O(bytes + hosts).

    Args:
        data: the content of the file.
        source: the file's name, for messages.

    Raises:
        ConfigError: not XML, not a platform, or an element that is not known; with the line.
    """
    return from_source(source, _Reader().platform, data, source)


#: Element -> its required and its optional attributes.
_ROUTED = (("src", "dst", "gw_src", "gw_dst"), ("symmetrical",))
_BYPASSES = ("bypassRoute", "bypassZoneRoute", "bypassASroute")
_CABINET = ("id", "prefix", "suffix", "radical", "speed", "bw", "lat")
KNOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "platform": (("version",), ()),
    "zone": (("id", "routing"), ()),
    "AS": (("id", "routing"), ()),
    "cluster": (_CABINET, (
        "core", "sharing_policy", "topology", "topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id",
        "limiter_link", "loopback_bw", "loopback_lat",
    )),
    "cabinet": (_CABINET, ()),
    "host": (("id", "speed"), ("core", "pstate", "coordinates", "speed_file", "availability_file", "state_file")),
    "router": (("id",), ("coordinates",)),
    "link": (("id", "bandwidth"), ("latency", "sharing_policy", "bandwidth_file", "latency_file", "state_file")),
    "route": (("src", "dst"), ("symmetrical",)),
    "bypassRoute": (("src", "dst"), ("gw_src", "gw_dst", "symmetrical")),
    **dict.fromkeys(("zoneRoute", "ASroute", "bypassZoneRoute", "bypassASroute"), _ROUTED),
    "link_ctn": (("id",), ("direction",)),
    "prop": (("id", "value"), ()),
}  # fmt: skip
#: Element -> the elements that it may contain; all others contain the elements of zones.
_IN_ZONES = tuple(tag for tag in KNOWN if tag not in ("platform", "link_ctn"))
HOLDS: dict[str, tuple[str, ...]] = {
    "": ("platform",),
    **dict.fromkeys(("host", "cluster", "cabinet", "link"), ("prop",)),
    **dict.fromkeys(("route", "zoneRoute", "ASroute", *_BYPASSES), ("link_ctn",)),
    **dict.fromkeys(("prop", "link_ctn", "router"), ()),
}
#: Elements that are ignored with their content.
IGNORED = frozenset((
    "config", "random", "backbone", "host_link", "disk", "storage_type", "storage", "mount", "model_prop",
))  # fmt: skip
#: Element -> its attributes that are ignored.
_UNUSED = {"cluster": ("topo_parameters",)}
#: Attributes that change a platform over time.
_CHANGING = ("speed_file", "availability_file", "state_file", "bandwidth_file", "latency_file")
#: SimGrid accepts a document type that only names a file, and blanks before the XML declaration.
_DOCTYPE = re.compile(rb"<!DOCTYPE\s+\w+(?:\s+(?:SYSTEM|PUBLIC))?(?:\s+(?:\"[^\"]*\"|'[^']*')){0,2}\s*>")
_LATE_XML = re.compile(rb"\A(\s+)(<\?xml[^>]*\?>)")
_ALLOWED_RADICAL = "numbers such as 0-127 or 1,3-5"
_SHARING = ("SHARED", "SPLITDUPLEX", "FULLDUPLEX", "FATPIPE", "WIFI")
_TOPOLOGIES = ("FLAT", "TORUS", "FAT_TREE", "DRAGONFLY")


class _Reader:
    """Collect the elements of a platform in file order."""

    def __init__(self) -> None:
        self.zones: list[PlatformZone] = []
        self.hosts: dict[str, Host] = {}
        self.clusters: list[HostCluster] = []
        self.id_counts = Counter[str]()
        self.links: list[PlatformLink] = []
        self.routes: list[Route] = []
        self.routers: list[tuple[str, str]] = []
        self.ignored: dict[str, None] = {}

    def platform(self, data: bytes, source: str) -> SimGridPlatform:
        data = _DOCTYPE.sub(lambda match: b"\n" * match[0].count(b"\n"), data, count=1)
        self.read(parse_xml(_LATE_XML.sub(rb"\2\1", data)), "")
        if not self.hosts:
            raise bad("no hosts", "at least one host or cluster")
        parts = tuple(self.hosts.values()), tuple(self.clusters), tuple(self.links), tuple(self.routes)
        return SimGridPlatform(*parts, tuple(self.zones), source, tuple(self.ignored), tuple(self.routers))

    def read(self, outer: Element, zone: str) -> list[dict[str, str]]:
        """Read the elements inside another one, which is in `zone`, and return the attributes of each."""
        elements = []
        for element in outer.inner:
            if element.tag in IGNORED:
                self.ignored[f"<{element.tag}>"] = None
                continue
            attributes = inside(
                f"line {element.line}: {shown(element.tag)}", _checked, element.tag, element.attributes, outer.tag
            )
            if element.tag in ("zone", "AS"):
                self.zones.append(PlatformZone(attributes["id"], zone, attributes["routing"]))
            inner = self.read(element, attributes["id"] if element.tag in ("zone", "AS") else zone)
            self.ignored |= dict.fromkeys(
                f"{key} of <{element.tag}>" for key in _UNUSED.get(element.tag, ()) if attributes.get(key)
            )
            if element.tag in ("link", "zone", "AS") and any(part.tag == "prop" for part in element.inner):
                self.ignored[f"<prop> of <{element.tag}>"] = None
            if element.tag in _READERS:
                reader = _READERS[element.tag]
                inside(f"line {element.line}: {element.tag}", reader, self, attributes, inner, zone, element.line)
            elements.append(attributes)
        return elements

    def add_host(self, host: Host) -> None:
        if host.name in self.hosts:
            raise bad(f"{shown(host.name)!r} is defined twice", "each name once", key="id")
        if len(self.hosts) >= MOST_NODES:
            raise bad(f"more than {MOST_NODES} hosts")
        self.hosts[host.name] = host

    def host(self, attributes: dict[str, str], inner: list[dict[str, str]], zone: str, line: int) -> None:
        speeds, pstate = _speeds(attributes), inside("pstate", _number, attributes.get("pstate", "0"))
        if pstate >= len(speeds):
            raise bad(f"found {pstate}", f"a state from 0 to {len(speeds) - 1}", key="pstate")
        cores = inside("core", _cores, attributes.get("core", "1"))
        self.add_host(Host(inside("id", name, attributes["id"]), speeds, cores, pstate, _properties(inner), line, zone))

    def cluster(self, attributes: dict[str, str], inner: list[dict[str, str]], zone: str, line: int) -> None:
        speeds, cores = _speeds(attributes), inside("core", _cores, attributes.get("core", "1"))
        names = inside("radical", _radical, attributes["radical"], attributes["prefix"], attributes["suffix"])
        self.id_counts[attributes["id"]] += 1
        again = f"-{self.id_counts[attributes['id']]}" if self.id_counts[attributes["id"]] > 1 else ""
        called, properties = attributes["id"] + again, _properties(inner)
        for host in names:
            self.add_host(Host(inside("id", name, host), speeds, cores, 0, properties, line, called))
        router = attributes.get("router_id") or f"{attributes['prefix']}{attributes['id']}_router{attributes['suffix']}"
        self.routers.append((router, called))
        backbone = inside("bb_bw", parse_bandwidth, attributes["bb_bw"]) if attributes.get("bb_bw") else None
        self.clusters.append(HostCluster(
            called,
            names,
            inside("bw", parse_bandwidth, attributes["bw"]),
            inside("lat", parse_time, attributes["lat"]),
            backbone,
            inside("bb_lat", parse_time, attributes.get("bb_lat") or "0"),
            _one_of(attributes, "sharing_policy", _SHARING, "SPLITDUPLEX"),
            _one_of(attributes, "topology", _TOPOLOGIES, "FLAT"),
            _one_of(attributes, "bb_sharing_policy", _SHARING, "SHARED"),
            zone,
            inside("limiter_link", parse_bandwidth, attributes["limiter_link"])
            if attributes.get("limiter_link") else None,
            _loopback(attributes),
        ))  # fmt: skip

    def router(self, attributes: dict[str, str], _: list[dict[str, str]], zone: str, line: int) -> None:
        self.routers.append((attributes["id"], zone))

    def link(self, attributes: dict[str, str], *_: Any) -> None:
        rates = re.split("[,;]", attributes["bandwidth"])
        if len(rates) > 1:
            self.ignored["bandwidth of <link> after the first"] = None
        if attributes.get("sharing_policy") == "WIFI":
            self.ignored["sharing_policy WIFI of <link>"] = None
        self.links.append(PlatformLink(
            inside("id", name, attributes["id"]),
            tuple(inside("bandwidth", parse_bandwidth, rate) for rate in rates),
            inside("latency", parse_time, attributes.get("latency") or "0"),
            _one_of(attributes, "sharing_policy", _SHARING, "SHARED"),
        ))  # fmt: skip

    def route(self, attributes: dict[str, str], inner: list[dict[str, str]], zone: str, line: int) -> None:
        symmetrical = _one_of(attributes, "symmetrical", ("YES", "NO", "yes", "no"), "YES").upper() == "YES"
        gateways = (attributes["gw_src"], attributes["gw_dst"]) if "gw_src" in attributes else ()
        directed = ((element["id"], element.get("direction", "NONE")) for element in inner)
        links = tuple((link, "" if direction == "NONE" else direction) for link, direction in directed)
        self.routes.append(Route(attributes["src"], attributes["dst"], links, symmetrical, gateways, zone))

    def bypass(self, attributes: dict[str, str], inner: list[dict[str, str]], zone: str, line: int) -> None:
        self.route(attributes, inner, zone, line)
        self.routes[-1] = replace(self.routes[-1], symmetrical=False, bypass=True)


#: Element -> what reads it after the elements inside it.
_READERS = {
    "host": _Reader.host,
    **dict.fromkeys(("cluster", "cabinet"), _Reader.cluster),
    "router": _Reader.router,
    "link": _Reader.link,
    **dict.fromkeys(("route", "zoneRoute", "ASroute"), _Reader.route),
    **dict.fromkeys(_BYPASSES, _Reader.bypass),
}


def _properties(inner: list[dict[str, str]]) -> dict[str, str]:
    return {prop["id"]: prop["value"] for prop in inner}


def _checked(tag: str, attributes: dict[str, str], parent: str) -> dict[str, str]:
    """Return the attributes of an element after checking its place and its attributes. Raises ConfigError."""
    held = HOLDS.get(parent, _IN_ZONES)
    if tag not in held:
        within = f"within {parent}" if parent else "as the root of a SimGrid platform"
        raise bad(f"unknown element {within}{did_you_mean(tag, held)}", ", ".join(held) or "none")
    required, optional = KNOWN[tag]
    for key in attributes:
        if key not in required and key not in optional:
            raise bad(f"unknown attribute{did_you_mean(key, required + optional)}", ", ".join(required + optional), key)
        if key in _CHANGING and attributes[key]:
            raise bad("platforms that change over time are not simulated", "constant hosts and links", key)
    require(attributes, required)
    if tag == "platform" and not re.fullmatch(r"4(\.[0-9]+)?", attributes["version"]):
        raise bad(found(attributes["version"]), "version 4; simgrid_update_xml converts older files", "version")
    return attributes


def _one_of(attributes: dict[str, str], key: str, words: tuple[str, ...], default: str) -> str:
    return inside(key, one_of, attributes.get(key) or default, words)


def _loopback(attributes: dict[str, str]) -> tuple[float, float] | None:
    bandwidth = inside("loopback_bw", parse_bandwidth, attributes.get("loopback_bw") or "0")
    latency = inside("loopback_lat", parse_time, attributes.get("loopback_lat") or "0")
    return (bandwidth, latency) if bandwidth > 0 else None


def _speeds(attributes: dict[str, str]) -> tuple[float, ...]:
    return inside("speed", parse_speeds, attributes["speed"])


def _number(text: str) -> int:
    """Parse a whole number, which may be written with a point (as the document type does). Raises ConfigError."""
    if not re.fullmatch(r"\s*[0-9]{1,9}(\.0*)?\s*", text):
        raise bad(found(text), "a whole number, 0 or more")
    return int(float(text))


def _cores(text: str) -> int:
    return whole(1, 100_000)(_number(text))


def _radical(text: str, prefix: str, suffix: str) -> tuple[str, ...]:
    """Return the names of a cluster's hosts. Raises ConfigError."""
    spans: list[range] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise bad(found(text), _ALLOWED_RADICAL)
        spans.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    if sum(map(len, spans)) > MOST_NODES:
        raise bad(f"{found(text)}, too many hosts", f"at most {MOST_NODES}")
    return tuple(f"{prefix}{number}{suffix}" for span in spans for number in span)
