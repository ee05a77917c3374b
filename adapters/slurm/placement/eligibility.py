"""Eligibility: where each job that was handed over may start now, and until when pilotfish may keep it.

Rule: pure. A node where Slurm would refuse the job, or where it would delay a job that Slurm puts first, is not
allowed. A job without an allowed node waits, with the reason. A job that only Slurm understands, or that waits too
long, must be let go.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ....formats.text import count
from ....simulate.model.cluster import Cluster
from ....simulate.model.snapshot import JobState
from ..handed_over.ownership import (
    NEIGHBOUR,
    Ownership,
    OwnershipCache,
    SlurmSelection,
    hold_back_until,
    hold_end,
    is_held,
    may_begin,
)
from ..records import SlurmJob, SlurmNode
from ..site_state import SiteState
from . import node_constraints
from .future_occupancy import START_S, FutureOccupancy, Occupation, Order, PlannedStart, QueuedAhead, StartRequest
from .limits import Limits, Quota
from .node_capacity import NodeCapacity, NodeSharing, sharing_of
from .node_constraints import NodeLists
from .partitions import Partition, of_job
from .queue_state import QueueState, Who, holds, startable

#: Seconds for which cores stay taken that no visible job explains.
UNSEEN_S = 30.0


@dataclass(frozen=True, slots=True)
class Deferral:
    """For how long pilotfish keeps jobs; see `create`."""

    max_defer_s: float = 3600.0
    wide_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a waiting job."""

    allowed: frozenset[str]  #: names of the nodes on which it may start
    waits: str  #: why it must not start now, or ""
    cores: int  #: cores that it takes on each node
    due: float | None = None  #: until when it is kept at most, epoch seconds; None: it is not pilotfish that keeps it
    why: str = ""  #: the reason to let it go then


class EligibilityCache:
    """State that is kept from one snapshot of the queue to the next, so that only changes are evaluated again."""

    def __init__(self, cluster: Cluster, selection: SlurmSelection) -> None:
        self.standings, self.capacity, self.node_lists = OwnershipCache(selection), NodeCapacity(cluster), NodeLists()
        self.queue = QueueState(selection.takes)
        self.future: tuple[object, FutureOccupancy] | None = None  # with what it was made of
        self.since: dict[int, float] = {}  # job id -> when the job was first seen to wait for us alone, epoch seconds
        self._none = Limits()
        self._quota = Quota(self._none, {})

    def quota(self, limits: Limits | None, partition_qos: Mapping[str, str]) -> Quota:
        """Return an empty count against these limits."""
        quota, current_limits = self._quota, self._none if limits is None else limits
        if quota.limits is not current_limits or quota.partition_qos != partition_qos:
            self._quota = Quota(current_limits, partition_qos)
        return self._quota.empty()

    def renew(self, now: float) -> list[SlurmJob]:
        """Go on to the next snapshot, for which the queue was updated; return the waiting jobs that are ours."""
        for cache in (self.node_lists, self.capacity, self._quota):
            cache.age()
        waiting = [(job, self.standings.of(job, now)[0]) for job in self.queue.ours.values()]
        self.since = {job.id: self.since.get(job.id, now) for job, ownership in waiting if ownership is Ownership.HELD}
        return [job for job, ownership in waiting if ownership is not Ownership.NEIGHBOUR]


class JobPartitions(tuple[Partition, ...]):
    """Partitions in which a job may start, with cached properties of all of them."""

    @cached_property
    def tier(self) -> int:
        """The highest tier."""
        return max((partition.tier for partition in self), default=1)

    @cached_property
    def size(self) -> int:
        """Number of nodes in all."""
        return len(frozenset[str]().union(*(partition.nodes for partition in self)))


