"""This machine as a cluster: one node for each CPU, for every N CPUs, or for each socket.

Rule: what cannot be read is assumed, and each assumption is said.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from ...simulate.errors import ConfigError
from ...simulate.platform import Cluster, Node, NodeType

DEFAULT_BANDWIDTH = 10e9  #: bytes/s; what one memory channel of a small machine does
DEFAULT_FREQUENCY = 1e9  #: Hz; only ratios matter
MEMORY_DOMAIN = "host0"


def machine_cluster(
    cpus_per_node: int | str = 1,
    memory_bandwidth: float | None = None,
    oversubscription: float = 1.0,
    name: str = "",
) -> tuple[Cluster, tuple[str, ...]]:
    """Return this machine as a cluster, and a warning for each number that had to be assumed.

    Args:
        cpus_per_node: CPUs of a node, >= 1, or "socket" for one node a socket; the last node may have fewer.
        memory_bandwidth: bytes/s of the whole machine, which all nodes share; None = a default.
        oversubscription: threads per core that may be placed on a node.
        name: of the cluster; the host's name where empty.

    Raises:
        ConfigError: cpus_per_node is neither.
    """
    groups = _groups(cpus_per_node)
    warnings = []
    if memory_bandwidth is None:
        memory_bandwidth = DEFAULT_BANDWIDTH
        warnings.append(
            f"memory bandwidth of this machine is unknown: {DEFAULT_BANDWIDTH / 1e9:g} GB/s assumed"
        )
    frequency = _frequency()
    if frequency is None:
        frequency = DEFAULT_FREQUENCY
        warnings.append(f"frequency of this machine is unknown: {DEFAULT_FREQUENCY / 1e9:g} GHz assumed")
    memory, total = _memory_bytes(), sum(map(len, groups.values()))
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
    """Node name -> CPUs."""
    cpus = sorted(os.sched_getaffinity(0))
    if cpus_per_node == "socket":
        sockets: dict[int, list[int]] = {}
        for cpu in cpus:
            sockets.setdefault(_socket_of(cpu), []).append(cpu)
        return {f"socket{number}": tuple(group) for number, group in sorted(sockets.items())}
    if type(cpus_per_node) is not int or cpus_per_node < 1:
        raise ConfigError(
            "this machine", "cpus_per_node", f"found {cpus_per_node!r}", "an integer >= 1, or socket"
        )
    if cpus_per_node == 1:
        return {f"cpu{cpu}": (cpu,) for cpu in cpus}
    starts = range(0, len(cpus), cpus_per_node)
    return {f"node{i}": tuple(cpus[start : start + cpus_per_node]) for i, start in enumerate(starts)}


def _socket_of(cpu: int) -> int:
    with (
        suppress(OSError, ValueError),
        open(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id") as file,
    ):
        return max(0, int(file.read()))
    return 0


def _frequency() -> float | None:
    """Hz of the first CPU: cpufreq's maximum (kHz), else what /proc/cpuinfo says (MHz)."""
    cpu = min(os.sched_getaffinity(0))
    with (
        suppress(OSError, ValueError),
        open(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq") as file,
    ):
        return int(file.read()) * 1e3
    with suppress(OSError, ValueError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("cpu MHz"):
                return float(line.partition(":")[2]) * 1e6
    return None


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
