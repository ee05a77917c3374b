"""Node capacity: which nodes have room for a job now. Slurm's nodes and jobs are put in the terms of the capacity rule.

Rule: pure, and conservative. The capacity rule that policies use decides about cores, memory and who shares a node.
Only rows of shared cores and a partition's limit of cores on a node are Slurm's own. Cores are shared only in
partitions with OverSubscribe=FORCE:N, where N jobs of the partition may share a core. Nodes that are equal in all that
decides are examined once for all equal jobs, and only nodes whose jobs changed are counted again.
Source: slurm.conf(5), OverSubscribe; behaviour of select/cons_tres of Slurm 22.05.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ....simulate.model.capacity import SLACK, shortage
from ....simulate.model.cluster import Cluster
from ....simulate.model.snapshot import NodeState
from ..cache import TwoGenerationCache
from ..records import SlurmJob, SlurmNode
from .partitions import CoreSharing, Partition, of_job
from .queue_state import QueueState


class NodeSharing(StrEnum):
    """The ways in which a job shares its nodes; jobs of different values share no node (see `Job.apart`)."""

    ALONE = "alone"
    CORES = "sharing cores"
    NODES = "with cores of their own"


@dataclass(slots=True)
class NodeLoad:
    """Resources that jobs take on a node."""

    cores: int = 0  #: cores in all
    memory: float = 0.0  #: bytes
    jobs: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  #: partition -> cores of each job
    kinds: set[NodeSharing] = field(default_factory=set)

    def key(self) -> object:
        """Return a key that is equal for equal loads."""
        jobs = tuple((name, tuple(sorted(cores))) for name, cores in sorted(self.jobs.items()) if cores)
        return self.cores, self.memory, jobs, frozenset(self.kinds)


def node_load(jobs: Iterable[SlurmJob], partitions: Mapping[str, Partition]) -> NodeLoad:
    """Return what these jobs take together on a node. O(jobs)."""
    load = NodeLoad()
    for job in jobs:
        load.cores += job.cores
        load.memory += job.memory
        load.jobs[job.partition].append(job.cores)
        load.kinds.add(sharing_of(job, of_job(job, partitions)))
    return load


def sharing_of(job: SlurmJob, partitions: Iterable[Partition]) -> NodeSharing:
    """Return how the job shares its nodes; ALONE also if it may have to in one of these partitions."""
    kinds = {partition.sharing for partition in partitions}
    if job.shares not in ("", "OK", "YES") or CoreSharing.EXCLUSIVE in kinds:
        return NodeSharing.ALONE
    shared = CoreSharing.FORCE in kinds or (CoreSharing.YES in kinds and job.shares == "YES")
    return NodeSharing.CORES if shared else NodeSharing.NODES


def unseen_cores(cores: int, node: SlurmNode, node_load: NodeLoad) -> int:
    """Return how many of a node's `cores` Slurm has allocated to no visible job."""
    return 0 if node.idle is None else max(0, cores - node.idle - node_load.cores)


def obstacle(
    job: SlurmJob, node: SlurmNode, node_load: NodeLoad, partitions: Mapping[str, Partition], *, oversubscribed: bool
) -> str:
    """Return why the node has no room for the job now, or "".

    Args:
        job: The job.
        node: The node.
        node_load: What jobs take on it.
        partitions: All partitions.
        oversubscribed: The cluster's own limit on cores is above Slurm's, so a full node is reported here. Otherwise
            that limit reports it, now and in the forecast of free cores.
    """
    chosen = of_job(job, partitions)
    sharing, unseen = sharing_of(job, chosen), unseen_cores(node.cpus, node, node_load)
    needs_all, in_row = (
        sharing is NodeSharing.ALONE,
        all(p.sharing is CoreSharing.FORCE for p in chosen) and bool(chosen),
    )
    hidden = node.free is not None and node.memory - node.free > node_load.memory * (1 + SLACK)
    reason = shortage(
        node.name,
        node_load.cores + unseen + (node.cpus if needs_all else job.cores),
        node.cpus if needs_all or (oversubscribed and not in_row) else math.inf,
        job.memory,
        node.free if hidden and node.free is not None else node.memory,
        kind=sharing,
        others=node_load.kinds,
    )
    if reason or needs_all:
        return reason or ""
    if any(p.node_cpus is not None and sum(node_load.jobs.get(p.name, ())) + job.cores > p.node_cpus for p in chosen):
        return f"the partition may not use more cores of {node.name}"
    if not in_row:
        return ""
    job_sizes = [cores for partition in chosen for cores in node_load.jobs.get(partition.name, ())]
    shared_cores, rows = node.cpus - (node_load.cores - sum(job_sizes)) - unseen, min(p.rows for p in chosen)
    return "" if in_rows([*job_sizes, job.cores], shared_cores, rows) else f"{node.name} has no row of cores free"


def in_rows(sizes: Iterable[int], cores: int, rows: int) -> bool:
    """Return whether jobs of these sizes fit `rows` rows of `cores` cores: first fit, largest job first."""
    free_cores = [cores] * rows
    for size in sorted(sizes, reverse=True):
        row = next((i for i, room in enumerate(free_cores) if room >= size), None)
        if row is None:
            return False
        free_cores[row] -= size
    return True


@dataclass(slots=True)
class _FittingNodes:
    """The nodes that have room for jobs of a shape, after the first `upto` changes of nodes; -1: never asked for."""

    nodes: frozenset[str] = frozenset()
    upto: int = -1


