"""The snapshot: the cluster and its jobs as an adapter saw them at one moment.

Rule: it holds only what a scheduler can know. Adapters make it, everything else reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .cluster import Cluster
from .job import Job


class JobState(StrEnum):
    """State of a job. UNKNOWN is never treated as ended: the job is looked up again.

    CONFIGURING: its nodes are prepared for it. SUSPENDED: it is stopped and keeps them. RESUMING: it will go on.
    """

    PENDING = "pending"
    CONFIGURING = "configuring"
    RUNNING = "running"
    SUSPENDED = "suspended"
    RESUMING = "resuming"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether the job will never run again."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED)

    @property
    def takes_nodes(self) -> bool:
        """Whether the job has nodes, or may have: it has begun and not ended."""
        return self is not JobState.PENDING and not self.ended


class NodeState(StrEnum):
    """Whether a node takes jobs. An ASLEEP node was powered down while idle and wakes for a job."""

    UP = "up"
    ASLEEP = "asleep"
    DRAINED = "drained"
    DOWN = "down"
    UNKNOWN = "unknown"

    @property
    def takes_jobs(self) -> bool:
        """Whether a job that is placed there will start."""
        return self in (NodeState.UP, NodeState.ASLEEP)


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as the resource manager knows it; times are epoch seconds of the resource manager's clock."""

    key: str  # the idempotency key that the resource manager carries ("<workflow>/<job>")
    job: Job  # what was requested
    state: JobState  # its state
    nodes: tuple[str, ...] = ()  # where it runs or ran
    submit_time: float | None = None
    start_time: float | None = None
    finish_time: float | None = None
    exit_code: int | None = None  # exit code of its process; None while unknown
    signal: int | None = None  # the signal that ended it, if any
    #: Measured usage (empty until known): cpu_seconds, memory_bytes, threads, ...
    usage: tuple[tuple[str, float], ...] = ()
    reason: str = ""  # one sentence, if state, code and signal do not explain it
    #: It is known here, never began, and nothing is about to start it: another Start under its key does.
    restartable: bool = False
    offered: bool = False  # its user handed it to us through the resource manager to choose its nodes
    waits: str = ""  # why a waiting job must not start now; "" if it may
    pinned_since: float | None = None  # since when we bind it to `nodes` without a start; a Release removes that
    due: float | None = None  # until when we may hold an offered job; then a Release gives it back
    due_why: str = ""  # why it is then released; of a job handed to us but not `offered`: why it is left alone
    pid: int | None = None  # its first process, while it runs on this machine
    #: The cores that it has on each of `nodes`, as the resource manager numbers them; () = not known.
    cores: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the cluster at `time` (the resource manager's clock, epoch seconds)."""

    time: float
    version: int  # increases with every snapshot of one adapter
    cluster: Cluster  # its nodes
    node_states: tuple[NodeState, ...]  # one for each node of `cluster`, in the same order
    #: Every job of ours that the resource manager knows, running or ended, and the jobs next to them.
    jobs: tuple[JobView, ...]
