"""Slurm's nodes and jobs in plain Python: what a job asks for, what runs, and what is free.

Rule: nothing is kept that can be computed: what is free on a node is its size less what all running jobs have there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotfish.simulate.slurm.site import Site, SiteJob, SitePartition

#: A time limit where nothing names one, minutes.
YEAR_MIN = 365 * 24 * 60


class Share(NamedTuple):
    """What a job has on one node; memory in MiB."""

    cores: int
    cpus: int
    memory: int
    gpus: int


@dataclass(eq=False)
class Job:
    """A job or a task of an array; times are whole seconds, limits minutes."""

    number: int
    asked: SiteJob
    parts: tuple[SitePartition, ...]  # of which it may use one, by tier
    limit: int
    memory: int  # MiB per CPU if `is_per_cpu`, else per node; 0: all memory of a node
    is_per_cpu: bool
    most_nodes: int | None = None  # by MaxTRES of its QOS, else of its association
    state: str = "future"  # then pending, running, completing, ended
    priority: dict[str, int] = field(default_factory=dict)  # by partition
    begin: int | None = None  # since when it is eligible
    start: int = 0
    part: str = ""
    shares: dict[int, Share] = field(default_factory=dict)
    ended: int = 0  # when its run was over
    expected: int | None = None  # its planned start, of the last backfill pass
    is_limited: bool = False  # whether a limit stopped it in the last main pass that tested it

    @property
    def until(self) -> int:
        """The hard end of its run, by its limit."""
        return self.start + 60 * self.limit

    @property
    def want_nodes(self) -> int:
        """How many nodes it aims at: the upper bound of a range."""
        return max(self.asked.min_nodes, self.asked.max_nodes or 0)

    @property
    def cpus(self) -> int:
        """How many CPUs it needs."""
        return max(self.asked.min_cpus, self.asked.tasks * self.asked.cpus_per_task, self.asked.min_nodes)

    @property
    def least_cpus(self) -> int:
        """How many CPUs it needs on each of its nodes."""
        return (self.asked.tasks_per_node or 1) * self.asked.cpus_per_task

    @property
    def key(self) -> tuple[int, int]:
        """The id of its array, or its own, and its task."""
        return int(self.asked.array or self.asked.id), self.asked.task


class Machine:
    """A site at one moment."""

    def __init__(self, site: Site) -> None:
        self.order_keys = dict[int, float]()  # of the jobs that something else than Slurm orders
        self.hold_s = 0.0  # how long after its submission such a job is held
        self.released = set[int]()  # those of them that were released before, because others would pass them
        self.site, self.now = site, 0
        self.nodes = range(len(site.nodes))
        self.rank = {node.name: index for index, node in enumerate(site.nodes)}
        self.drained = {index for index, node in enumerate(site.nodes) if not node.works}
        self.jobs = [_job(site, number, entry) for number, entry in enumerate(site.jobs)]

    def running(self) -> list[Job]:
        """Return the running jobs."""
        return [job for job in self.jobs if job.state == "running"]

    def completing_nodes(self) -> set[int]:
        """Return the nodes on which the epilog of a job has not ended."""
        return {node for job in self.jobs if job.state == "completing" for node in job.shares}

    def part_nodes(self, part: SitePartition) -> set[int]:
        """Return the nodes of a partition."""
        return {self.rank[name] for name in part.nodes}

    def is_whole(self, job: Job, part: SitePartition) -> bool:
        """Return whether a job takes whole nodes in a partition."""
        return job.asked.is_exclusive or part.is_exclusive or self.site.rules.selects == "nodes"

    def allowed_nodes(self, job: Job) -> set[int]:
        """Return the nodes with the features of a job that it does not exclude."""
        nodes = set(self.nodes)
        if job.asked.constraint:
            options = [set(option.split("&")) for option in job.asked.constraint.split("|")]
            nodes = {node for node in nodes if any(o <= set(self.site.nodes[node].features) for o in options)}
        return nodes - {self.rank[name] for name in job.asked.excluded_nodes}

    def named_nodes(self, job: Job) -> set[int]:
        """Return the nodes that a job must have."""
        return {self.rank[name] for name in job.asked.required_nodes}

    def usable_cpus(self, job: Job, part: SitePartition, node: int, present: Sequence[Job]) -> int:
        """Return how many CPUs of a node a job could have while the jobs `present` run; 0 if it cannot use the node.

        They are whole tasks only where memory is by CPU; the recordings say so.
        """
        size, others = self.site.nodes[node], [other.shares[node] for other in present if node in other.shares]
        is_whole = self.is_whole(job, part)
        if (is_whole and others) or size.gpus - sum(share.gpus for share in others) < job.asked.gpus_per_node:
            return 0
        cpus = (size.cores - sum(share.cores for share in others)) * size.threads
        if part.max_cpus_per_node is not None:
            same = (other.shares[node].cpus for other in present if node in other.shares and other.part == part.name)
            cpus = max(min(cpus, part.max_cpus_per_node - sum(same)), 0)
        if self.site.rules.counts_memory:
            memory = size.memory_mib - sum(share.memory for share in others)
            if job.memory == 0 and not job.is_per_cpu and any(share.memory for share in others):
                return 0
            if job.is_per_cpu:
                while cpus > 0 and job.memory * cpus > memory:
                    cpus = 0 if is_whole else cpus - size.threads
                cpus -= cpus % job.asked.cpus_per_task
            elif job.memory > memory:
                return 0
        least = job.least_cpus
        if job.asked.max_nodes == 1:
            least = max(least, job.asked.tasks * job.asked.cpus_per_task)
        if cpus < least:
            return 0
        return least if job.asked.tasks_per_node and not is_whole else cpus

    def share(self, job: Job, part: SitePartition, node: int, cpus: int) -> Share:
        """Return what a job gets on a node on which it is to have so many CPUs."""
        size = self.site.nodes[node]
        cores = size.cores if self.is_whole(job, part) else -(-cpus // size.threads)
        memory = 0
        if self.site.rules.counts_memory:
            memory = job.memory * cores * size.threads if job.is_per_cpu else job.memory or size.memory_mib
        gpus = size.gpus if self.is_whole(job, part) else job.asked.gpus_per_node
        return Share(cores, cores * size.threads, memory, gpus)


def _job(site: Site, number: int, asked: SiteJob) -> Job:
    """Return a job with the limit and memory that its partition and the site give where it names none."""
    by_name = {part.name: part for part in site.partitions}
    parts = [by_name[name] for name in asked.partitions] or [part for part in site.partitions if part.is_default]
    parts.sort(key=lambda part: -part.tier)
    limit = asked.limit_min
    for value in (parts[0].default_time_min, parts[0].max_time_min, YEAR_MIN):
        limit = value if limit is None else limit
    assert limit is not None
    for per_node, per_cpu in (
        (asked.memory_per_node_mib, asked.memory_per_cpu_mib or None),
        (parts[0].default_memory_per_node_mib, parts[0].default_memory_per_cpu_mib),
        (site.rules.default_memory_per_node_mib, site.rules.default_memory_per_cpu_mib),
        (0, None),
    ):
        if per_cpu is not None or per_node is not None:
            break
    memory = per_node if per_cpu is None else per_cpu
    return Job(number, asked, tuple(parts), limit, memory or 0, per_cpu is not None, _most_nodes(site, asked))


def _most_nodes(site: Site, asked: SiteJob) -> int | None:
    """Return how many nodes the limits let a job have."""
    qos = [one.limits.max_tres for one in site.qos if one.name == (asked.qos or "normal")]
    users = [one.limits.max_tres for one in site.associations if (one.account, one.user) == (asked.account, asked.user)]
    bounds = [int(amounts["node"]) for amounts in (*qos, *users) if "node" in amounts]
    return bounds[0] if bounds and site.rules.enforces_limits else None
