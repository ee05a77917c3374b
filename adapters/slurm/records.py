"""What Slurm says of a job or a node, as frozen values, whichever way it was asked.

Rule: numbers are in our units (seconds, epoch seconds, bytes), node lists are expanded, and what Slurm does not know
is None; nothing here decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...simulate.snapshot import JobState, NodeState


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job of Slurm's queue.

    Args:
        id: Slurm's job id; `part` marks members of arrays and heterogeneous jobs.
        nodes, cpus: how many it asks for, or has, in all; `threads`: cores on each node, 0 = an even share.
        memory: bytes on each node.
        tres: what it is charged with, by resource, in Slurm's units (memory in MiB).
        planned: nodes on which Slurm means to start it at `start`.
        special: what it asks for that only Slurm understands, in words; "" = nothing.
        begin: when it becomes eligible, or became so.
        wanted, unwanted: nodes that it must run on (`ReqNodeList`) and must not (`ExcNodeList`).
        dependency: what it still waits for, in Slurm's own words.
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
    """A node as Slurm sees it; `idle` cores and `free` bytes are what it has not given to jobs (None: not told)."""

    name: str
    state: NodeState
    cpus: int
    memory: float
    features: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    reason: str = ""
    idle: int | None = None
    free: float | None = None
