"""What is taken on each node, and which nodes have room for a job, kept from one picture of the queue to the next.

Rule: nodes that differ in nothing that decides about room are judged together, once for all jobs that differ in nothing
that does; only nodes whose jobs have changed are counted anew. The rule itself is `room.obstacle`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from ...simulate.platform import Cluster
from ...simulate.snapshot import NodeState
from . import room
from .lasting import Lasting
from .partitions import Partition
from .records import SlurmJob, SlurmNode

EMPTY = room.Load()
#: kinds of nodes that are remembered for each node that there is
REMEMBERED = 4


class Rooms:
    """The nodes of one cluster, with the jobs on them."""

    def __init__(self, cluster: Cluster) -> None:
        self._sizes = {node.name: node.type.cores for node in cluster.nodes}
        self._loose = cluster.oversubscription > 1
        self._partitions: Mapping[str, Partition] = {}
        self._nodes: Mapping[str, SlurmNode] = {}
        self._placed: dict[int, tuple[SlurmJob, tuple[str, ...]]] = {}
        self._there: dict[str, dict[int, SlurmJob]] = defaultdict(dict)
        self._loads: dict[str, room.Load] = {}
        self._keys: dict[str, object] = {}
        self._kinds: dict[object, int] = {}
        self._fits = Lasting[object, dict[int, bool]]()
        self._groups: dict[int, list[str]] | None = None

    def see(
        self,
        nodes: Mapping[str, SlurmNode],
        placed: Mapping[int, tuple[SlurmJob, tuple[str, ...]]],
        partitions: Mapping[str, Partition],
    ) -> None:
        """Another picture. O(jobs), and what changed: the nodes of jobs that started or ended, of all jobs where
        partitions did."""
        if partitions != self._partitions:
            self._placed, self._there, self._loads, self._keys = {}, defaultdict(dict), {}, {}
        if partitions != self._partitions or len(self._kinds) > REMEMBERED * max(1, len(nodes)):
            self._kinds, self._fits = {}, Lasting()
        self._nodes, self._partitions = nodes, partitions
        new = {number: each for number, each in placed.items() if self._placed.get(number) != each}
        self._count([number for number in self._placed if number not in placed or number in new], new)
        self._placed = dict(placed)  # as it was counted, and not a second time beside the caller's

    def place(self, job: SlurmJob, where: tuple[str, ...]) -> None:
        """One job more, or elsewhere. O(jobs on its nodes)."""
        self._count([job.id] if job.id in self._placed else [], {job.id: (job, where)})

    def age(self) -> None:
        """Forget shapes of jobs that nobody asked for since the last time."""
        self._fits.age()

    def _count(self, gone: Iterable[int], new: Mapping[int, tuple[SlurmJob, tuple[str, ...]]]) -> None:
        touched = set[str]()
        for number in gone:
            _, where = self._placed.pop(number)
            touched.update(where)
            for name in where:
                self._there[name].pop(number, None)
        for number, (job, where) in new.items():
            touched.update(where)
            for name in where:
                self._there[name][number] = job
        self._placed |= new
        for name in touched:
            if there := self._there[name]:
                self._loads[name] = found = room.load(there.values(), self._partitions)
                self._keys[name] = found.key()
            else:
                del self._there[name]
                self._loads.pop(name, None)
                self._keys.pop(name, None)
        self._groups = None

    def fitting(self, job: SlurmJob, names: Collection[str]) -> frozenset[str]:
        """Those of the nodes that have room for the job now. O(kinds of nodes + nodes found)."""
        known = self._fits.get((job.partition, job.cores, job.memory, job.shares), dict[int, bool])
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