EMPTY = NodeLoad()
#: Kinds of nodes that are remembered, per node.
KINDS_PER_NODE = 4


class NodeCapacity:
    """The load on each node of a cluster, kept from one snapshot of the queue to the next."""

    def __init__(self, cluster: Cluster) -> None:
        self._sizes = {node.name: node.type.cores for node in cluster.nodes}
        self._oversubscribed = cluster.oversubscription > 1
        self._partitions: Mapping[str, Partition] = {}
        self._nodes: Mapping[str, SlurmNode] = {}
        self._placed: dict[int, tuple[str, ...]] = {}
        self._jobs_by_node: dict[str, dict[int, SlurmJob]] = defaultdict(dict)
        self._loads: dict[str, NodeLoad] = {}
        self._unseen: dict[str, int] = {}
        self._forget()

    def _forget(self) -> None:
        """Forget the kinds of nodes, and what fits them."""
        self._kinds: dict[object, int] = {}
        self._kind_of: dict[str, int] = {}
        self._fits = TwoGenerationCache[object, dict[int, bool]]()
        self._fitting_nodes = TwoGenerationCache[object, _FittingNodes]()
        self._changed: list[str] = []  # nodes in the order in which they changed

    def update(self, nodes: Mapping[str, SlurmNode], queue: QueueState, partitions: Mapping[str, Partition]) -> None:
        """Take the next snapshot: nodes by name, the queue, partitions by name.

        O(nodes of moved jobs), plus O(nodes) if they changed, and O(jobs) if partitions changed.
        """
        touched = set[str]()
        for number in queue.moved:
            job, where = queue.placed.get(number, (None, ()))
            for name in self._placed.pop(number, ()):
                del self._jobs_by_node[name][number]
                touched.add(name)
            for name in where:
                self._jobs_by_node[name][number] = job  # type: ignore[assignment]
                touched.add(name)
            if job is not None:
                self._placed[number] = where
        queue.moved.clear()
        last_nodes = self._nodes
        if nodes is not last_nodes:
            touched |= {name for name, node in nodes.items() if last_nodes.get(name) is not node}
            touched |= last_nodes.keys() - nodes.keys()
        if partitions is not self._partitions and partitions != self._partitions:
            self._forget()
            touched |= nodes.keys() | self._jobs_by_node.keys()
        if len(self._kinds) + len(self._changed) // 8 > KINDS_PER_NODE * max(1, len(nodes)):
            self._forget()
            touched |= nodes.keys()
        self._nodes, self._partitions = nodes, partitions
        for name in touched:
            self._count(name)
        self._changed += touched

    def _count(self, name: str) -> None:
        """Count what jobs take on a node, and of what kind it is."""
        load = None
        if self._jobs_by_node.get(name):
            load = self._loads[name] = node_load(self.jobs_on(name), self._partitions)
        else:
            self._jobs_by_node.pop(name, None)
            self._loads.pop(name, None)
        self._unseen.pop(name, None)
        self._kind_of.pop(name, None)
        if node := self._nodes.get(name):
            up, load_key = node.state is NodeState.UP, load and load.key()
            key = node.cpus, node.memory, node.idle, node.free, up, self._sizes.get(name), load_key
            self._kind_of[name] = self._kinds.setdefault(key, len(self._kinds))
            size = self._sizes.get(name)
            if up and size is not None and (cores := unseen_cores(size, node, load or EMPTY)):
                self._unseen[name] = cores

    def age(self) -> None:
        """Drop shapes of jobs that were not used since the last call."""
        self._fits.age()
        self._fitting_nodes.age()

    def jobs_on(self, name: str) -> list[SlurmJob]:
        """Return the jobs that have a node, by id."""
        return sorted(self._jobs_by_node.get(name, {}).values(), key=lambda job: job.id)

    def fitting(self, job: SlurmJob, names: frozenset[str]) -> frozenset[str]:
        """Return those of the nodes that have room for the job now. O(nodes that changed since it was last asked)."""
        shape = job.partition, job.cores, job.memory, job.shares
        answers = self._fits.get(shape, dict[int, bool])
        fit = self._fitting_nodes.get((shape, names), _FittingNodes)
        changed = names if fit.upto < 0 else names.intersection(self._changed[fit.upto :])
        fit.upto = len(self._changed)
        room = frozenset(name for name in changed if self._fit(job, name, answers))
        if not (room <= fit.nodes and fit.nodes.isdisjoint(changed - room)):
            fit.nodes = (fit.nodes - changed) | room
        return fit.nodes

    def _fit(self, job: SlurmJob, name: str, answers: dict[int, bool]) -> bool:
        kind = self._kind_of.get(name)
        if kind is None:
            return False
        if kind not in answers:
            answers[kind] = not self._obstacle(job, name)
        return answers[kind]

    def fitting_among(self, job: SlurmJob, names: Iterable[str]) -> frozenset[str]:
        """Return those of a few nodes that have room for the job now. O(nodes)."""
        return frozenset(name for name in names if not self._obstacle(job, name))

    def unseen(self) -> list[tuple[str, int]]:
        """Return nodes with cores that are allocated to no visible job, and how many."""
        return sorted(self._unseen.items())

    def _obstacle(self, job: SlurmJob, name: str) -> str:
        node_load = self._loads.get(name, EMPTY)
        return obstacle(job, self._nodes[name], node_load, self._partitions, oversubscribed=self._oversubscribed)
