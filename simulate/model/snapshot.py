"""The snapshot: the world as an adapter saw it at one moment, frozen. Adapters make it, everything else reads it.

Rule: it holds only what a scheduler can know.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .job import Job
from .platform import Cluster


class JobState(StrEnum):
    """Life of a job. UNKNOWN is never read as ended: it is looked up again."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether the job will never run again."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED)


class NodeState(StrEnum):
    """Whether a node takes jobs. One that is ASLEEP was powered down while idle, and wakes for the job it is given."""

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
    """A job as the resource manager knows it; times are epoch seconds of the resource manager's clock.

    Args:
        key: the idempotency key that the resource manager carries ("<workflow>/<job>").
        job: what was asked for.
        nodes: where it runs or ran.
        exit_code: of the job's process, None while unknown; `signal` if one ended it.
        usage: what it used, as measured (empty until known): cpu_seconds, memory_bytes, threads, ...
        reason: one sentence where the state, the code and the signal do not say it all.
        restartable: it is known here, never began, and nobody is about to start it: another Start under its key does.
        offered: it came through the resource manager, whose user hands it to us to choose its nodes.
        waits: why a waiting job must not be started now, "" if it may be.
        due: until when an offered job may be kept waiting for us; then a Release lets it go, and `due_why` says why (of
            one that is not offered though it was handed to us: why it is left alone).
        pid: of its first process, while it runs on this very machine.
        pinned_since: since when it is bound to `nodes` by us without having begun; a Release takes that back.
    """

    key: str
    job: Job
    state: JobState
    nodes: tuple[str, ...] = ()
    submit_time: float | None = None
    start_time: float | None = None
    finish_time: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    usage: tuple[tuple[str, float], ...] = ()
    reason: str = ""
    restartable: bool = False
    offered: bool = False
    waits: str = ""
    pinned_since: float | None = None
    due: float | None = None
    due_why: str = ""
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The world at `time` (the resource manager's clock, epoch seconds).

    Args:
        version: grows with every snapshot of one adapter.
        node_states: one for each node of `cluster`, same order.
        jobs: every job of ours that the resource manager knows, running or ended, and its neighbours.
    """

    time: float
    version: int
    cluster: Cluster
    node_states: tuple[NodeState, ...]
    jobs: tuple[JobView, ...]
