"""The capacity rule: whether a job fits a node.

Rule: memory and threads are hard limits and count for every resident job; a reason is a value, never an exception.
Policies follow the rule, the check before applying repeats it on a fresh snapshot, and an adapter asks it about the
nodes and jobs that only its resource manager shows; each translates what it knows into the terms of `shortage`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ..wording import count
from .cluster import Cluster
from .job import Job

#: Relative slack of comparisons, so that rounded sums do not refuse a job that fits to the last byte.
SLACK = 1e-9


def memory_need(job: Job) -> float:
    """Return the bytes that `job` takes on each of its nodes: the larger of its own and its profile's memory."""
    return max(job.memory, job.profile.memory)


def shortage(
    name: str,
    threads: int,
    most_threads: float,
    memory: float,
    most_memory: float,
    kind: str = "",
    others: Collection[str] = (),
) -> str | None:
    """Return why a node cannot hold a job next to those that it has, in one clause; None if it can. O(others).

    Args:
        name: Name of the node.
        threads: Threads on the node with the job; a job that needs the node for itself counts all of its threads.
        most_threads: Threads that may be there; math.inf: any number.
        memory: Bytes on the node with the job.
        most_memory: Bytes that may be taken there.
        kind: `Job.apart` of the job; "": it shares nodes with any other.
        others: `Job.apart` of the jobs there, without "".
    """
    if kind and (different := set(others) - {kind}):
        return f"{name} has jobs of another kind ({min(different)}, not {kind})"
    if threads > most_threads * (1 + SLACK):
        return f"{name} would hold {count(threads, 'thread')}, over its limit of {most_threads:g}"
    if memory > most_memory * (1 + SLACK):
        return f"{name} would hold {memory:.6g} bytes, over its memory of {most_memory:.6g}"
    return None


@dataclass(slots=True)
class Occupancy:
    """Resources that jobs take on each node of a cluster, in cluster order."""

    cluster: Cluster  # the cluster
    threads: list[int] = field(default_factory=list)  # threads placed on each node
    memory: list[float] = field(default_factory=list)  # bytes reserved on each node
    apart: dict[int, dict[str, int]] = field(default_factory=dict)  # node -> `apart` values of its jobs, and how often

    def __post_init__(self) -> None:
        self.threads = self.threads or [0] * len(self.cluster.nodes)
        self.memory = self.memory or [0.0] * len(self.cluster.nodes)

    def place(self, job: Job, nodes: Iterable[str]) -> None:
        """Add `job` on `nodes`; names that the cluster does not have are skipped. O(nodes of the job)."""
        self._change(job, nodes, 1)

    def remove(self, job: Job, nodes: Iterable[str]) -> None:
        """Take back what `place` added."""
        self._change(job, nodes, -1)

    def _change(self, job: Job, nodes: Iterable[str], sign: int) -> None:
        index, threads, memory = self.cluster.index, sign * job.profile.threads, sign * memory_need(job)
        for name in nodes:
            if (i := index.get(name)) is not None:
                self.threads[i] += threads
                self.memory[i] += memory
                if job.apart:
                    counts = Counter(self.apart.get(i, {}))
                    counts[job.apart] += sign
                    self.apart[i] = +counts

    def copy(self) -> Occupancy:
        """Return a copy that goes on counting from here. O(nodes)."""
        return Occupancy(self.cluster, self.threads.copy(), self.memory.copy(), self.apart.copy())

    def obstacle(self, job: Job, name: str) -> str | None:
        """Return why `job` does not fit on node `name` with the jobs there, in one clause; None if it fits. O(1)."""
        i = self.cluster.index.get(name)
        if i is None:
            return f"there is no node {name!r}"
        if job.allowed is not None and name not in job.allowed:
            return f"it may not run on {name}"
        return shortage(
            name,
            self.threads[i] + job.profile.threads,
            self.cluster.thread_limits[i],
            self.memory[i] + memory_need(job),
            self.cluster.nodes[i].type.memory,
            job.apart,
            self.apart.get(i, ()) if job.apart else (),
        )


#: Sets of allowed nodes whose groups are kept, because many jobs share each.
KEPT_SETS = 100


class EmptyNodes:
    """The nodes of a cluster without jobs, to see which jobs can ever run there.

    Args:
        cluster: the cluster.
        available: names of the nodes that may be used; None = all.
    """

    def __init__(self, cluster: Cluster, available: Collection[str] | None = None) -> None:
        self._empty = Occupancy(cluster)
        self._names = [node.name for node in cluster.nodes if available is None or node.name in available]
        self._alike = dict[tuple[float, float], list[str]]()  # nodes where the same jobs fit
        for name in self._names:
            place = cluster.index[name]
            kind = cluster.thread_limits[place], cluster.nodes[place].type.memory
            self._alike.setdefault(kind, []).append(name)
        self._groups = dict[frozenset[str] | None, list[tuple[str, int]]]()
        #: Most threads of a job that one of the nodes takes; 0 without nodes.
        self.most_threads = max((threads for threads, _ in self._alike), default=0.0)

    def _groups_of(self, allowed: frozenset[str] | None) -> list[tuple[str, int]]:
        """Return a node of each kind, and the number of those that are allowed. O(nodes) for a new set."""
        if allowed not in self._groups:
            if len(self._groups) >= KEPT_SETS:
                self._groups.clear()
            kinds = self._alike.values()
            groups = [(names[0], len(names)) for names in kinds]
            if allowed is not None:
                firsts = (next(filter(allowed.__contains__, names), names[0]) for names in kinds)
                groups = [(first, len(allowed.intersection(names))) for first, names in zip(firsts, kinds, strict=True)]
            self._groups[allowed] = groups
        return self._groups[allowed]

    def never_fits(self, job: Job) -> str | None:
        """Return why `job` does not fit, in one clause; None if it can fit. O(kinds of nodes)."""
        enough, obstacles = 0, list[str]()
        for name, number in self._groups_of(job.allowed):
            reason = self._empty.obstacle(job, name)
            if reason is None:
                enough += number
            else:
                obstacles.append(reason)
        if enough >= job.nodes:
            return None
        fitting = (
            f"it needs {job.nodes} node{'s' * (job.nodes > 1)} and {enough} of {len(self._names)} usable ones fit it"
        )
        return f"{fitting}: {obstacles[0]}" if obstacles else fitting


def never_fits(job: Job, cluster: Cluster, available: Collection[str] | None = None) -> str | None:
    """Return why `job` does not fit even on empty nodes, in one clause; None if it can fit. O(nodes).

    Args:
        job: the job.
        cluster: the cluster.
        available: names of the nodes that may be used; None = all.
    """
    return EmptyNodes(cluster, available).never_fits(job)
