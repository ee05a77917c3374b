"""Quantities that are valid but implausible, mostly without their unit, and settings of platforms that no replay uses.

Rule: a doubt is a warning and changes nothing. Bare numbers are in bytes, bytes/s and seconds; the bounds lie far below
every real node. In jobs, only whole numbers, and rates with one decimal, are doubted: programs write floats, and rates
below a kB/s with their unit.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ...simulate.model.cluster import Cluster
from ..text import count
from .quantities import format_size

#: Below these a node cannot run an operating system: bytes, bytes/s.
LEAST_NODE_MEMORY, LEAST_BANDWIDTH = 2.0**20, 1e6
#: Below these a job's request is more likely a forgotten unit: bytes, bytes/s, seconds.
_OF_JOBS = {"memory": 1024, "profile.memory": 1024, "profile.bandwidth": 1000, "walltime": 60}


def cluster_doubts(cluster: Cluster) -> list[str]:
    """Return a sentence for each implausible quantity of a cluster's node types, and one for ignored settings."""
    doubts = []
    if cluster.wiring is not None and cluster.wiring.ignored:
        doubts.append(f"{cluster.source or cluster.name}: ignored: {', '.join(cluster.wiring.ignored)}")
    for kind in cluster.types:
        where = f"{cluster.source or cluster.name}: node_types.{kind.name}"
        if kind.memory < LEAST_NODE_MEMORY:
            meant = format_size(kind.memory * 2**30)
            doubts.append(f"{where}.memory: {format_size(kind.memory)} is implausible for a node; was {meant} meant?")
        if kind.memory_bandwidth < LEAST_BANDWIDTH:
            rate, meant = (format_size(kind.memory_bandwidth * factor, rate=True) for factor in (1, 1e9))
            doubts.append(f"{where}.memory_bandwidth: {rate} is implausible for a node; was {meant} meant?")
    return doubts


class JobDoubts:
    """Collects the bare numbers of the jobs of a workflow file that are implausibly small."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, float]] = defaultdict(dict)  # key -> {job: number}

    def read_job(self, job: str, data: dict[str, Any]) -> None:
        """Read the memory, bandwidth and walltime of a job as its file gives them."""
        inline = data.get("profile")
        for key, least in _OF_JOBS.items():
            part, _, last = key.rpartition(".")
            given = inline if part else data
            value: Any = given.get(last) if isinstance(given, dict) else None
            typed = type(value) is int or (type(value) is float and last == "bandwidth" and value == round(value, 1))
            if typed and 0 < value < least:
                self._found[key][job] = value

    def sentences(self, source: str) -> tuple[str, ...]:
        """Return a sentence for each key with an implausible number; `source` is the file."""
        return tuple(f"{source}: {_doubt(key, jobs)}" for key, jobs in self._found.items())


def _doubt(key: str, jobs: dict[str, float]) -> str:
    job, value = next(iter(jobs.items()))
    where = f"jobs.{job}.{key}" + (f" (and {count(len(jobs) - 1, 'more job')})" if len(jobs) > 1 else "")
    if key == "walltime":
        meant = f"{int(value)}:00" if value >= 1 else "MM:SS"
        return f"{where}: {value:g} means {value:g} seconds, not minutes as in Slurm; write {meant} for minutes"
    unit, meant = ("bytes/s", "GB/s") if key.endswith("bandwidth") else ("bytes", "MiB")
    return f"{where}: {value:g} means {value:g} {unit}; was {value:g}{meant} meant?"
