"""Allocations of Slurm, which may be more than a job asks for: whole cores, sockets or nodes.

Rule: pure. Source: slurm.conf, `SelectType` and `SelectTypeParameters`; CPUs of one core are never those of two jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import Enum

from ...simulate.model.snapshot import JobState
from .records import SlurmJob, SlurmNode


class AllocationUnit(Enum):
    """The least that a job gets of a node."""

    CORE = "core"
    SOCKET = "socket"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class AllocationRules:
    """Allocations as the controller's settings have them."""

    unit: AllocationUnit = AllocationUnit.CORE
    counts_memory: bool = True  #: whether memory is allocated to jobs
    one_task_per_core: bool = False  #: whether no two tasks share a core

    @classmethod
    def of(cls, plugin: str, parameters: str | None) -> AllocationRules:
        """Return the rules of `SelectType` and `SelectTypeParameters`; "" and None if they are not known."""
        words = (parameters or "").upper()
        unit = AllocationUnit.NODE if plugin.lower().endswith("linear") else _unit(words)
        return cls(unit, parameters is None or "MEMORY" in words, "CR_ONE_TASK_PER_CORE" in words)


@dataclass(frozen=True, slots=True)
class SystemShare:
    """CPUs and bytes of a node that no job gets: `CoreSpecCount`, `CPUSpecList` and `MemSpecLimit`."""

    cpus: int = 0
    memory: float = 0.0

    def without(self, node: SlurmNode) -> SlurmNode:
        """Return the node as jobs may use it."""
        idle = None if node.idle is None else max(0, node.idle - self.cpus)
        free = None if node.free is None else max(0.0, node.free - self.memory)
        cpus, memory = max(0, node.cpus - self.cpus), max(0.0, node.memory - self.memory)
        return replace(node, cpus=cpus, memory=memory, idle=idle, free=free)


NO_SHARE = SystemShare()


def usable(nodes: list[SlurmNode], shares: Mapping[str, SystemShare]) -> list[SlurmNode]:
    """Return nodes as jobs may use them, the same list where nothing is kept; `shares`: node -> what is kept there."""
    if not shares:
        return nodes
    return [shares[node.name].without(node) if node.name in shares else node for node in nodes]


@dataclass(frozen=True, slots=True)
class Shape:
    """CPUs of a node's cores and of the units of its allocations, and how many sockets are such units."""

    core: int = 1
    unit: int = 1
    sockets: int = 1

    def cpus(self, job: SlurmJob, *, one_task_per_core: bool) -> int:
        """Return the CPUs that a waiting job gets on a node of this shape."""
        cpus, tasks = job.cores, -(-job.cores // job.per_task)
        if job.own_core == "cpu":
            cpus *= self.core
        elif job.own_core == "task" or one_task_per_core:
            cpus = tasks * _rounded(job.per_task, self.core)
        return max(_rounded(cpus, self.unit), min(tasks, self.sockets) * self.unit)  # tasks go round the sockets


@dataclass(frozen=True, slots=True)
class SiteAllocation:
    """The rules, and the shapes of the nodes of each partition."""

    rules: AllocationRules = field(default_factory=AllocationRules)
    shapes: Mapping[str, Set[Shape]] = field(default_factory=dict)

    @classmethod
    def on(cls, nodes: Iterable[SlurmNode], rules: AllocationRules, parameters: Mapping[str, str]) -> SiteAllocation:
        """Return the rules on these nodes. O(nodes x partitions).

        Args:
            nodes: of the site.
            rules: of the site.
            parameters: partition -> its own `SelectTypeParameters`, "" if it has none.
        """
        shapes = defaultdict[str, set[Shape]](set)
        for node in nodes:
            by_core, by_socket = Shape(node.core, node.core), Shape(node.core, node.socket, node.cpus // node.socket)
            for partition in node.partitions:
                words = parameters.get(partition, "")
                unit = _unit(words) if words else rules.unit
                shapes[partition].add(by_socket if unit is AllocationUnit.SOCKET else by_core)
        return cls(rules, shapes)

    def of(self, job: SlurmJob) -> SlurmJob:
        """Return a job as it was read, with what Slurm allocates to it; where nodes differ, the most that it may get.

        A running job shows its CPUs itself.
        """
        if not self.rules.counts_memory:  # one that asks for none shows that of its whole nodes
            least = job.memory if job.asks_memory else 0.0
            job = replace(job, memory=0.0, memory_per_cpu=0.0, least_memory=least)
        if self.rules.unit is AllocationUnit.NODE:
            job = replace(job, shares="NO")
        if job.state is not JobState.PENDING:
            return job
        shapes = {shape for name in job.partition.split(",") for shape in self.shapes.get(name, ())}
        one_task = self.rules.one_task_per_core
        cpus = max((shape.cpus(job, one_task_per_core=one_task) for shape in shapes), default=job.cores)
        return job if cpus == job.cores else replace(job, threads=cpus, memory=job.memory_per_cpu * cpus or job.memory)


def _unit(parameters: str) -> AllocationUnit:
    return AllocationUnit.SOCKET if "CR_SOCKET" in parameters.upper() else AllocationUnit.CORE


def _rounded(cpus: int, unit: int) -> int:
    return -(-cpus // unit) * unit
