"""The nodes and jobs of Slurm as they were read and placed, with the eligibility and the views of the jobs.

Rule: only what has changed is evaluated again. While nothing has, the eligibility and the views are the very same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job
from ...simulate.model.snapshot import NodeState, Snapshot
from .handed_over.ownership import SlurmSelection
from .job_views import ViewTable, node_states
from .placement.eligibility import Deferral, Eligibility, EligibilityCache
from .placement.future_occupancy import START_S
from .placement.partitions import Partition
from .records import SlurmJob, SlurmNode
from .site_state import SiteState
from .transport.differences import differences


class EvaluatedQueue:
    """All nodes and jobs.

    Args:
        cluster: Nodes on which jobs may be placed.
        selection: Jobs that are handed over.
        deferral: For how long jobs are kept.
        uid: User id of our own jobs.
        clock: Monotonic clock, seconds.

    Attributes:
        cache: The jobs, and what is kept of them from one snapshot to the next.
        nodes: All nodes of Slurm, by name.
        nodes_read_at: When they were read last, by the clock.
    """

    def __init__(
        self, cluster: Cluster, selection: SlurmSelection, deferral: Deferral, uid: int, clock: Callable[[], float]
    ) -> None:
        self._cluster, self._deferral, self._clock = cluster, deferral, clock
        self.cache = EligibilityCache(cluster, selection)
        self.nodes: Mapping[str, SlurmNode] = {}
        self.nodes_read_at = -math.inf
        self._node_list: list[SlurmNode] = []
        self._node_states: tuple[NodeState, ...] = ()
        self._eligibility: Eligibility | None = None
        self._views = ViewTable(self.cache, uid)
        self._views_partitions: Mapping[str, Partition] = {}  # by which `Job.apart` of the views was set
        self._last_snapshot: tuple[Eligibility, Snapshot] | None = None

    @property
    def jobs(self) -> Mapping[int, SlurmJob]:
        """All jobs by id, with what we know of our changes."""
        return self.cache.queue.jobs

    def store_nodes(self, nodes: list[SlurmNode]) -> None:
        """Store nodes; node lists stay valid while the nodes have the same partitions and features."""
        self.nodes_read_at = self._clock()
        if nodes is self._node_list:
            return
        for before, after in differences(self._node_list, nodes):
            old, new = (
                [(node.name, node.partitions, node.features) for node in node_range]
                for node_range in (self._node_list[before], nodes[after])
            )
            if old != new:
                self.cache.node_lists.clear()
        self._node_list, self.nodes = nodes, {node.name: node for node in nodes}
        self._node_states = node_states(self._cluster, nodes)
        self.outdate()

    def take_in(self, jobs: list[SlurmJob], removed: Collection[int]) -> None:
        """Store jobs that may be new or different, and drop those that have gone."""
        if removed or any(self.jobs.get(job.id) != job for job in jobs):
            self.cache.queue.update(jobs, removed)
            self.outdate()

    def outdate(self) -> None:
        """Let the eligibility be evaluated again when it is next asked for."""
        self._eligibility = None

    def renew_views(self) -> None:
        """Let the next snapshot have new views, because a job was placed or forgotten."""
        self._last_snapshot = None

    def eligibility(self, site: SiteState, now: float) -> Eligibility:
        """Return the eligibility of all jobs as read and placed, at a recent moment.

        Args:
            site: What is known of the site.
            now: Controller's clock, epoch seconds.
        """
        if self._eligibility is None or abs(now - self._eligibility.now) > START_S:
            self._eligibility = Eligibility(self._cluster, self.nodes, self.cache, site, now, self._deferral)
        return self._eligibility

    def snapshot(self, site: SiteState, now: float, version: int, submitted: Mapping[str, Job]) -> Snapshot:
        """Return the snapshot of all nodes and jobs.

        Args:
            site: What is known of the site.
            now: Controller's clock, epoch seconds.
            version: Number of the snapshot.
            submitted: Key -> job as we submitted it.
        """
        eligibility = self.eligibility(site, now)
        if self._last_snapshot is not None and self._last_snapshot[0] is eligibility:
            return replace(self._last_snapshot[1], time=now, version=version)
        if site.partitions != self._views_partitions:
            self._views.clear()
            self._views_partitions = site.partitions
        views = self._views.update(eligibility, submitted)
        self._last_snapshot = eligibility, Snapshot(now, version, self._cluster, self._node_states, views)
        return self._last_snapshot[1]
