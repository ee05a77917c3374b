"""Quantities that are valid and yet implausible: mostly a bare number whose unit was forgotten.

Rule: a doubt is a warning and changes nothing. Bare numbers are in bytes, bytes/s and seconds; the bounds lie far below
every real node. Of jobs only whole numbers are doubted: programs write floats.
"""

from __future__ import annotations

from ..simulate.model.cluster import Cluster
from .quantities import format_size

#: Below these a node cannot run an operating system: bytes, bytes/s.
LEAST_NODE_MEMORY, LEAST_BANDWIDTH = 2.0**20, 1e6
#: Below these a job's request is more likely a forgotten unit: bytes, seconds.
LEAST_JOB_MEMORY, LEAST_WALLTIME = 2.0**10, 60.0


def cluster_doubts(cluster: Cluster) -> list[str]:
    """Return a sentence for each implausible quantity of a cluster's node types."""
    doubts = []
    for kind in cluster.types:
        where = f"{cluster.source or cluster.name}: node_types.{kind.name}"
        if kind.memory < LEAST_NODE_MEMORY:
            meant = format_size(kind.memory * 2**30)
            doubts.append(f"{where}.memory: {format_size(kind.memory)} is implausible for a node; was {meant} meant?")
        if kind.memory_bandwidth < LEAST_BANDWIDTH:
            rate, meant = (format_size(kind.memory_bandwidth * factor, rate=True) for factor in (1, 1e9))
            doubts.append(f"{where}.memory_bandwidth: {rate} is implausible for a node; was {meant} meant?")
    return doubts


def job_doubts(bare_memory: dict[str, float], bare_walltime: dict[str, float]) -> tuple[str, ...]:
    """Return a sentence for each kind of implausible request in a workflow file.

    Args:
        bare_memory: job -> memory written as a bare number, bytes.
        bare_walltime: job -> walltime written as a bare number, seconds.
    """
    small = [job for job, value in bare_memory.items() if 0 < value < LEAST_JOB_MEMORY]
    short = [job for job, value in bare_walltime.items() if value < LEAST_WALLTIME]
    doubts = []
    if small:
        value = bare_memory[small[0]]
        doubts.append(f"{_first(small, 'memory')}: {value:g} means {value:g} bytes; was {value:g}MiB meant?")
    if short:
        value = bare_walltime[short[0]]
        meant = f"{int(value)}:00" if value >= 1 else "MM:SS"
        what = f"{value:g} means {value:g} seconds, not minutes as in Slurm; write {meant} for minutes"
        doubts.append(f"{_first(short, 'walltime')}: {what}")
    return tuple(doubts)


def _first(jobs: list[str], key: str) -> str:
    others = f" (and {len(jobs) - 1} more jobs)" if len(jobs) > 1 else ""
    return f"jobs.{jobs[0]}.{key}{others}"
