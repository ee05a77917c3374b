"""This machine as a cluster: one node for each CPU, for every N CPUs, or for each socket.

Rule: a number that cannot be read is assumed, and each assumption is reported.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from ...formats.hostlist import local_node_names
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster, Node, NodeType

DEFAULT_BANDWIDTH = 10e9  #: bytes/s, one memory channel of a small machine
DEFAULT_FREQUENCY = 1e9  #: Hz; only ratios matter
MEMORY_DOMAIN = "host0"


def machine_cluster(
    cpus_per_node: int | str = 1, memory_bandwidth: float | None = None, oversubscription: float = 1.0, name: str = ""
) -> tuple[Cluster, tuple[str, ...]]:
    """Return this machine as a cluster, and a warning for each number that had to be assumed.

    Args:
        cpus_per_node: CPUs of a node, >= 1, or "socket" for one node per socket; the last node may have fewer.
        memory_bandwidth: Bytes/s of the whole machine, shared by all nodes; None: a default.
        oversubscription: Threads per core that may be placed on a node.
        name: Name of the cluster; empty: the host's name.

    Raises:
        ConfigError: cpus_per_node is neither a positive integer nor "socket".
    """
    groups = _groups(cpus_per_node)
    warnings = []
    if memory_bandwidth is None:
        memory_bandwidth = DEFAULT_BANDWIDTH
        warnings.append(f"memory bandwidth of this machine is unknown: {DEFAULT_BANDWIDTH / 1e9:g} GB/s assumed")
    frequency = _frequency()
    if frequency is None:
        frequency = DEFAULT_FREQUENCY
        warnings.append(f"frequency of this machine is unknown: {DEFAULT_FREQUENCY / 1e9:g} GHz assumed")
    memory, total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), sum(map(len, groups.values()))
    types = {
        size: NodeType(
            name=f"{size}-cpu",
            cores=size,
            memory=float(memory * size // total),
            memory_bandwidth=memory_bandwidth,
            frequency=frequency,
        )
        for size in {len(cpus) for cpus in groups.values()}
    }
    nodes = tuple(Node(node, types[len(cpus)], MEMORY_DOMAIN, cpus) for node, cpus in groups.items())
    name = name or socket.gethostname()
    return Cluster(name, nodes, oversubscription, source="this machine"), tuple(warnings)


def _groups(cpus_per_node: int | str) -> dict[str, tuple[int, ...]]:
    """Node name -> CPUs; see `local_node_names`."""
    cpus = sorted(os.sched_getaffinity(0))
    if cpus_per_node == "socket":
        sockets: dict[int, list[int]] = {}
        for cpu in cpus:
            sockets.setdefault(_socket_of(cpu), []).append(cpu)
        groups = [tuple(group) for _, group in sorted(sockets.items())]
    elif type(cpus_per_node) is not int or cpus_per_node < 1:
        raise ConfigError("this machine", "cpus_per_node", f"found {cpus_per_node!r}", "an integer >= 1, or socket")
    else:
        groups = [tuple(cpus[i : i + cpus_per_node]) for i in range(0, len(cpus), cpus_per_node)]
    return dict(zip(local_node_names(socket.gethostname(), groups), groups, strict=True))


def _socket_of(cpu: int) -> int:
    with suppress(OSError, ValueError), open(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id") as file:
        return max(0, int(file.read()))
    return 0


def _frequency() -> float | None:
    """Return Hz of the first CPU: cpufreq's maximum (kHz), otherwise /proc/cpuinfo (MHz)."""
    cpu = min(os.sched_getaffinity(0))
    with suppress(OSError, ValueError), open(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq") as file:
        return int(file.read()) * 1e3
    with suppress(OSError, ValueError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("cpu MHz"):
                return float(line.partition(":")[2]) * 1e6
    return None
