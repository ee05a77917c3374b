"""SimGrid's platform files, version 4: hosts, clusters of them, links and routes.

Rule: what is not understood is refused with its line; what says how the network or its models work beyond links and
routes, or how hosts are placed in it, is passed over. Source: SimGrid's documentation, "Platform file reference", and
its document type (4.1).
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from .elements import Elements
from .hostlist import MOST_NODES
from .reading import read_bytes
from .shape import from_source, inside, name, nearest, shown, whole
from .simgrid_platform import Host, HostCluster, Link, Route, SimGridPlatform, Zone
from .simgrid_units import parse_bandwidth, parse_speeds, parse_time
from .units import bad, found


def read_platform(path: str | Path) -> SimGridPlatform:
    """Return the platform in a file. Raises ConfigError, see `parse_platform`."""
    return parse_platform(read_bytes(path), str(path))


def parse_platform(data: bytes, source: str) -> SimGridPlatform:
    """Return the platform that XML holds. O(bytes + hosts).

    Raises:
        ConfigError: not XML, not such a platform, or something in it that is not understood; with the line.
    """
    return from_source(source, _Reader(source).platform, data)


#: Element -> attributes that it must have, and may have.
_ROUTED = (("src", "dst", "gw_src", "gw_dst"), ("symmetrical",))
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
    "link": (("id", "bandwidth"), ("latency", "sharing_policy", "bandwidth_file", "latency_file", "state_file")),
    "route": (("src", "dst"), ("symmetrical",)),
    "zoneRoute": _ROUTED,
    "ASroute": _ROUTED,
    "link_ctn": (("id",), ("direction",)),
    "prop": (("id", "value"), ()),
}  # fmt: skip
#: Element -> what may be in it; in all others, zones.
_IN_ZONES = tuple(tag for tag in KNOWN if tag not in ("platform", "link_ctn"))
HOLDS: dict[str, tuple[str, ...]] = {
    "": ("platform",),
    **dict.fromkeys(("host", "cluster", "cabinet", "link"), ("prop",)),
    **dict.fromkeys(("route", "zoneRoute", "ASroute"), ("link_ctn",)),
    **dict.fromkeys(("prop", "link_ctn"), ()),
}
#: Elements that are passed over with all that they hold.
PASSED_OVER = frozenset((
    "config", "random", "router", "backbone", "host_link", "disk", "storage_type", "storage", "mount", "model_prop",
    "bypassRoute", "bypassZoneRoute", "bypassASroute",
))  # fmt: skip
#: Attributes that let a platform change while time passes.
_CHANGING = ("speed_file", "availability_file", "state_file", "bandwidth_file", "latency_file")
#: A document type that only names the file it is in, and blanks before the XML declaration, which SimGrid takes.
_DOCTYPE = re.compile(rb"<!DOCTYPE\s+\w+(?:\s+(?:SYSTEM|PUBLIC))?(?:\s+(?:\"[^\"]*\"|'[^']*')){0,2}\s*>")
_LATE_XML = re.compile(rb"\A(\s+)(<\?xml[^>]*\?>)")
_ALLOWED_RADICAL = "numbers such as 0-127 or 1,3-5"
_SHARING = ("SHARED", "SPLITDUPLEX", "FULLDUPLEX", "FATPIPE", "WIFI")
_TOPOLOGIES = ("FLAT", "TORUS", "FAT_TREE", "DRAGONFLY")


class _Reader(Elements):
    """`given` are the attributes of the open host or cluster; `skipped` is the depth of what is passed over."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.skipped = 0
        self.open: list[str] = []
        self.given: dict[str, str] = {}
        self.begun = 0
        self.properties: dict[str, str] = {}
        self.contained: list[tuple[str, str]] = []
        self.within: list[str] = []
        self.zones: list[Zone] = []
        self.hosts: dict[str, Host] = {}
        self.clusters: list[HostCluster] = []
        self.times = Counter[str]()
        self.links: list[Link] = []
        self.routes: list[Route] = []

    def platform(self, data: bytes) -> SimGridPlatform:
        data = _DOCTYPE.sub(lambda match: b"\n" * match[0].count(b"\n"), data, count=1)
        self.read(_LATE_XML.sub(rb"\2\1", data))
        if not self.hosts:
            raise bad("no hosts in it", "at least one host or cluster")
        parts = tuple(self.hosts.values()), tuple(self.clusters), tuple(self.links), tuple(self.routes)
        return SimGridPlatform(*parts, tuple(self.zones), self.source)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """See `Elements`."""
        self.open.append(tag)
        if self.skipped or tag in PASSED_OVER:
            self.skipped = self.skipped or self.depth
            return
        parent = self.open[-2] if self.depth > 1 else ""
        given = inside(f"{self.here()}: {shown(tag)}", _checked, tag, attributes, parent)
        if tag == "prop":
            self.properties[given["id"]] = given["value"]
        elif tag == "link_ctn":
            direction = "" if given.get("direction", "NONE") == "NONE" else given["direction"]
            self.contained.append((given["id"], direction))
        elif tag in ("zone", "AS"):
            self.zones.append(Zone(given["id"], self.zone, given["routing"]))
            self.within.append(given["id"])
        elif tag != "platform":
            self.given, self.properties, self.contained, self.begun = given, {}, [], self.line

    def end(self, tag: str) -> None:
        """See `Elements`."""
        self.open.pop()
        if self.skipped:
            self.skipped = self.skipped if self.depth > self.skipped else 0
        elif tag in ("zone", "AS"):
            self.within.pop()
        elif tag in _ENDS:
            inside(f"line {self.begun}: {tag}", _ENDS[tag], self, self.given)

    @property
    def zone(self) -> str:
        """The zone that is open; "" = none."""
        return self.within[-1] if self.within else ""

    def add_host(self, host: Host) -> None:
        if host.name in self.hosts:
            raise bad(f"{shown(host.name)!r} is a host already", "each name once", key="id")
        if len(self.hosts) >= MOST_NODES:
            raise bad(f"more than {MOST_NODES} hosts")
        self.hosts[host.name] = host

    def host(self, given: dict[str, str]) -> None:
        speeds, pstate = _speeds(given), inside("pstate", _number, given.get("pstate", "0"))
        if pstate >= len(speeds):
            raise bad(f"found {pstate}", f"one of its {len(speeds)} states, from 0 on", key="pstate")
        cores = inside("core", _cores, given.get("core", "1"))
        parts = speeds, cores, pstate, self.properties, self.begun, self.zone
        self.add_host(Host(inside("id", name, given["id"]), *parts))

    def cluster(self, given: dict[str, str]) -> None:
        speeds, cores = _speeds(given), inside("core", _cores, given.get("core", "1"))
        names = inside("radical", _radical, given["radical"], given["prefix"], given["suffix"])
        self.times[given["id"]] += 1
        again = f"-{self.times[given['id']]}" if self.times[given["id"]] > 1 else ""
        called = given["id"] + again
        for each in names:
            self.add_host(Host(inside("id", name, each), speeds, cores, 0, self.properties, self.begun, called))
        backbone = inside("bb_bw", parse_bandwidth, given["bb_bw"]) if given.get("bb_bw") else None
        self.clusters.append(HostCluster(
            called,
            names,
            inside("bw", parse_bandwidth, given["bw"]),
            inside("lat", parse_time, given["lat"]),
            backbone,
            inside("bb_lat", parse_time, given.get("bb_lat") or "0"),
            _one_of(given, "sharing_policy", _SHARING, "SPLITDUPLEX"),
            _one_of(given, "topology", _TOPOLOGIES, "FLAT"),
            _one_of(given, "bb_sharing_policy", _SHARING, "SHARED"),
            self.zone,
        ))  # fmt: skip

    def link(self, given: dict[str, str]) -> None:
        rates = re.split("[,;]", given["bandwidth"])
        self.links.append(Link(
            inside("id", name, given["id"]),
            tuple(inside("bandwidth", parse_bandwidth, rate) for rate in rates),
            inside("latency", parse_time, given.get("latency") or "0"),
            _one_of(given, "sharing_policy", _SHARING, "SHARED"),
        ))  # fmt: skip

    def route(self, given: dict[str, str]) -> None:
        symmetrical = _one_of(given, "symmetrical", ("YES", "NO", "yes", "no"), "YES").upper() == "YES"
        gateways = (given["gw_src"], given["gw_dst"]) if "gw_src" in given else ()
        self.routes.append(Route(given["src"], given["dst"], tuple(self.contained), symmetrical, gateways, self.zone))


