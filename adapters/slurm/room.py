"""Which nodes have room for a job now, by Slurm's own rules of sharing.

Rule: pure, and on the safe side. Cores are not shared, but in partitions with OverSubscribe=FORCE:N, where N jobs of
that partition may share a core; jobs that share cores and jobs that do not share no node; a job for itself needs nodes
on which nothing is.
Source: slurm.conf(5), OverSubscribe; behaviour of select/cons_tres of Slurm 22.05.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .partitions import Partition, Sharing
from .records import SlurmJob, SlurmNode


@dataclass(slots=True)
class Load:
    """What jobs take on a node: cores in all, bytes, the cores of each job by partition, whether one is `alone`, and of
    which `kinds` they are: those that share cores (True), and those that do not."""

    cores: int = 0
    memory: float = 0.0
    jobs: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    alone: bool = False
    kinds: set[bool] = field(default_factory=set)

    def key(self) -> object:
        """The same for loads that are alike."""
        jobs = tuple((name, tuple(sorted(cores))) for name, cores in sorted(self.jobs.items()) if cores)
        return self.cores, self.memory, jobs, self.alone, frozenset(self.kinds)


def load(jobs: Iterable[SlurmJob], partitions: Mapping[str, Partition]) -> Load:
    """What these jobs take together on a node. O(jobs)."""
    found = Load()
    for job in jobs:
        found.cores += job.cores
        found.memory += job.memory
        found.jobs[job.partition].append(job.cores)
        found.kinds.add(
            shares_cores(job, [partitions[name] for name in job.partition.split(",") if name in partitions])
        )
        found.alone = found.alone or alone(job)
    return found


def alone(job: SlurmJob, partitions: Iterable[Partition] = ()) -> bool:
    """Whether the job, which may start in these partitions, must have its nodes for itself, or may have to."""
    if job.shares not in ("", "OK", "YES"):
        return True
    return any(partition.sharing is Sharing.EXCLUSIVE for partition in partitions)


def unseen_cores(cores: int, node: SlurmNode, load: Load) -> int:
    """Cores that Slurm has given away on a node of `cores` cores, and that no job which we see explains."""
    return 0 if node.idle is None else max(0, cores - node.idle - load.cores)


def shares_cores(job: SlurmJob, partitions: Iterable[Partition]) -> bool:
    """Whether the job shares cores with others."""
    kinds = {partition.sharing for partition in partitions}
    return Sharing.FORCE in kinds or (Sharing.YES in kinds and job.shares == "YES")


def obstacle(job: SlurmJob, node: SlurmNode, load: Load, partitions: Mapping[str, Partition], *, loose: bool) -> str:
    """Why the node has no room for the job now, or "".

    Args:
        loose: the cluster's own limit on cores is above Slurm's, so that all is told here. Otherwise a full node is
            not named: that limit tells it, now and in the forecast of what will be free.
    """
    chosen = [partitions[name] for name in job.partition.split(",") if name in partitions]
    if load.alone or alone(job, chosen):
        busy = load.cores > 0 or (node.idle is not None and node.idle < node.cpus)
        return f"{node.name} is not empty" if busy else ""
    if load.kinds - {shares_cores(job, chosen)}:
        return f"{node.name} has jobs that {'do not share cores' if shares_cores(job, chosen) else 'share cores'}"
    if job.memory > node.memory * (1 + 1e-9):
        return f"{node.name} has less memory"
    unseen = node.free is not None and node.memory - node.free > load.memory * (1 + 1e-9)
    if unseen and node.free is not None and job.memory > node.free * (1 + 1e-9):
        return f"{node.name} has not enough memory free"
    if any(p.node_cpus is not None and sum(load.jobs.get(p.name, ())) + job.cores > p.node_cpus for p in chosen):
        return f"the partition may not use more cores of {node.name}"
    if chosen and all(partition.sharing is Sharing.FORCE for partition in chosen):
        own = [cores for partition in chosen for cores in load.jobs.get(partition.name, ())]
        shared = node.cpus - (load.cores - sum(own)) - unseen_cores(node.cpus, node, load)
        rows = min(partition.rows for partition in chosen)
        return "" if in_rows([*own, job.cores], shared, rows) else f"{node.name} has no row of cores free"
    idle = node.cpus - load.cores if node.idle is None else min(node.idle, node.cpus - load.cores)
    return f"{node.name} has {max(0, idle)} cores free" if loose and job.cores > idle else ""


def in_rows(sizes: Iterable[int], cores: int, rows: int) -> bool:
    """Whether jobs of these sizes fit `rows` rows of `cores` cores, the largest first, each where it first fits."""
    left = [cores] * rows
    for size in sorted(sizes, reverse=True):
        row = next((i for i, room in enumerate(left) if room >= size), None)
        if row is None:
            return False
        left[row] -= size
    return True
