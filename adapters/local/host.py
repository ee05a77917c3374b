"""This machine: as a cluster of one node for each CPU or for every N CPUs, and what the local adapter can use of it.

Rule: a number that cannot be read is assumed, and each assumption is reported. The examination reads and tries access
rights; it creates and changes nothing.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from ...formats.documents.quantities import format_size
from ...formats.hostlist import fold_cpus, local_node_names
from ...formats.text import count
from ...machine_share import (
    Limits,
    affinity,
    control_group_limits,
    machine_cpus,
    machine_memory,
    usable_cpus,
    usable_memory,
)
from ...simulate.model.cluster import Cluster, Node, NodeType
from ..findings import NOTE, OK, PROBLEM, WARNING, Finding
from .cgroups import CONTROLLERS, WITHOUT, _own_groups, controllers_below
from .validation import beyond_limits

DEFAULT_BANDWIDTH = 10e9  #: bytes/s, one memory channel of a small machine, shared by all nodes
DEFAULT_FREQUENCY = 1e9  #: Hz; only ratios matter
MEMORY_DOMAIN = "host0"


def machine_cluster(cpus_per_node: int = 1) -> tuple[Cluster, tuple[str, ...]]:
    """Return this machine as a cluster, and a warning for each number that had to be assumed, or that is limited.

    A node has `cpus_per_node` CPUs, 1 or more; the last one may have fewer.
    """
    limits, host = control_group_limits(), socket.gethostname()
    cpus = usable_cpus(limits)
    groups = [tuple(cpus[i : i + cpus_per_node]) for i in range(0, len(cpus), cpus_per_node)]
    warnings = [f"memory bandwidth of this machine is unknown: {DEFAULT_BANDWIDTH / 1e9:g} GB/s assumed"]
    frequency = _frequency()
    if frequency is None:
        frequency = DEFAULT_FREQUENCY
        warnings.append(f"frequency of this machine is unknown: {DEFAULT_FREQUENCY / 1e9:g} GHz assumed")
    warnings += limited(limits)
    memory = usable_memory(limits)
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
    nodes = tuple(
        Node(name, types[len(group)], MEMORY_DOMAIN, group) for name, group in zip(names, groups, strict=True)
    )
    return Cluster(host, nodes, source="this machine"), tuple(warnings)


def limited(limits: Limits) -> list[str]:
    """Return a sentence for each limit of control groups that leaves less than the machine has."""
    cpus, sentences = affinity(), []
    if limits.cpus < len(cpus):
        share = f"pilotfish uses {len(usable_cpus(limits))} of {count(len(cpus), 'CPU')}"
        sentences.append(f"CPU time is limited to that of {limits.cpus:.3g} ({limits.cpus_file}): {share}")
    if limits.memory < machine_memory():
        amounts = f"{format_size(limits.memory)} of {format_size(machine_memory() // 2**20 * 2**20)}"
        sentences.append(f"memory is limited to {amounts} ({limits.memory_file})")
    return sentences


def _frequency() -> float | None:
    """Return Hz of the first CPU: cpufreq's maximum (kHz), otherwise /proc/cpuinfo (MHz)."""
    cpu = affinity()[0]
    with suppress(OSError, ValueError), open(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq") as file:
        return int(file.read()) * 1e3
    with suppress(OSError, ValueError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("cpu MHz"):
                return float(line.partition(":")[2]) * 1e6
    return None


def examine(cluster: Cluster | None, state_dir: Path) -> list[Finding]:
    """Return what the local adapter finds here.

    Args:
        cluster: nodes that it would have; None = not known.
        state_dir: folder of its jobs.
    """
    limits = control_group_limits()
    memory = Finding(OK, "memory", f"{format_size(usable_memory(limits) // 2**20 * 2**20)} of memory")
    notes = [Finding(NOTE, "limits", text) for text in limited(limits)]
    beyond = [Finding(WARNING, "nodes", text) for text in beyond_limits(cluster, limits)] if cluster else []
    return [*_cpus(cluster), memory, *notes, *beyond, _control_groups(), _folder(state_dir)]


def _cpus(cluster: Cluster | None) -> list[Finding]:
    usable, total = affinity(), machine_cpus()
    words = f"{len(usable)} of {count(total, 'CPU is', 'CPUs are')} usable: {fold_cpus(usable)}"
    findings = [Finding(OK if len(usable) == total else NOTE, "cpus", words)]
    for node in cluster.nodes if cluster else ():
        if not node.cpus:
            findings.append(Finding(PROBLEM, "nodes", f"node {node.name} names no CPUs of this machine (key cpus)"))
        elif foreign := set(node.cpus).difference(usable):
            words = f"node {node.name} has CPUs that are not usable: {fold_cpus(foreign)}"
            findings.append(Finding(PROBLEM, "nodes", words))
    return findings


def _control_groups() -> Finding:
    usable: set[str] = set()
    try:
        mounts, membership = Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text()
        for directory, controllers in _own_groups(mounts, membership):
            if os.access(directory, os.W_OK):
                usable |= controllers_below(directory) if controllers is None else controllers
    except OSError:
        usable = set()
    missing = [name for name in CONTROLLERS if name not in usable]
    if not missing:
        return Finding(OK, "cgroups", f"control groups are writable: {', '.join(CONTROLLERS)}")
    words = f"no writable control groups for {', '.join(missing)}: {'; '.join(WITHOUT[name] for name in missing)}"
    return Finding(NOTE, "cgroups", words, ("systemd-run --user --scope -p Delegate=yes pilotfish ...",))


def _folder(state_dir: Path) -> Finding:
    parent = next(path for path in (state_dir, *state_dir.parents) if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        return Finding(PROBLEM, "state", f"the folder {state_dir} cannot be written: {parent} does not allow it")
    free = os.statvfs(parent).f_bavail * os.statvfs(parent).f_frsize
    level = WARNING if free < 100e6 else OK
    return Finding(level, "state", f"{state_dir} can be written, {format_size(free)} free")
