"""Quantities that are valid but implausible, mostly without their unit, and settings of platforms that no replay uses.

Rule: a doubt is a warning and changes nothing. Bare numbers are in bytes, bytes/s, Hz and seconds. People write MB and
MB/s, as resource managers and counters do, so the bounds are the least that any process or node can have. In jobs and
profiles, only whole numbers, and rates with one decimal, are doubted: programs write floats, and rates below LEAST_RATE
with their unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ...simulate.model.cluster import Cluster
from ...simulate.model.network import Tree
from ..text import count
from .quantities import format_size

#: Below these a node cannot run an operating system: bytes, bytes/s, Hz.
LEAST_NODE_MEMORY, LEAST_BANDWIDTH, LEAST_FREQUENCY = 2.0**24, 1e7, 1e6
#: No process has less memory, and no rate below matters: bytes, bytes/s.
LEAST_MEMORY, LEAST_RATE = 2.0**20, 1e6
#: Below these a quantity is more likely a forgotten unit; walltimes in seconds.
_LEAST = {"memory": LEAST_MEMORY, "bandwidth": LEAST_RATE, "walltime": 60.0}


def cluster_doubts(cluster: Cluster) -> list[str]:
    """Return a sentence for each implausible quantity of a cluster, and one for ignored settings."""
    doubts, source = [], cluster.source or cluster.name
    if cluster.wiring is not None and cluster.wiring.ignored:
        doubts.append(f"{source}: ignored: {', '.join(cluster.wiring.ignored)}")
    for kind in cluster.types:
        where = f"{source}: node_types.{kind.name}"
        if kind.memory < LEAST_NODE_MEMORY:
            meant = format_size(kind.memory * (2**30 if kind.memory < 4096 else 2**20))
            doubts.append(f"{where}.memory: {format_size(kind.memory)} is implausible for a node; was {meant} meant?")
        if kind.memory_bandwidth < LEAST_BANDWIDTH:
            doubts.append(f"{where}.memory_bandwidth: {_rate_doubt(kind.memory_bandwidth, 'a node')}")
        if kind.frequency is not None and 1.0 < kind.frequency < LEAST_FREQUENCY:  # 1 is that of a simulated host
            meant = f"{kind.frequency:g}{'GHz' if kind.frequency < 100 else 'MHz'}"
            doubts.append(f"{where}.frequency: {kind.frequency:g}Hz is implausible for a node; was {meant} meant?")
    if isinstance(cluster.wiring, Tree):
        for key in ("port", "switch", "backbone"):
            if (rate := getattr(cluster.wiring, key)) < LEAST_RATE:
                doubts.append(f"{source}: network.{key}: {_rate_doubt(rate, 'a network')}")
    return doubts


def _rate_doubt(rate: float, of: str) -> str:
    meant = format_size(rate * (1e9 if rate < 4096 else 1e6), rate=True)
    return f"{format_size(rate, rate=True)} is implausible for {of}; was {meant} meant?"


class JobDoubts:
    """Collects the bare numbers of the jobs of a workflow file, or of profiles, that are implausibly small."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, float]] = defaultdict(dict)  # key -> {job: number}

    def read_job(self, job: str, data: dict[str, Any]) -> None:
        """Read the memory, walltime and profile of a job as its file gives them."""
        self._read(job, ((key, data.get(key)) for key in ("memory", "walltime")))
        self._read(job, _of_profile(data.get("profile"), "profile"))

    def read_profile(self, profile: str, data: Any) -> None:
        """Read the memory and the rates of a profile as its file gives them."""
        self._read(profile, _of_profile(data, ""))

    def _read(self, job: str, quantities: Iterator[tuple[str, Any]]) -> None:
        for key, value in quantities:
            kind = key.rpartition(".")[2]
            typed = type(value) is int or (type(value) is float and kind == "bandwidth" and value == round(value, 1))
            if typed and 0 < value < _LEAST[kind]:
                self._values[key][job] = value

    def sentences(self, source: str, where: str = "jobs") -> tuple[str, ...]:
        """Return a sentence for each key with an implausible number.

        Args:
            source: the file.
            where: its key that holds the jobs, or the profiles.
        """
        return tuple(f"{source}: {where}.{_doubt(key, jobs, where[:-1])}" for key, jobs in self._values.items())


def _of_profile(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of the memory and of all rates in a profile as it is written."""
    if isinstance(value, list):
        for number, group in enumerate(value):
            yield from _of_profile(group, f"{at}[{number}]")
    elif isinstance(value, dict):
        prefix = f"{at}." if at else ""
        yield from ((f"{prefix}{key}", value.get(key)) for key in ("memory", "bandwidth"))
        for key in ("groups", "phases"):
            yield from _of_profile(value.get(key), f"{prefix}{key}")


def _doubt(key: str, jobs: dict[str, float], noun: str) -> str:
    job, value = next(iter(jobs.items()))
    where = job + (key if key.startswith("[") else f".{key}")
    if other_jobs := len(jobs) - 1:
        where += f" (and {count(other_jobs, f'more {noun}')})"
    if key == "walltime":
        meant = f"{int(value)}:00" if value >= 1 else "MM:SS"
        return f"{where}: {value:g} means {value:g} seconds, not minutes as in Slurm; write {meant} for minutes"
    rate = key.endswith("bandwidth")
    unit, meant = ("bytes/s", "GB/s" if value < 1000 else "MB/s") if rate else ("bytes", "MiB")
    return f"{where}: {value:g} means {value:g} {unit}; was {value:g}{meant} meant?"
