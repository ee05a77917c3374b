"""This machine as a cluster: one node for each CPU, or for every N CPUs.

Rule: a number that cannot be read is assumed, and each assumption is reported.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from ...formats.hostlist import local_node_names
from ...simulate.model.cluster import Cluster, Node, NodeType

DEFAULT_BANDWIDTH = 10e9  #: bytes/s, one memory channel of a small machine, shared by all nodes
DEFAULT_FREQUENCY = 1e9  #: Hz; only ratios matter
MEMORY_DOMAIN = "host0"


def machine_cluster(cpus_per_node: int = 1) -> tuple[Cluster, tuple[str, ...]]:
    """Return this machine as a cluster, and a warning for each number that had to be assumed.

    A node has `cpus_per_node` CPUs, 1 or more; the last one may have fewer.
    """
    cpus, host = sorted(os.sched_getaffinity(0)), socket.gethostname()
    groups = [tuple(cpus[i : i + cpus_per_node]) for i in range(0, len(cpus), cpus_per_node)]
    warnings = [f"memory bandwidth of this machine is unknown: {DEFAULT_BANDWIDTH / 1e9:g} GB/s assumed"]
    frequency = _frequency()
    if frequency is None:
        frequency = DEFAULT_FREQUENCY
        warnings.append(f"frequency of this machine is unknown: {DEFAULT_FREQUENCY / 1e9:g} GHz assumed")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    types = {
        size: NodeType(
            name=f"{size}-cpu",
            cores=size,
            memory=float(memory * size // len(cpus)),
            memory_bandwidth=DEFAULT_BANDWIDTH,
            frequency=frequency,
        )
        for size in set(map(len, groups))
    }
    names = local_node_names(host, groups)
    nodes = tuple(Node(name, types[len(own)], MEMORY_DOMAIN, own) for name, own in zip(names, groups, strict=True))
    return Cluster(host, nodes, source="this machine"), tuple(warnings)


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
