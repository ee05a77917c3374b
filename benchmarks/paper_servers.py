"""Servers of DESiDE's experiments (Chahal et al., ICPE 2019, 5.1): 56 cores and 80 GB/s, under its model or ours."""

from __future__ import annotations

import math

from pilotfish.simulate.model.cluster import Cluster, ContendingThreads, Contention, CpuSharing, Node, NodeType


def server(paper: bool) -> NodeType:
    """Return the paper's server, under the paper's model or under ours."""
    return NodeType(
        "xeon56",
        56,
        256 * 2**30,
        80e9,
        contention=Contention.EQUAL_SHARE if paper else Contention.MAX_MIN,
        contending_threads=ContendingThreads.ALL if paper else ContendingThreads.RUNNING,
        cpu_sharing=CpuSharing.PER_THREAD if paper else CpuSharing.PER_JOB,
    )


def servers(count: int, paper: bool, oversubscription: float | None = None) -> Cluster:
    """Return a cluster of identical servers.

    Args:
        count: number of servers.
        paper: use the paper's model, not ours.
        oversubscription: threads per core; None: unlimited under the paper's model, else 1.
    """
    kind = server(paper)
    limit = (math.inf if paper else 1.0) if oversubscription is None else oversubscription
    return Cluster("servers", tuple(Node(f"s{i}", kind) for i in range(count)), oversubscription=limit)


#: The models of `servers(..., paper)`.
MODELS = {True: "equal-share, all, per-thread, unlimited", False: "max-min, running, per-job, 1.0"}