class Eligibility:
    """Evaluates all jobs of one snapshot of the queue.

    Args:
        cluster: Nodes on which pilotfish may place jobs.
        nodes: All nodes in Slurm, by name.
        cache: The queue, and what is kept of earlier snapshots; of two instances that share one only the later may be
            used.
        site: Partitions, reservations, limits and settings.
        now: Controller's clock, epoch seconds.
        deferral: For how long jobs are kept.
    """

    def __init__(
        self,
        cluster: Cluster,
        nodes: Mapping[str, SlurmNode],
        cache: EligibilityCache,
        site: SiteState,
        now: float,
        deferral: Deferral,
    ) -> None:
        self._cluster, self._nodes, self._site, self.now, self._deferral = cluster, nodes, site, now, deferral
        self._cache, self._queue, self._capacity = cache, cache.queue, cache.capacity
        self._node_lists = cache.node_lists
        self._queue.advance(now)
        self._capacity.update(nodes, self._queue, site.partitions)
        self._partitions_by_name: dict[str, JobPartitions] = {}
        self._with_room: dict[object, frozenset[str]] = {}
        self._least_cores_of: dict[frozenset[str], int] = {}
        self._unseen: list[tuple[str, int, float]] | None = None
        self._counted_quota: Quota | None = None
        self._verdicts: dict[int, Verdict] | None = None
        self._future = self._future_occupancy()

    def verdicts(self) -> dict[int, Verdict]:
        """Return the verdict on every waiting job of ours, by id. Limits are granted in Slurm's order.

        O(jobs x nodes) at worst.
        """
        if self._verdicts is not None:
            return self._verdicts
        quota, verdicts = self._quota().copy(), dict[int, Verdict]()
        for job in self._in_order():
            ownership, why = self._ownership(job)
            if ownership is not Ownership.NEIGHBOUR:
                verdicts[job.id] = self._verdict(job, ownership, why, quota)
            is_granted = job.id in verdicts and not verdicts[job.id].waits and ownership is Ownership.HELD
            if is_granted or (self._startable(job, ownership) and not self._planned_later(job)):
                quota.count(job, job.time_limit or math.inf)
        self._verdicts = verdicts
        return verdicts

    def verdict(self, job: SlurmJob, nodes: Collection[str]) -> Verdict:
        """Return the verdict on one job on these nodes only, in addition to all that runs and was placed."""
        ownership, why = self._ownership(job)
        return self._verdict(job, ownership, why, self._quota(), frozenset(nodes))

    def place(self, job: SlurmJob) -> None:
        """Count a job that was pinned after the snapshot."""
        where, quota = holds(job), self._quota()
        self._queue.update([job])
        self._capacity.update(self._nodes, self._queue, self._site.partitions)
        quota.count(job, job.time_limit or math.inf)
        self._future.place(job.id, Occupation(where, job.cores, job.memory, self._end(job)))
        self._cache.future = self._verdicts = self._unseen = None
        self._with_room.clear()

    def kind(self, job: SlurmJob) -> str:
        """Return the value of `Job.apart`: jobs with different values share no node."""
        sharing = sharing_of(job, self._partitions(job))
        return f"{sharing} {job.id}" if sharing is NodeSharing.ALONE else sharing

    def order(self, job: SlurmJob) -> Order:
        """Return the job's place in Slurm's queue."""
        return -self._partitions(job).tier, -job.priority, job.id

    def unseen(self) -> list[tuple[str, int, float]]:
        """Return cores that are taken by no visible job: node, cores, for how many seconds."""
        if self._unseen is not None:
            return self._unseen
        allocations = self._unseen = []
        for name, cores in self._capacity.unseen():
            uneven = [job for job in self._capacity.jobs_on(name) if job.cpus % max(1, job.nodes)]
            end = max(uneven, key=lambda job: job.id).end if uneven else None
            allocations.append((name, cores, max(1.0, (end or self.now + UNSEEN_S) - self.now)))
        return allocations

    def _verdict(
        self, job: SlurmJob, ownership: Ownership, why: str, quota: Quota, only: frozenset[str] | None = None
    ) -> Verdict:
        """Return the verdict on a job; `only`: consider these nodes, not all that it may use."""
        usable, never = self._usable_nodes(job)
        whole_nodes = self._whole(job)
        cores = max(job.cores, self._least_cores(usable)) if whole_nodes else job.cores
        due, reason = self._due(job, ownership, never)
        if ownership is Ownership.WAITING:
            return Verdict(usable, why, cores, due, reason)
        waits = never or self._unread(job) or quota.obstacle(job, job.time_limit or math.inf)
        if not waits and ownership is Ownership.FREE and self._planned_later(job):
            waits = "Slurm has planned its start"
        longest = self._deferral.max_defer_s
        if not waits and may_begin(job, self.now) and hold_back_until(job, self.now, longest) is None:
            waits = "it may not be held back long enough to be bound to nodes: Slurm starts it"
        if waits:
            return Verdict(frozenset(), waits, cores, due, reason)
        request = StartRequest(self.order(job), job.time_limit or math.inf, cores, job.memory, whole_nodes)
        roomy = self._nodes_with_room(job, usable) if only is None else self._capacity.fitting_among(job, usable & only)
        open_nodes, blocked = self._future.open_nodes(request, roomy)
        if len(open_nodes) < job.nodes and len(usable) >= job.nodes:
            waits = blocked or f"{len(roomy)} of the nodes that it may use have room for it, it needs {job.nodes}"
        return Verdict(open_nodes, waits, cores, due, reason)

    def _least_cores(self, usable: frozenset[str]) -> int:
        if usable not in self._least_cores_of:
            sizes = [node.type.cores for node in self._cluster.nodes if node.name in usable]
            self._least_cores_of[usable] = min(sizes, default=1)
        return self._least_cores_of[usable]

    def _usable_nodes(self, job: SlurmJob) -> tuple[frozenset[str], str]:
        """Return the nodes that the job may ever use, and why there are too few."""
        chosen = self._partitions(job)
        refusals = [reason for partition in chosen if (reason := partition.obstacle(job))]
        if refusals and len(refusals) == len(chosen):
            return frozenset(), refusals[0]
        if job.wanted and len(job.wanted) != job.nodes:
            return frozenset(), "its user names more or fewer nodes than it asks for, so Slurm must choose"
        unwanted = self._site.excluded.get(job.id, ()) or ()
        shape = (job.partition, job.features, job.wanted, job.nodes, unwanted, job.least_memory)
        in_cluster = self._cluster.index
        nodes = self._nodes.values()
        usable = self._node_lists.of(
            shape, lambda: node_constraints.allowed(job, nodes, unwanted).intersection(in_cluster)
        )
        return usable, "" if len(usable) >= job.nodes else "too few of the nodes that pilotfish knows may run it"

    def _unread(self, job: SlurmJob) -> str:
        site = self._site
        if site.missing:
            return f"Slurm's {min(site.missing)} are not read yet"
        if job.id not in site.covered:
            return "the nodes that it excludes are not read yet"
        if self._site.excluded.get(job.id, ()) is None:
            return "the nodes that it excludes cannot be read"
        return "its limits are not read yet" if site.settings.limits and not site.limits.knows(job) else ""

    def _nodes_with_room(self, job: SlurmJob, usable: frozenset[str]) -> frozenset[str]:
        """Return those of the nodes that have room for the job by Slurm's rules of sharing."""
        shape = (job.partition, job.cores, job.memory, job.shares, usable)
        if shape not in self._with_room:
            self._with_room[shape] = self._node_lists.canonical(self._capacity.fitting(job, usable))
        return self._with_room[shape]

    def _whole(self, job: SlurmJob) -> bool:
        return sharing_of(job, self._partitions(job)) is NodeSharing.ALONE

    def _partitions(self, job: SlurmJob) -> JobPartitions:
        if job.partition not in self._partitions_by_name:
            self._partitions_by_name[job.partition] = JobPartitions(of_job(job, self._site.partitions))
        return self._partitions_by_name[job.partition]

    def _due(self, job: SlurmJob, ownership: Ownership, never: str) -> tuple[float | None, str]:
        if job.paused:
            longest = (job.submit or 0.0) + self._deferral.max_defer_s
            return min(hold_end(job), longest), "it was held back for nodes and not bound to them; its hold is over"
        if (
            job.submit is None
            or may_begin(job, self.now)
            or not (ownership is Ownership.HELD or is_held(job, self.now))
        ):
            return None, ""
        longest = self._deferral.max_defer_s
        deferral = (
            job.submit + longest,
            f"it has waited for {longest:g} s, the longest time that pilotfish keeps a job",
        )
        if job.left_to_slurm or (never and not self._site.missing and not self._unread(job)):
            return job.submit, job.left_to_slurm or never
        if ownership is Ownership.HELD and self.is_wide(job):
            pause = self._site.settings.backfill_s
            why = f"it needs {count(job.nodes, 'node')} and did not fit within {pause:g} s: Slurm reserves them"
            return min(deferral, (self._cache.since.get(job.id, self.now) + pause, why))
        return deferral

    def is_wide(self, job: SlurmJob) -> bool:
        """Return whether the job needs so many nodes that only a Slurm reservation frees them together."""
        if self._deferral.wide_nodes is not None:
            return job.nodes >= self._deferral.wide_nodes
        return job.nodes >= 2 and 4 * job.nodes > self._partitions(job).size > 0

    def _startable(self, job: SlurmJob, ownership: Ownership) -> bool:
        return ownership is not Ownership.HELD and startable(job, self.now)

    def _planned_later(self, job: SlurmJob) -> bool:
        return (job.start or 0.0) > self.now + START_S

    def _ours(self) -> list[SlurmJob]:
        """Return the waiting jobs that are handed over and have no nodes yet."""
        return [job for job in self._queue.ours.values() if job.id not in self._queue.placed]

    def _ownership(self, job: SlurmJob) -> tuple[Ownership, str]:
        return self._cache.standings.of(job, self.now) if job.id in self._queue.ours else NEIGHBOUR

    def _in_order(self) -> list[SlurmJob]:
        """Return our waiting jobs and those before the last of them that count against the same limits, in order."""
        jobs = self._ours()
        tier, *last = max(map(self.order, jobs), default=(-math.inf,))
        for _, group in self._rivals(self._queue.startable_of):
            its = self.order(next(iter(group.values())))[0]
            if its <= tier:
                jobs += [job for job in group.values() if its < tier or [-job.priority, job.id] < last]
        return sorted(jobs, key=self.order)

    def _rivals(self, groups: Mapping[Who, Mapping[int, SlurmJob]]) -> Iterator[tuple[Who, Mapping[int, SlurmJob]]]:
        """Yield those groups of jobs that are counted with a job of ours against a limit."""
        quota = self._quota_of_site()
        capped = {name for job in self._queue.ours.values() for name in quota.capped(job)}
        for who, group in groups.items() if capped else ():
            if not capped.isdisjoint(quota.capped(next(iter(group.values())))):
                yield who, group

    def _quota_of_site(self) -> Quota:
        site = self._site
        qos = {name: partition.qos for name, partition in site.partitions.items() if partition.qos}
        return self._cache.quota(site.limits if site.settings.limits else None, qos)

    def _quota(self) -> Quota:
        """Return the quota with all running and placed jobs counted; kept up to date by `place`."""
        if self._counted_quota is None:
            self._counted_quota = self._quota_of_site()
            for who, group in self._rivals(self._queue.placed_of):
                example = next(iter(group.values()))
                if not self._counted_quota.timed(example):
                    self._counted_quota.count_like(example, self._queue.used_of[who])
                    continue
                for job in sorted(group.values(), key=lambda job: job.id):
                    remaining_s = (job.end - self.now) if job.end is not None else (job.time_limit or math.inf)
                    self._counted_quota.count(job, max(0.0, remaining_s))
        return self._counted_quota

    def _future_occupancy(self) -> FutureOccupancy:
        """Return the future occupancy; the last one if nothing has changed that it was made of."""
        planned, ahead = list[PlannedStart](), list[QueuedAhead]()
        own_jobs = [job for job in self._ours() if self._startable(job, self._ownership(job)[0])]
        for job in sorted((*self._queue.planned.values(), *own_jobs), key=lambda job: job.id):
            if job.start is not None:  # a start that Slurm planned without naming nodes may be on any
                whole_nodes, where = self._whole(job) or not job.planned, job.planned or tuple(self._possible(job))
                order = self.order(job)
                planned.append(PlannedStart(job.id, order, where, job.start, job.cores, job.memory, whole_nodes))
        for job in (*self._queue.ahead(self._site.excluded.keys()), *(job for job in own_jobs if job.start is None)):
            ahead.append(QueuedAhead(job.id, self.order(job), self._possible(job)))
        names = {name for start in planned for name in start.nodes}
        sizes = {name: (node.cpus, node.memory) for name in names if (node := self._nodes.get(name))}
        occupied = [
            Occupation((name,), job.cores, job.memory, self._end(job))
            for name in names
            for job in self._capacity.jobs_on(name)
        ]
        occupied += [Occupation((name,), c, 0.0, self.now + span) for name, c, span in self.unseen() if name in names]
        made_of = sizes, occupied, planned, ahead, self._site.reservations
        last = self._cache.future
        if last is None or last[0] != made_of:
            canonical = self._node_lists.canonical
            last = self._cache.future = made_of, FutureOccupancy(self.now, *made_of, canonical=canonical)
        last[1].now = self.now
        return last[1]

    def _end(self, job: SlurmJob) -> float:
        """Return the latest end of a job that runs or was placed, epoch seconds."""
        limit = self.now + START_S + (job.time_limit or math.inf)
        return job.end if job.end is not None and job.state is not JobState.PENDING else limit

    def _possible(self, job: SlurmJob) -> frozenset[str]:
        unwanted = self._site.excluded.get(job.id, ()) or ()
        shape = ("possible", job.partition, job.features, job.wanted, job.nodes, unwanted)
        return self._node_lists.of(shape, lambda: node_constraints.possible(job, self._nodes.values(), unwanted))
