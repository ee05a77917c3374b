"""From the sums that a resource manager reports of a job to a measurement.

Rule: sums say how much, not when: the threads are as few as could have used the time, all alike, and the
deviation of their utilisation is not known. Where somebody watched the job (`watch`), what was seen is
better than this.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from ..simulate.job import ThreadGroup
from ..simulate.snapshot import JobView
from .measurement import Measurement
from .threads import SLACK, TINY


def from_usage(view: JobView, node_type: str | None = None, cpu_model: str = "") -> Measurement | None:
    """Return what a job that has ended showed, None where its times or its CPU seconds are not known.

    Args:
        view: its `usage` has cpu_seconds or on_core_seconds, and may have waiting_seconds, memory_bytes,
            read_bytes and written_bytes; sums over all of its nodes.
        node_type: the cluster file's name for the nodes it ran on.
    """
    usage = dict(view.usage)
    cpu_s = max(usage.get("cpu_seconds", 0.0), usage.get("on_core_seconds", 0.0))
    if view.start_time is None or view.finish_time is None or cpu_s <= 0:
        return None
    wall_s = max(view.finish_time - view.start_time, TINY)
    nodes = max(1, len(view.nodes))
    waiting_s = usage.get("waiting_seconds")
    busy_s = (cpu_s + (waiting_s or 0.0)) / nodes
    threads = max(1, math.ceil(busy_s / wall_s - SLACK))
    alone_s = max(wall_s - (waiting_s or 0.0) / nodes / threads, cpu_s / nodes / threads)
    demand = cpu_s / nodes / threads
    exit_code = 128 + view.signal if view.signal else view.exit_code
    return Measurement(
        groups=(ThreadGroup(threads, demand, max(TINY, min(1.0, demand / alone_s))),),
        wall_s=wall_s,
        isolated_s=alone_s,
        cpu_s=cpu_s / nodes,
        waiting=None if waiting_s is None else min(1.0, waiting_s / nodes / threads / wall_s),
        exit_code=exit_code,
        date=datetime.fromtimestamp(view.start_time, UTC).isoformat(timespec="seconds"),
        cpu_model=cpu_model,
        memory_bytes=usage["memory_bytes"] / nodes if "memory_bytes" in usage else None,
        read_bytes=usage["read_bytes"] / nodes if "read_bytes" in usage else None,
        written_bytes=usage["written_bytes"] / nodes if "written_bytes" in usage else None,
        node_type=node_type,
        method="sums",
    )
