"""Slurm's jobs and nodes as frozen values, independent of the transport.

Rule: numbers are in our units (seconds, epoch seconds, bytes), node lists are expanded, and what Slurm does not report
is None. Nothing here decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...simulate.model.snapshot import JobState, NodeState


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job in Slurm's queue."""

    id: int
    state: JobState
    reason: str = ""
    part: bool = False  #: whether it is a member of an array or of a heterogeneous job
    array: int = 0  #: id of the array that it is of; 0: none
    tasks: int = 1  #: tasks of its array that wait in it; 0: not known
    tasks_at_once: int | None = None  #: most tasks of its array that run at once; None: no limit is known
    name: str = ""
    uid: int = -1
    account: str = ""
    qos: str = ""
    partition: str = ""
    nodes: int = 1  #: number of nodes that it asks for, or has
    cpus: int = 1  #: number of CPUs that it asks for, or has, in all
    threads: int = 0  #: cores on each node; 0: an even share
    per_task: int = 1  #: CPUs that each of its tasks asks for, while it waits
    own_core: str = ""  #: what shares no core with another of its kind, while it waits: "task", "cpu" or "" (neither)
    memory: float = 0.0  #: bytes on each node
    memory_per_cpu: float = 0.0  #: bytes, if it is what it asks for; 0: it is not
    asks_memory: bool = True  #: whether its user, or a default of the site, asked for memory; without, it gets all
    least_memory: float = 0.0  #: bytes that each of its nodes must have, where Slurm allocates no memory
    tres: tuple[tuple[str, float], ...] = ()  #: what it is charged with, in Slurm's units (memory in MiB)
    time_limit: float | None = None
    submit: float | None = None
    begin: float | None = None  #: when it becomes eligible, or became so
    start: float | None = None
    end: float | None = None
    deadline: float | None = None
    placed: tuple[str, ...] = ()  #: nodes that it has
    wanted: tuple[str, ...] = ()  #: nodes that it must run on (`ReqNodeList`)
    unwanted: tuple[str, ...] = ()  #: nodes that it must not run on (`ExcNodeList`)
    planned: tuple[str, ...] = ()  #: nodes on which Slurm plans to start a waiting job at `start`
    special: str = ""  #: a resource that it asks for and that only Slurm understands, in words; "": none
    dependency: str = ""  #: what it still waits for, in Slurm's syntax
    features: str = ""
    reservation: str = ""
    shares: str = ""  #: `OverSubscribe`
    priority: int = 0
    restarts: int = 0
    exit_code: int | None = None
    signal: int | None = None
    comment: str = ""  #: byte for byte, as `os.fsdecode` reads it
    pinned: float | None = None  #: when we bound it to `wanted`, and it still waits; epoch seconds
    own_nodes: bool = False  #: whether it is its user who asked for the nodes to which we bound it
    let_go: bool = False  #: whether we gave it to Slurm for good
    moved: bool = False  #: whether its begin time is not the one with which it was handed over
    paused: bool = False  #: whether we hold it back until `begin`, to bind it to nodes, and have not begun to do that
    unsettled: bool = False  #: whether a placement of it began lately and is not known to have succeeded

    @property
    def has_ended(self) -> bool:
        """True if it has ended, in whatever way."""
        return self.state.ended

    @property
    def left_to_slurm(self) -> str:
        """The reason why Slurm alone places it, in words; "": pilotfish may place it."""
        if self.part:
            return "members of arrays and heterogeneous jobs are left to Slurm"
        if self.reservation:
            return f"it has the reservation {self.reservation}, which is left to Slurm"
        return f"it asks for {self.special}, which is left to Slurm" if self.special else ""

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
    core: int = 1  #: CPUs of each core
    socket: int = 1  #: CPUs of each socket
