"""Random SimGrid platforms of every kind that Batsim reads, and workloads of every profile type for them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

Data = dict[str, Any]
#: A member of a zone: its XML, its name, and its gateway.
Member = tuple[str, str, str]
HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
MASTER = '<zone id="M" routing="Full"><host id="master_host" speed="1Gf"/></zone>\n'
KINDS = ("cluster", "clusters", "storages", "hosts", "graph", "nested")
SHARED = ("SHARED", "SHARED", "SPLITDUPLEX")


class Platforms:
    """Make platforms.

    Args:
        random: decides everything.
        fat: with links that each flow has for itself.
    """

    def __init__(self, random: Random, *, fat: bool) -> None:
        self.random, self.sharing, self.clusters = random, (*SHARED, "FATPIPE") if fat else SHARED, 0

    def platform(self, kind: str) -> tuple[str, list[str]]:
        """Return the XML of a platform of one of KINDS, and its storages."""
        if kind in ("hosts", "graph"):
            routing = self.random.choice(["Floyd", "Dijkstra"]) if kind == "graph" else "Full"
            inner, storages = self.hosts("Z", self.random.randint(3, 6), routing)[0], list[str]()
        elif kind == "nested":
            inner, storages = self.zone("N", 2)[0], []
        else:
            storages = ["pfs", "lcfs"] if kind == "storages" else []
            members = [self.cluster(8 if kind == "cluster" else 3) for _ in range(1 if kind == "cluster" else 3)]
            members += [(_storage(name), f"Z{name}", name) for name in storages]
            inner = self.joined("T", members, self.random.choice(["Full", "Floyd", "Dijkstra"]))
        return f'{HEAD}<zone id="AS0" routing="Full">{MASTER}{inner}</zone></platform>', storages

    def rate(self) -> str:
        return self.random.choice(["125MBps", "1Gbps", "64MiBps", f"{self.random.randint(10, 500)}MBps"])

    def latency(self) -> str:
        return self.random.choice(["0", "50us", "2ms", f"{self.random.randint(1, 900)}us"])

    def speed(self) -> str:
        return self.random.choice(["1Gf", "98.095Mf", f"{self.random.randint(100, 3000)}Mf"])

    def cluster(self, size: int) -> Member:
        number, chance = self.clusters, self.random.random
        self.clusters += 1
        more = f' sharing_policy="{self.random.choice(self.sharing)}"'
        if chance() < 0.6:
            policy = "FATPIPE" if chance() < 0.5 and "FATPIPE" in self.sharing else "SHARED"
            more += f' bb_bw="{self.rate()}" bb_lat="{self.latency()}" bb_sharing_policy="{policy}"'
        if chance() < 0.3:
            more += f' limiter_link="{self.rate()}"'
        if chance() < 0.3:
            more += f' loopback_bw="{self.rate()}" loopback_lat="{self.latency()}"'
        if chance() < 0.4:
            more += f' core="{self.random.choice([2, 4])}"'
        about = f'speed="{self.speed()}" bw="{self.rate()}" lat="{self.latency()}"{more}'
        text = f'<cluster id="C{number}" prefix="c{number}-" suffix="s" radical="0-{size - 1}" {about}/>\n'
        return text, f"C{number}", f"c{number}-C{number}_routers"

    def links(self, zone: str) -> tuple[str, list[str]]:
        """Return links, and their parts of a route."""
        text, parts = "", list[str]()
        for i in range(self.random.randint(2, 4)):
            sharing = self.random.choice(self.sharing)
            text += f'<link id="{zone}-{i}" bandwidth="{self.rate()}" latency="{self.latency()}" '
            text += f'sharing_policy="{sharing}"/>\n'
            way = f' direction="{self.random.choice(["UP", "DOWN"])}"' if sharing == "SPLITDUPLEX" else ""
            parts.append(f'<link_ctn id="{zone}-{i}"{way}/>')
        return text, parts

    def pairs(self, members: Sequence[Member], routing: str) -> list[tuple[Member, Member]]:
        """Return the pairs between which there are routes: all, or those of a tree."""
        return [
            (members[i], members[k])
            for k in range(1, len(members))
            for i in (range(k) if routing == "Full" else [self.random.randrange(k)])
        ]

    def hosts(self, zone: str, size: int, routing: str = "Full") -> Member:
        names = [f"{zone}h{i}" for i in range(size)]
        cores = [self.random.choice(["", ' core="4"']) for _ in names]
        text = "".join(
            f'<host id="{name}" speed="{self.speed()}"{core}/>\n' for name, core in zip(names, cores, strict=True)
        )
        links, parts = self.links(zone)
        routes = bypass = ""
        for (_, source, _), (_, target, _) in self.pairs([("", name, "") for name in names], routing):
            through = "".join(self.random.sample(parts, self.random.randint(1, 2)))
            one_way = routing == "Full" and self.random.random() < 0.2
            ends = [(source, target), (target, source)] if one_way else [(source, target)]
            for begin, end in ends:
                more = ' symmetrical="NO"' if one_way else ""
                routes += f'<route src="{begin}" dst="{end}"{more}>{through}</route>\n'
            if routing == "Full" and not bypass and self.random.random() < 0.2:
                bypass = f'<bypassRoute src="{source}" dst="{target}">{parts[0]}</bypassRoute>\n'
        inner = text + links + routes + bypass
        return f'<zone id="{zone}" routing="{routing}">\n{inner}</zone>\n', zone, self.random.choice(names)

    def zone(self, name: str, depth: int) -> Member:
        """Return a zone of zones; its gateway is one of a zone inside it."""
        if depth == 0:
            return self.cluster(2) if self.random.random() < 0.5 else self.hosts(name, self.random.randint(1, 3))
        members = [self.zone(f"{name}{i}", depth - 1) for i in range(self.random.randint(2, 3))]
        return self.joined(name, members, self.random.choice(["Full", "Floyd"])), name, members[0][2]

    def joined(self, zone: str, members: Sequence[Member], routing: str) -> str:
        links, parts = self.links(zone)
        text = "".join(member[0] for member in members) + links
        bypass = ""
        for (_, source, out), (_, target, into) in self.pairs(members, routing):
            ends = f'src="{source}" dst="{target}" gw_src="{out}" gw_dst="{into}"'
            text += f"<zoneRoute {ends}>{''.join(self.random.sample(parts, self.random.randint(1, 2)))}</zoneRoute>\n"
            if routing == "Full" and not bypass and self.random.random() < 0.2:
                bypass = f"<bypassZoneRoute {ends}>{parts[0]}</bypassZoneRoute>\n"
        return f'<zone id="{zone}" routing="{routing}">\n{text}{bypass}</zone>\n'


def _storage(name: str) -> str:
    return f'<zone id="Z{name}" routing="Full"><host id="{name}" speed="1Gf"><prop id="role" value="storage"/></host></zone>\n'


def workload(random: Random, hosts: int, storages: Sequence[str], *, apart: float, to_itself: bool) -> Data:
    """Return a workload of 14 jobs.

    Args:
        random: decides everything.
        hosts: resources of the machine.
        storages: its storages.
        apart: seconds between submissions; they overlap if it is little.
        to_itself: hosts send themselves bytes, too.
    """

    def amount(most: float) -> float:
        return random.choice([0.0, random.uniform(1, most), float(random.randint(1, int(most)))])

    profiles, sizes = {"wait": {"type": "delay", "delay": random.uniform(0.1, 20)}}, dict[str, int]()
    kinds = ["parallel", "parallel", "parallel_homogeneous", "parallel_homogeneous_total", "composed"]
    kinds += ["parallel_homogeneous_pfs", "data_staging"] if storages else []
    for i in range(7):
        name, kind, size = f"p{i}", random.choice(kinds), random.randint(1, min(hosts, 5))
        profile: Data = {"type": kind}
        if kind == "parallel":
            bytes_ = [amount(5e7) if to_itself or k % (size + 1) else 0.0 for k in range(size * size)]
            profile |= {"cpu": [amount(5e9) for _ in range(size)], "com": bytes_}
            sizes[name] = size
        elif kind == "composed":
            parts = random.sample([*profiles], min(len(profiles), random.randint(1, 3)))
            fixed = {sizes[part] for part in parts if part in sizes}
            profile |= {"repeat": random.randint(1, 3), "seq": parts if len(fixed) < 2 else ["wait"]}
            sizes |= {name: min(fixed)} if len(fixed) == 1 else {}
        elif kind == "parallel_homogeneous_pfs":
            profile |= {"bytes_to_read": amount(1e8), "bytes_to_write": amount(1e8), "storage": random.choice(storages)}
        elif kind == "data_staging":
            profile |= {"nb_bytes": amount(1e9), "from": storages[1], "to": storages[0]}
        else:
            profile |= {"cpu": amount(5e9), "com": amount(5e7)}
        profiles[name] = profile
    jobs = []
    for i in range(14):
        name = random.choice([*profiles])
        size = sizes.get(name) or random.randint(1, min(hosts, 6))
        jobs.append({"id": str(i), "subtime": apart * i, "res": size, "profile": name})
    return {"nb_res": hosts, "jobs": jobs, "profiles": profiles}
