"""What is taken on each node, and which nodes have room for a job, kept from one picture of the queue to the next.

Rule: nodes that differ in nothing that decides about room are judged together, once; only nodes whose jobs have changed
are counted anew. The rule itself is `room.obstacle`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from ...simulate.platform import Cluster
from ...simulate.snapshot import NodeState
from . import room
from .partitions import Partition
from .records import SlurmJob, SlurmNode

EMPTY = room.Load()
#: kinds of nodes that are remembered for each node
REMEMBERED = 4


class Rooms:
    """The nodes of one cluster, with the jobs on them."""

    def __init__(self, cluster: Cluster) -> None:
        self._sizes = {node.name: node.type.cores for node in cluster.nodes}
        self._loose = cluster.oversubscription > 1
        self._partitions: Mapping[str, Partition] = {}
        self._nodes: dict[str, SlurmNode] = {}
        self._placed: dict[int, tuple[SlurmJob, tuple[str, ...]]] = {}
        self._there: dict[str, dict[int, SlurmJob]] = defaultdict(dict)
        self._loads: dict[str, room.Load] = {}
        self._keys: dict[str, object] = {}
        self._kinds: dict[object, int] = {}
        self._fits: dict[object, dict[int, bool]] = defaultdict(dict)
        self._groups: dict[int, list[str]] | None = None

    def see(
        self,
        nodes: Mapping[str, SlurmNode],
        placed: Mapping[int, tuple[SlurmJob, tuple[str, ...]]],
        partitions: Mapping[str, Partition],
    ) -> None:
        """Another picture. O(nodes + jobs that started or ended)."""
        if partitions != self._partitions or len(self._kinds) > REMEMBERED * max(1, len(nodes)):
            self._placed, self._fits = {}, defaultdict(dict)
            self._there, self._loads, self._keys, self._kinds = defaultdict(dict), {}, {}, {}
        self._nodes, self._partitions = dict(nodes), partitions
        self._count(dict(placed))

    def place(self, job: SlurmJob, where: tuple[str, ...]) -> None:
        """One job more."""
        self._count(self._placed | {job.id: (job, where)})

    def _count(self, placed: dict[int, tuple[SlurmJob, tuple[str, ...]]]) -> None:
        touched = set[str]()
        for number, known in self._placed.items():
            if placed.get(number) != known:
                for name in known[1]:
                    self._there[name].pop(number, None)
                    touched.add(name)
        for number, (job, where) in placed.items():
            if self._placed.get(number) != (job, where):
                for name in where:
                    self._there[name][number] = job
                    touched.add(name)
        for name in touched:
            self._loads[name] = found = room.load(self._there[name].values(), self._partitions)
            self._keys[name] = found.key()
        self._placed, self._groups = placed, None

    def fitting(self, job: SlurmJob, names: Collection[str]) -> frozenset[str]:
        """Those of the nodes that have room for the job now. O(kinds of nodes + nodes found)."""
        known = self._fits[job.partition, job.cores, job.memory, job.shares]
        found = list[str]()
        for kind, alike in self._alike().items():
            fits = known.get(kind)
            if fits is None:
                fits = known[kind] = not self._obstacle(job, alike[0])
            if fits:
                found += alike
        return frozenset(names).intersection(found)

    def fit(self, job: SlurmJob, names: Iterable[str]) -> frozenset[str]:
        """The same of a few nodes. O(nodes)."""
        return frozenset(name for name in names if not self._obstacle(job, name))

    def unseen(self) -> list[tuple[str, int]]:
        """Nodes with cores that are taken, but by no job that we see on them, and how many."""
        found = []
        for alike in self._alike().values():
            name = alike[0]
            size = self._sizes.get(name)
            if size is None or (node := self._nodes[name]).state is not NodeState.UP:
                continue
            if cores := room.unseen_cores(size, node, self._loads.get(name, EMPTY)):
                found += [(name, cores) for name in alike]
        return sorted(found)

    def _obstacle(self, job: SlurmJob, name: str) -> str:
        load = self._loads.get(name, EMPTY)
        return room.obstacle(job, self._nodes[name], load, self._partitions, loose=self._loose)

    def _alike(self) -> dict[int, list[str]]:
        """The nodes by their kind."""
        if self._groups is None:
            groups, kinds = defaultdict[int, list[str]](list), self._kinds
            for name, node in self._nodes.items():
                up = node.state is NodeState.UP
                key = node.cpus, node.memory, node.idle, node.free, up, self._sizes.get(name), self._keys.get(name)
                groups[kinds.setdefault(key, len(kinds))].append(name)
            self._groups = groups
        return self._groups
