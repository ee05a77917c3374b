"""Slurm's jobs and nodes as frozen values, independent of the transport.

Rule: numbers are in our units (seconds, epoch seconds, bytes), node lists are expanded, and what Slurm does not report
is None. Nothing here decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...simulate.model.snapshot import JobState, NodeState


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job in Slurm's queue.

    Args:
        id: Slurm's job id.
        part: Whether it is a member of an array or of a heterogeneous job.
        nodes: Number of nodes that it asks for, or has.
        cpus: Number of CPUs that it asks for, or has, in all.
        threads: Cores on each node; 0: an even share.
        memory: Bytes on each node.
        tres: What it is charged with, by resource, in Slurm's units (memory in MiB).
        begin: When it becomes eligible, or became so.
        placed: Nodes that it has.
        wanted: Nodes that it must run on (`ReqNodeList`).
        unwanted: Nodes that it must not run on (`ExcNodeList`).
        planned: Nodes on which Slurm plans to start it at `start`.
        special: A resource that it asks for and that only Slurm understands, in words; "": none.
        dependency: What it still waits for, in Slurm's syntax.
        shares: `OverSubscribe`.
    """

    id: int
    state: JobState
    reason: str = ""
    part: bool = False
    name: str = ""
    uid: int = -1
    account: str = ""
    qos: str = ""
    partition: str = ""
    nodes: int = 1
    cpus: int = 1
    threads: int = 0
    memory: float = 0.0
    tres: tuple[tuple[str, float], ...] = ()
    time_limit: float | None = None
    submit: float | None = None
    begin: float | None = None
    start: float | None = None
    end: float | None = None
    deadline: float | None = None
    placed: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    special: str = ""
    dependency: str = ""
    features: str = ""
    reservation: str = ""
    shares: str = ""
    priority: int = 0
    restarts: int = 0
    exit_code: int | None = None
    signal: int | None = None
    comment: str = ""
    admin_comment: str = ""

    @property
    def cores(self) -> int:
        """Cores on each of its nodes."""
        return self.threads or max(1, -(-self.cpus // max(1, self.nodes)))


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node as Slurm reports it; `idle` cores and `free` bytes are not allocated to jobs (None: not reported)."""

    name: str
    state: NodeState
    cpus: int
    memory: float
    features: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    reason: str = ""
    idle: int | None = None
    free: float | None = None
