"""Whether nodes are shared, what keeps jobs apart on them, and whether the cluster file tells the truth.

Rule: pure.
Source: slurm.conf(5): SelectType, OverSubscribe, ExclusiveUser, TaskPlugin, SuspendProgram; cgroup.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....simulate.formats.hostlist import fold
from ....simulate.platform import Cluster
from ...findings import NOTE, OK, PROBLEM, WARNING, Finding
from ..records import SlurmNode
from .asked import Asked

#: share by which the memory of a cluster file may differ from Slurm's
NEAR = 0.1


def findings(asked: Asked, cluster: Cluster | None) -> Iterator[Finding]:
    """Sharing, memory, power, and the cluster file."""
    yield from _sharing(asked)
    yield from _memory(asked)
    if asked.setting("SuspendProgram"):
        yield Finding(NOTE, "power", "nodes sleep when idle and wake for a job; for `power.save` the daemon's account "
                      "must be an administrator")  # fmt: skip
    if cluster is not None:
        yield from _cluster(asked.nodes, cluster)


def _sharing(asked: Asked) -> Iterator[Finding]:
    if asked.setting("SelectType") == "select/linear":
        yield Finding(WARNING, "sharing", "select/linear gives whole nodes away: there is nothing to pair")
        return
    kinds: dict[str, list[str]] = {}
    for words in asked.partitions:
        whole = words.get("OverSubscribe", "NO").startswith("EXCLUSIVE")
        by_user = words.get("ExclusiveUser") == "YES"
        shared = words.get("OverSubscribe", "NO").startswith("FORCE")
        kind = (
            "gives whole nodes away: jobs there have no neighbours" if whole
            else "gives nodes to one user at a time" if by_user
            else "lets jobs share cores: up to that many on each" if shared
            else "lets jobs share nodes, and each core belongs to one job"
        )  # fmt: skip
        kinds.setdefault(kind, []).append(words["PartitionName"])
    for kind, names in kinds.items():
        yield Finding(NOTE if "whole" in kind else OK, "sharing", f"partition {', '.join(names)} {kind}")


def _memory(asked: Asked) -> Iterator[Finding]:
    if "MEMORY" not in asked.setting("SelectTypeParameters").upper():
        yield Finding(NOTE, "memory", f"SelectTypeParameters={asked.setting('SelectTypeParameters') or '(none)'}: "
                      "Slurm does not count memory; pilotfish counts what jobs ask for")  # fmt: skip
    elif "task/cgroup" not in asked.words("TaskPlugin"):
        yield Finding(NOTE, "memory", "it is counted, and not enforced (TaskPlugin has no task/cgroup): a job may "
                      "take its neighbours' memory")  # fmt: skip
    else:
        yield Finding(OK, "memory", "it is counted, and enforced by cgroups where ConstrainRAMSpace=yes")


def _cluster(nodes: Iterable[SlurmNode], cluster: Cluster) -> Iterator[Finding]:
    here = {node.name: node for node in nodes}
    source = cluster.source or "the cluster file"
    absent = [node.name for node in cluster.nodes if node.name not in here]
    if absent:
        level = PROBLEM if len(absent) == len(cluster.nodes) else WARNING
        yield Finding(level, "cluster", f"{source}: Slurm has no {fold(absent)}; they count as down",
                      ("pilotfish cluster --adapter slurm > cluster.yaml",))  # fmt: skip
    known = [(node, here[node.name]) for node in cluster.nodes if node.name in here]
    cores = [node.name for node, seen in known if node.type.cores != seen.cpus]
    if cores:
        yield Finding(WARNING, "cluster", f"{source}: {fold(cores)} have another number of CPUs in Slurm; jobs are "
                      "planned with the file's")  # fmt: skip
    memory = [node.name for node, seen in known if node.type.memory > seen.memory * (1 + NEAR)]
    if memory:
        yield Finding(WARNING, "cluster", f"{source}: {fold(memory)} have less memory in Slurm")
    others = [name for name in here if name not in cluster.index]
    if others:
        yield Finding(NOTE, "cluster", f"{source} leaves out {fold(others)}: pilotfish places nothing there")
    if not (absent or cores or memory):
        yield Finding(OK, "cluster", f"{source} agrees with Slurm about {len(known)} nodes")
