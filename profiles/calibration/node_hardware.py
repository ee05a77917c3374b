"""The hardware of the calibrated node from the kernel: CPUs, sockets, memory nodes, caches.

Rule: a value that the kernel does not show is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from ...formats.hostlist import parse_cpus
from ...machine_share import Limits, control_group_limits, free_memory, usable_cpus, usable_memory
from ...simulate.errors import ConfigError
from ..measure.observer import cpu_model
from ..probes.probe import read_text

SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """The usable hardware.

    Args:
        model: processor name.
        cpus: usable CPUs in the order of thread placement: sockets in turns, second hardware threads of a core last.
        sockets: CPUs of each socket; memory_nodes: CPUs of each NUMA node that has some.
        hardware_threads: of a core.
        memory, free: bytes; cache: bytes of all last-level caches; frequency: highest, Hz.
    """

    model: str
    cpus: tuple[int, ...]
    sockets: tuple[tuple[int, ...], ...]
    memory_nodes: tuple[tuple[int, ...], ...]
    hardware_threads: int
    memory: int
    free: int
    cache: int | None
    frequency: float | None


def read_hardware(system: Path = SYSTEM, limits: Limits | None = None) -> NodeHardware:
    """Return this machine's CPUs and memory that this process may use.

    Args:
        system: /sys/devices/system.
        limits: of our control groups; None = read them now.
    """
    limits = control_group_limits() if limits is None else limits
    allowed = usable_cpus(limits)
    packages: dict[str, list[int]] = {}
    rank: dict[int, int] = {}
    for cpu in allowed:
        topology = system / f"cpu/cpu{cpu}/topology"
        packages.setdefault(_text(topology / "physical_package_id") or "0", []).append(cpu)
        siblings = [other for other in _cpus(topology / "thread_siblings_list") if other in allowed]
        rank[cpu] = siblings.index(cpu) if cpu in siblings else 0
    sockets = [sorted(cpus, key=lambda cpu: (rank[cpu], cpu)) for cpus in packages.values()]
    order = [cpu for turn in zip_longest(*sockets) for cpu in turn if cpu is not None]
    nodes = [
        tuple(cpu for cpu in _cpus(path / "cpulist") if cpu in allowed)
        for path in sorted(system.glob("node/node[0-9]*"))
    ]
    return NodeHardware(
        model=cpu_model(),
        cpus=tuple(order),
        sockets=tuple(map(tuple, sockets)),
        memory_nodes=tuple(filter(None, nodes)),
        hardware_threads=max(rank.values()) + 1,
        memory=usable_memory(limits),
        free=free_memory(limits),
        cache=sum(dict(last_caches(allowed, system)).values()) or None,
        frequency=_frequency(system, allowed[0]),
    )


def last_caches(cpus: Iterable[int], system: Path = SYSTEM) -> Iterator[tuple[str, int]]:
    """Yield (CPUs that share it, bytes) of the last-level cache of each CPU; `system`: see `read_hardware`."""
    for cpu in cpus:
        levels = [
            (_text(path / "level"), _text(path / "shared_cpu_list"), int(size[:-1]) * 1024)
            for path in (system / f"cpu/cpu{cpu}/cache").glob("index[0-9]*")
            if (size := _text(path / "size")).endswith("K") and size[:-1].isdigit()
        ]
        if levels:
            yield max(levels)[1:]


def _frequency(system: Path, cpu: int) -> float | None:
    """Return cpufreq's maximum, else the present frequency of /proc/cpuinfo, Hz."""
    maximum = _text(system / f"cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq")
    if maximum.isdigit():
        return int(maximum) * 1e3
    lines = _text(Path("/proc/cpuinfo")).splitlines()
    return next((float(line.partition(":")[2]) * 1e6 for line in lines if line.startswith("cpu MHz")), None)


def _cpus(path: Path) -> tuple[int, ...]:
    try:
        return parse_cpus(_text(path))
    except ConfigError:
        return ()


def _text(path: Path) -> str:
    return read_text(path) or ""
