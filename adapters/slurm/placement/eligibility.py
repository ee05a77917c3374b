"""Where each job that was handed over may start now, and until when pilotfish may keep it.

Rule: pure. What Slurm would refuse, or what would delay a job that Slurm puts first, is no place; who has no place
waits, with the reason; what only Slurm understands, and what waits too long, is to be let go.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...simulate.platform import Cluster
from ...simulate.snapshot import JobState
from . import places, room
from .handover import Selection, Standing, Standings, is_held
from .limits import Limits
from .outlook import START_S, Ask, First, Hold, Order, Outlook, Planned, Window
from .partitions import Partition
from .places import Lists
from .quota import Quota
from .rarely import Site
from .records import SlurmJob, SlurmNode
from .rooms import Rooms
from .update import pin_of

#: reasons for which Slurm leaves a job waiting that it would otherwise start
STARTABLE = frozenset(("None", "", "Resources", "Priority", "Cleaning", "Reservation", "BeginTime"))
#: seconds for which cores are taken that no job which we see explains
UNSEEN_S = 30.0


@dataclass(frozen=True, slots=True)
class Deferral:
    """For how long pilotfish keeps jobs: at most `max_defer_s` after submission, and one pass of Slurm's backfill those
    that need `wide_nodes` or more (None: more than a quarter of their partition, and at least 2)."""

    max_defer_s: float = 3600.0
    wide_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """On a waiting job.

    Args:
        allowed: names of the nodes on which it may start.
        waits: why it must not start now, or "".
        cores: cores that it takes on each node.
        due: until when it is kept at most (epoch seconds), None: it is not pilotfish that keeps it.
        why: the reason to let it go then.
    """

    allowed: frozenset[str]
    waits: str
    cores: int
    due: float | None = None
    why: str = ""


class Memory:
    """What is kept from one picture of the queue to the next, so that only what has changed is judged anew.

    Args:
        since: when a job that waits for us alone was first seen to do so, epoch seconds, by its id.
    """

    def __init__(self, cluster: Cluster, selection: Selection) -> None:
        self.standings, self.rooms, self.lists = Standings(selection), Rooms(cluster), Lists()
        self.since: dict[int, float] = {}
        self._none = Limits()
        self._quota = Quota(self._none, {})

    def quota(self, limits: Limits | None, partition_qos: Mapping[str, str]) -> Quota:
        """By these limits, with nothing counted."""
        known, wanted = self._quota, self._none if limits is None else limits
        if known.limits is not wanted or known.partition_qos != partition_qos:
            self._quota = Quota(wanted, partition_qos)
        return self._quota.empty()

    def see(self, jobs: Iterable[SlurmJob], now: float) -> list[SlurmJob]:
        """Look at all jobs that wait, before another picture; returns those of ours."""
        for each in (self.lists, self.rooms, self._quota):
            each.age()
        found = [(job, self.standings.of(job, now)[0]) for job in jobs]
        self.since = {job.id: self.since.get(job.id, now) for job, what in found if what is Standing.HELD}
        return [job for job, what in found if what is not Standing.NEIGHBOUR]


class Chosen(tuple[Partition, ...]):
    """Partitions that a job may start in, with what is often asked of them together."""

    @cached_property
    def tier(self) -> int:
        """The highest."""
        return max((partition.tier for partition in self), default=1)

    @cached_property
    def size(self) -> int:
        """Nodes in all."""
        return len(frozenset[str]().union(*(partition.nodes for partition in self)))


class Judge:
    """Judges on one picture of the queue.

    Args:
        cluster: the nodes on which pilotfish may place jobs.
        memory: of the pictures before; of two judges that share one only the later may be asked.
    """

    def __init__(
        self,
        cluster: Cluster,
        nodes: Collection[SlurmNode],
        jobs: Collection[SlurmJob],
        memory: Memory,
        site: Site,
        now: float,
        deferral: Deferral,
    ) -> None:
        self._cluster, self._jobs, self._site, self.now, self._deferral = cluster, jobs, site, now, deferral
        self._memory, self._rooms, self._lists = memory, memory.rooms, memory.lists
        self._nodes = {node.name: node for node in nodes}
        self._placed = [(job, where) for job in jobs if (where := holds(job))]
        self._rooms.see(self._nodes, {each[0].id: each for each in self._placed}, site.partitions)
        self._chosen: dict[str, Chosen] = {}
        self._roomy_for: dict[object, frozenset[str]] = {}
        self._least: dict[frozenset[str], int] = {}
        self._unseen: list[tuple[str, int, float]] | None = None
        self._taken: Quota | None = None
        self._found: dict[int, Verdict] | None = None
        self._outlook = self._look_ahead()

    def verdicts(self) -> dict[int, Verdict]:
        """On every waiting job of ours, by id. Limits are given out in Slurm's order. O(jobs x nodes) at worst."""
        if self._found is not None:
            return self._found
        quota, found = self._quota().copy(), dict[int, Verdict]()
        waiting = [job for job in self._jobs if job.state is JobState.PENDING and not holds(job)]
        for job in sorted(waiting, key=self.order):
            what, why = self._memory.standings.of(job, self.now)
            if what is not Standing.NEIGHBOUR:
                found[job.id] = self._verdict(job, what, why, quota)
            ours = job.id in found and not found[job.id].waits and what is Standing.HELD
            if ours or (self._startable(job, what) and not self._later(job)):
                quota.count(job, job.time_limit or math.inf)
        self._found = found
        return found

    def verdict(self, job: SlurmJob, nodes: Collection[str]) -> Verdict:
        """On one job on no other nodes than these, beside all that runs and was placed."""
        what, why = self._memory.standings.of(job, self.now)
        return self._verdict(job, what, why, self._quota(), frozenset(nodes))

    def place(self, job: SlurmJob) -> None:
        """Count a job that was pinned since."""
        where, quota = holds(job), self._quota()
        self._jobs = [job if other.id == job.id else other for other in self._jobs]
        self._placed.append((job, where))
        self._rooms.place(job, where)
        quota.count(job, job.time_limit or math.inf)
        self._outlook.place(job.id, Hold(where, job.cores, job.memory, self._end(job)))
        self._found = self._unseen = None
        self._roomy_for.clear()

    def kind(self, job: SlurmJob) -> str:
        """By what it keeps apart from others: see `Job.apart`."""
        if self._whole(job):
            return f"alone {job.id}"
        return "sharing cores" if room.shares_cores(job, self._partitions(job)) else "with cores of their own"

    def order(self, job: SlurmJob) -> Order:
        """Its place in Slurm's queue."""
        return -self._partitions(job).tier, -job.priority, job.id

    def unseen(self) -> list[tuple[str, int, float]]:
        """Nodes with cores that are taken, but by no job that we see on them: name, cores, for how many seconds."""
        if self._unseen is not None:
            return self._unseen
        found = self._unseen = []
        uneven = {name: job for job, where in self._placed if job.cpus % max(1, job.nodes) for name in where}
        for name, cores in self._rooms.unseen():
            end = uneven[name].end if name in uneven else None
            found.append((name, cores, max(1.0, (end or self.now + UNSEEN_S) - self.now)))
        return found

    def _verdict(
        self, job: SlurmJob, what: Standing, why: str, quota: Quota, only: frozenset[str] | None = None
    ) -> Verdict:
        """`only`: judge on these nodes, not on all that the job may use."""
        base, never = self._base(job)
        whole = self._whole(job)
        cores = max(job.cores, self._least_cores(base)) if whole else job.cores
        due, reason = self._due(job, what, never)
        if what is Standing.WAITING:
            return Verdict(base, why, cores, due, reason)
        waits = never or self._unknown(job) or quota.obstacle(job, job.time_limit or math.inf)
        if not waits and what is Standing.FREE and self._later(job):
            waits = "Slurm has planned its start"
        if waits:
            return Verdict(frozenset(), waits, cores, due, reason)
        ask = Ask(self.order(job), job.time_limit or math.inf, cores, job.memory, whole)
        roomy = self._roomy(job, base) if only is None else self._rooms.fit(job, base & only)
        left, blocked = self._outlook.open(ask, roomy)
        if len(left) < job.nodes and len(base) >= job.nodes:
            waits = blocked or f"{len(roomy)} of the nodes that it may use have room for it, it needs {job.nodes}"
        return Verdict(left, waits, cores, due, reason)

    def _least_cores(self, base: frozenset[str]) -> int:
        """Of the smallest of these nodes."""
        if base not in self._least:
            sizes = [node.type.cores for node in self._cluster.nodes if node.name in base]
            self._least[base] = min(sizes, default=1)
        return self._least[base]

    def _base(self, job: SlurmJob) -> tuple[frozenset[str], str]:
        """The nodes that it may ever use, and why there are none."""
        chosen = self._partitions(job)
        refusals = [reason for partition in chosen if (reason := partition.obstacle(job))]
        if refusals and len(refusals) == len(chosen):
            return frozenset(), refusals[0]
        if job.wanted and len(job.wanted) != job.nodes:
            return frozenset(), "its user names more or fewer nodes than it asks for: which, is left to Slurm"
        unwanted = self._site.excluded.get(job.id, ())
        shape = (job.partition, job.features, job.wanted, job.nodes, unwanted)
        known = self._cluster.index
        found = self._lists.of(shape, lambda: places.allowed(job, self._nodes.values(), unwanted).intersection(known))
        return found, "" if len(found) >= job.nodes else "too few of the nodes that pilotfish knows may run it"

    def _unknown(self, job: SlurmJob) -> str:
        site = self._site
        if site.missing:
            return f"Slurm's {min(site.missing)} are not read yet"
        if job.id not in site.covered:
            return "the nodes that it excludes are not read yet"
        return "its limits are not read yet" if site.settings.limits and not site.limits.knows(job) else ""

    def _roomy(self, job: SlurmJob, base: frozenset[str]) -> frozenset[str]:
        """Those of its nodes that have room for it by Slurm's rules of sharing."""
        shape = (job.partition, job.cores, job.memory, job.shares, base)
        if shape not in self._roomy_for:
            self._roomy_for[shape] = self._lists.one(self._rooms.fitting(job, base))
        return self._roomy_for[shape]

    def _whole(self, job: SlurmJob) -> bool:
        return room.alone(job, self._partitions(job))

    def _partitions(self, job: SlurmJob) -> Chosen:
        found = self._chosen.get(job.partition)
        if found is None:
            known = self._site.partitions
            found = Chosen(known[name] for name in job.partition.split(",") if name in known)
            self._chosen[job.partition] = found
        return found

    def _due(self, job: SlurmJob, what: Standing, never: str) -> tuple[float | None, str]:
        if job.submit is None or not (what is Standing.HELD or is_held(job, self.now)):
            return None, ""
        longest = self._deferral.max_defer_s
        found = (job.submit + longest, f"it has waited for {longest:g} s, the longest time that pilotfish keeps a job")
        if job.special or (never and not self._site.missing and not self._unknown(job)):
            return job.submit, never or f"it asks for {job.special}, which is left to Slurm"
        if what is Standing.HELD and self.is_wide(job):
            pause = self._site.settings.backfill_s
            why = f"it needs {job.nodes} nodes and did not fit within {pause:g} s: Slurm reserves them"
            return min(found, (self._memory.since.get(job.id, job.submit) + pause, why))
        return found

    def is_wide(self, job: SlurmJob) -> bool:
        """Whether the job needs so many nodes that only a reservation of Slurm's brings them together."""
        if self._deferral.wide_nodes is not None:
            return job.nodes >= self._deferral.wide_nodes
        return job.nodes >= 2 and 4 * job.nodes > self._partitions(job).size > 0

    def _startable(self, job: SlurmJob, what: Standing) -> bool:
        """Whether Slurm itself starts the job as soon as there is room for it."""
        if job.priority <= 0 or job.dependency or what is Standing.HELD or (job.begin or 0.0) > self.now:
            return False
        reason = job.reason.split(",")[0]
        return reason in STARTABLE or job.start is not None

    def _later(self, job: SlurmJob) -> bool:
        return (job.start or 0.0) > self.now + START_S

    def _quota(self) -> Quota:
        """What runs, and was placed, counted; kept up to date by `place`."""
        if self._taken is None:
            site = self._site
            self._taken = self._memory.quota(site.limits if site.settings.limits else None, _qos_of(site))
            for job, _ in self._placed:
                left = (job.end - self.now) if job.end is not None else (job.time_limit or math.inf)
                self._taken.count(job, max(0.0, left))
        return self._taken

    def _look_ahead(self) -> Outlook:
        sizes = {node.name: (node.cpus, node.memory) for node in self._nodes.values()}
        holds_, planned, first = list[Hold](), list[Planned](), list[First]()
        for job, where in self._placed:
            holds_.append(Hold(where, job.cores, job.memory, self._end(job)))
        for name, cores, span in self.unseen():
            holds_.append(Hold((name,), cores, 0.0, self.now + span))
        for job in self._jobs:
            if job.state is not JobState.PENDING or holds(job):
                continue
            if not self._startable(job, self._memory.standings.of(job, self.now)[0]):
                continue
            order = self.order(job)
            if job.start is not None:  # where it is not told on which nodes, it may be on any
                whole, where = self._whole(job) or not job.planned, job.planned or tuple(self._possible(job))
                planned.append(Planned(job.id, order, where, job.start, job.cores, job.memory, whole))
            else:
                first.append(First(job.id, order, self._possible(job)))
        windows = [Window(r.name, r.nodes, r.start, r.end) for r in self._site.reservations]
        return Outlook(self.now, sizes, holds_, planned, first, windows, one=self._lists.one)

    def _end(self, job: SlurmJob) -> float:
        """When a job that runs, or was placed, ends at the latest, epoch seconds."""
        limit = self.now + START_S + (job.time_limit or math.inf)
        return job.end if job.end is not None and job.state is not JobState.PENDING else limit

    def _possible(self, job: SlurmJob) -> frozenset[str]:
        unwanted = self._site.excluded.get(job.id, ())
        shape = ("possible", job.partition, job.features, job.wanted, job.nodes, unwanted)
        return self._lists.of(shape, lambda: places.possible(job, self._nodes.values(), unwanted))


def holds(job: SlurmJob) -> tuple[str, ...]:
    """The nodes that a job has, or is pinned to by us and about to start on."""
    if job.state is JobState.PENDING:
        return job.wanted if job.wanted and pin_of(job) else ()
    return () if job.state.ended else job.placed


def _qos_of(site: Site) -> Mapping[str, str]:
    return {name: partition.qos for name, partition in site.partitions.items() if partition.qos}
