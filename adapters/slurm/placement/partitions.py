"""Partitions: what each lets in, and how its jobs share nodes.

Rule: pure; what keeps a job out is a clause for a person. What cannot be told from outside (a user's groups) was judged
by Slurm when the job was submitted.
Source: scontrol(1) of Slurm 22.05, `show partition`; slurm.conf(5), OverSubscribe, and Exclusive, which 26.11 has in
its place.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum

from . import scontrol
from .records import SlurmJob
from .squeue import nodes as node_names
from .values import count, span

_SHARING = re.compile(r"(NO|YES|FORCE|EXCLUSIVE)(?::(\d+))?")


class Sharing(StrEnum):
    """How jobs of a partition share cores: not at all, if they ask for it, always, or not even nodes."""

    NO = "NO"
    YES = "YES"
    FORCE = "FORCE"
    EXCLUSIVE = "EXCLUSIVE"


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of Slurm's; None = no limit, or everybody.

    Args:
        rows: jobs that may share a core.
        tier: `PriorityTier`: jobs of a higher one come first, whatever their priority.
        qos: the QOS whose limits hold for all its jobs.
    """

    name: str
    up: bool = True
    nodes: frozenset[str] = frozenset()
    accounts: frozenset[str] | None = None
    no_accounts: frozenset[str] = frozenset()
    qos_allowed: frozenset[str] | None = None
    no_qos: frozenset[str] = frozenset()
    max_time: float | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    node_cpus: int | None = None
    reserved: bool = False
    sharing: Sharing = Sharing.NO
    rows: int = 1
    tier: int = 1
    qos: str = ""

    def obstacle(self, job: SlurmJob) -> str:
        """Why the job may not run in this partition, or ""."""
        if not self.up:
            return f"partition {self.name} is not up"
        if self.reserved:
            return f"partition {self.name} takes only jobs with a reservation"
        if (self.accounts is not None and job.account not in self.accounts) or job.account in self.no_accounts:
            return f"partition {self.name} does not take account {job.account}"
        if (self.qos_allowed is not None and job.qos not in self.qos_allowed) or job.qos in self.no_qos:
            return f"partition {self.name} does not take QOS {job.qos}"
        if self.max_time is not None and (job.time_limit or math.inf) > self.max_time:
            return f"partition {self.name} takes jobs of {self.max_time / 60:g} min at most"
        if job.nodes < self.min_nodes or (self.max_nodes is not None and job.nodes > self.max_nodes):
            return f"partition {self.name} does not take jobs of {job.nodes} nodes"
        return ""


def parse(text: str) -> dict[str, Partition]:
    """The partitions by name. Raises ParseError."""
    return {words["PartitionName"]: _partition(words) for words in scontrol.lines(text, "PartitionName")}


def _partition(words: dict[str, str]) -> Partition:
    sharing = _SHARING.fullmatch(words.get("OverSubscribe", "NO"))
    exclusive = words.get("ExclusiveUser") == "YES" or words.get("Exclusive", "NO").upper() != "NO" or sharing is None
    kind = Sharing.EXCLUSIVE if exclusive or sharing is None else Sharing(sharing[1])
    qos = words.get("QoS", "N/A")
    return Partition(
        name=words["PartitionName"],
        up=words.get("State") == "UP",
        nodes=frozenset(node_names(words.get("Nodes", ""))),
        accounts=scontrol.names(words.get("AllowAccounts", "ALL")),
        no_accounts=scontrol.names(words.get("DenyAccounts", "")) or frozenset(),
        qos_allowed=scontrol.names(words.get("AllowQos", "ALL")),
        no_qos=scontrol.names(words.get("DenyQos", "")) or frozenset(),
        max_time=span(words.get("MaxTime", "UNLIMITED")),
        min_nodes=count(words.get("MinNodes", "0")) or 0,
        max_nodes=count(words.get("MaxNodes", "UNLIMITED")),
        node_cpus=count(words.get("MaxCPUsPerNode", "UNLIMITED")),
        reserved=words.get("ReqResv") == "YES",
        sharing=kind,
        rows=int(sharing[2] or 4) if sharing and kind is Sharing.FORCE else 1,
        tier=count(words.get("PriorityTier", "1")) or 0,
        qos="" if qos == "N/A" else qos,
    )