#: What becomes of an element when it ends.
_ENDS = {
    "host": _Reader.host,
    "cluster": _Reader.cluster,
    "cabinet": _Reader.cluster,
    "link": _Reader.link,
    "route": _Reader.route,
    "zoneRoute": _Reader.route,
    "ASroute": _Reader.route,
}


def _checked(tag: str, given: dict[str, str], parent: str) -> dict[str, str]:
    """The attributes of an element that stands where it may, and has those it must have and none that is not known."""
    held = HOLDS.get(parent, _IN_ZONES)
    if tag not in held:
        within = f"within {parent}" if parent else "as the root of a SimGrid platform"
        raise bad(f"an element that is not known {within}{nearest(tag, held)}", ", ".join(held) or "none")
    required, optional = KNOWN[tag]
    for key in given:
        if key not in required and key not in optional:
            raise bad(f"unknown attribute{nearest(key, required + optional)}", ", ".join(required + optional), key)
        if key in _CHANGING and given[key]:
            raise bad("platforms that change while time passes are not simulated", "hosts and links as they are", key)
    for key in required:
        if key not in given:
            raise bad("missing", f"required here: {', '.join(required)}", key)
    if tag == "platform" and not re.fullmatch(r"4(\.[0-9]+)?", given["version"]):
        raise bad(found(given["version"]), "version 4; simgrid_update_xml makes it of older files", "version")
    return given


def _one_of(given: dict[str, str], key: str, words: tuple[str, ...], default: str) -> str:
    word = given.get(key) or default
    if word not in words:
        raise bad(found(word), ", ".join(words), key)
    return word


def _speeds(given: dict[str, str]) -> tuple[float, ...]:
    return inside("speed", parse_speeds, given["speed"])


def _number(text: str) -> int:
    """A whole number, of which the document type writes some with a point."""
    if not re.fullmatch(r"\s*[0-9]{1,9}(\.0*)?\s*", text):
        raise bad(found(text), "a whole number, 0 or more")
    return int(float(text))


def _cores(text: str) -> int:
    return whole(1, 100_000)(_number(text))


def _radical(text: str, prefix: str, suffix: str) -> tuple[str, ...]:
    """The names of a cluster's hosts."""
    spans: list[range] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise bad(found(text), _ALLOWED_RADICAL)
        spans.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    if sum(map(len, spans)) > MOST_NODES:
        raise bad(f"{found(text)}, too many hosts", f"at most {MOST_NODES}")
    return tuple(f"{prefix}{number}{suffix}" for span in spans for number in span)

