"""The snapshot: the cluster and its jobs as an adapter saw them at one moment.

Rule: it holds only what a scheduler can know. Adapters make it, everything else reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from .capacity import Occupancy
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
        """True if the job will never run again."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED)

    @property
    def takes_nodes(self) -> bool:
        """True if the job has nodes, or may have: it has begun and not ended."""
        return self is not JobState.PENDING and not self.ended


class NodeState(StrEnum):
    """Availability of a node for jobs. An ASLEEP node was powered down while idle and wakes for a job."""

    UP = "up"
    ASLEEP = "asleep"
    DRAINED = "drained"
    DOWN = "down"
    UNKNOWN = "unknown"

    @property
    def takes_jobs(self) -> bool:
        """True if a job that is placed there will start."""
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
    #: Measured usage (empty until known): cpu_seconds, memory_bytes, threads, ..., and bytes of its input files as
    #: `input:PLACE`, see `Job.inputs`.
    usage: tuple[tuple[str, float], ...] = ()
    reason: str = ""  # one sentence, if state, code and signal do not explain it
    #: It is known here, never began, and nothing is about to start it: another Start under its key does.
    restartable: bool = False
    ahead: bool = False  # it is such a job of our own, submitted ahead: a Cancel removes it
    offered: bool = False  # its user handed it to us through the resource manager to choose its nodes
    waits: str = ""  # why a waiting job must not start now; "" if it may
    pinned_since: float | None = None  # since when we bind it to `nodes` without a start; a Release removes that
    due: float | None = None  # until when we may hold a job that was handed to us; then a Release gives it back
    due_why: str = ""  # why it is then released; of a job handed to us but not `offered`: why it is left alone
    pid: int | None = None  # its first process, while it runs on this machine
    #: The cores that it has on each of `nodes`, as the resource manager numbers them; () = not known.
    cores: tuple[tuple[int, ...], ...] = ()
    priority: float | None = None  # of a waiting job, as the site weighs it; None = not known
    preemptible: bool = False  # the resource manager ends it for other jobs
    yields: tuple[
        str, ...
    ] = ()  # the nodes of a preemptible job that are planned as if it were gone; `nodes` is then ()


class JobViews(tuple[JobView, ...]):
    """The views of a snapshot, with look-ups that are made once, and kept for as long as no view changes."""

    _occupancy: tuple[Cluster, Occupancy] | None = None

    @cached_property
    def by_key(self) -> Mapping[str, JobView]:
        """The views by key, in their order."""
        return {view.key: view for view in self}

    @cached_property
    def offered(self) -> tuple[JobView, ...]:
        """The views of waiting jobs that users handed to us."""
        return tuple(view for view in self if view.offered)

    @cached_property
    def held(self) -> tuple[JobView, ...]:
        """The views of waiting jobs that we may hold, also of those that a canary leaves to the resource manager."""
        return tuple(view for view in self if view.due is not None)

    @cached_property
    def yielding(self) -> tuple[JobView, ...]:
        """The views of preemptible jobs that are planned as if they were gone."""
        return tuple(view for view in self if view.yields)

    @cached_property
    def holding(self) -> Mapping[str, JobView]:
        """The views, by key in any order, of jobs that use capacity of nodes: they run, may run, or were placed."""
        return {view.key: view for view in self if holds_nodes(view)}

    def occupancy(self, cluster: Cluster) -> Occupancy:
        """Return what the jobs use on each node of the cluster; O(nodes) once it was counted. It may be changed."""
        if self._occupancy is None or self._occupancy[0] is not cluster:
            occupancy = Occupancy(cluster)
            for view in self.holding.values():
                occupancy.place(view.job, view.nodes)
            self._occupancy = cluster, occupancy
        return self._occupancy[1].copy()

    def followed_by(self, views: Iterable[JobView], gone: Collection[JobView], new: Collection[JobView]) -> JobViews:
        """Return the views of the next snapshot; their counts are adjusted, not counted again. O(jobs), but fast.

        Args:
            views: All of them, in order.
            gone: Those of these that are not among them.
            new: Those of them that are not among these.
        """
        after = JobViews(views)
        if "holding" not in self.__dict__:
            return after
        holding = dict(self.holding)
        gone, new = [view for view in gone if holds_nodes(view)], [view for view in new if holds_nodes(view)]
        for view in gone:
            del holding[view.key]
        holding |= {view.key: view for view in new}
        after.__dict__["holding"] = holding
        if self._occupancy is not None:
            cluster, occupancy = self._occupancy[0], self._occupancy[1].copy()
            for view in gone:
                occupancy.remove(view.job, view.nodes)
            for view in new:
                occupancy.place(view.job, view.nodes)
            after._occupancy = cluster, occupancy
        return after


def holds_nodes(view: JobView) -> bool:
    """Return whether a job uses capacity of its nodes: it runs, may run, or was placed to run."""
    return bool(view.nodes) and not view.state.ended


@dataclass(frozen=True, slots=True, init=False)
class Snapshot:
    """The state of the cluster at `time` (the resource manager's clock, epoch seconds)."""

    time: float
    version: int  # increases with every snapshot of one adapter
    cluster: Cluster  # its nodes
    node_states: tuple[NodeState, ...]  # one for each node of `cluster`, in the same order
    #: Every job of ours that the resource manager knows, running or ended, and the jobs next to them.
    jobs: JobViews

    def __init__(
        self,
        time: float,
        version: int,
        cluster: Cluster,
        node_states: tuple[NodeState, ...],
        jobs: Iterable[JobView],
    ) -> None:
        views = jobs if isinstance(jobs, JobViews) else JobViews(jobs)
        values = {"time": time, "version": version, "cluster": cluster, "node_states": node_states, "jobs": views}
        for name, value in values.items():
            object.__setattr__(self, name, value)
