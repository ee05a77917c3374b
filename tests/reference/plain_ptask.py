"""Reference of one parallel task alone on a SimGrid platform, flow by flow, over the links that the platform names.

Rule: a rank uses one core. A link carries the sum of the bytes of its flows, a FATPIPE link each of them apart. Then a
task lasts as long as its slowest core, host, link or flow, after its longest latency. A task on one host sends nothing.
Source: SimGrid 3.34, `ptask_L07.cpp` and `ExecImpl.cpp`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pilotfish.formats.simgrid.network import SimGridWiring

#: SimGrid's network/TCP-gamma, bytes.
GAMMA = 4194304.0


def seconds_alone(
    wiring: SimGridWiring, ends: Sequence[str], flops: Mapping[int, float], sent: Mapping[tuple[int, int], float]
) -> float:  # fmt: skip
    """Return how long a task lasts.

    Args:
        wiring: the platform.
        ends: host of each rank.
        flops: of each rank.
        sent: bytes from one rank to another.
    """
    hosts = {host.name: host for host in wiring.platform.hosts}
    total, carried, latency, slowest = (
        defaultdict[str, float](float),
        defaultdict[tuple[str, str], float](float),
        0.0,
        0.0,
    )
    for rank, amount in flops.items():
        total[ends[rank]] += amount
        slowest = max(slowest, amount / hosts[ends[rank]].speeds[0])
    for name, amount in total.items():
        slowest = max(slowest, amount / (hosts[name].cores * hosts[name].speeds[0]))
    for (one, other), amount in sent.items():
        if amount <= 0 or len(ends) == 1:
            continue
        source, target = ends[one], ends[other]
        route = wiring.route_to_itself(source) if source == target else wiring.route(source, target)
        delay = sum(wiring.described[link][1] for link, _ in route)
        latency, slowest = max(latency, delay), max(slowest, amount * 2 * delay / GAMMA)
        for link, way in route:
            bandwidth, _, sharing = wiring.described[link]
            if sharing == "FATPIPE":
                slowest = max(slowest, amount / bandwidth)
            else:
                carried[link, way if sharing in ("SPLITDUPLEX", "FULLDUPLEX") else ""] += amount
    for (link, _), amount in carried.items():
        slowest = max(slowest, amount / wiring.described[link][0])
    return latency + slowest
