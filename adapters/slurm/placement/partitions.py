"""Partitions, which limit jobs and how they share nodes, and reservations, which keep nodes for others.

Rule: pure. The reason that keeps a job out of a partition is a clause that users read. Slurm checked at submission what
cannot be seen from outside (a user's groups). A job without a reservation stays off the nodes of every reservation that
begins before the job's time limit, whatever its flags and users.
Source: scontrol(1) of Slurm 22.05, `show partition` and `show reservation`; slurm.conf(5), OverSubscribe, and
Exclusive, which replaces it in 26.11.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from ..records import SlurmJob
from ..transport import scontrol
from ..transport.parsing import count, moment, span
from ..transport.rows import Unreadable, read_rows
from ..transport.squeue import nodes as node_names

_SHARING = re.compile(r"(NO|YES|FORCE|EXCLUSIVE)(?::(\d+))?")


class CoreSharing(StrEnum):
    """Core sharing of a partition's jobs: never, on request, always; EXCLUSIVE: not even nodes are shared."""

    NO = "NO"
    YES = "YES"
    FORCE = "FORCE"
    EXCLUSIVE = "EXCLUSIVE"


@dataclass(frozen=True, slots=True)
class Partition:
    """A Slurm partition; None: no limit."""

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
    sharing: CoreSharing = CoreSharing.NO
    rows: int = 1  #: jobs that may share a core
    tier: int = 1  #: `PriorityTier`: jobs of a higher tier come first, whatever their priority
    qos: str = ""  #: QOS whose limits hold for all its jobs
    parameters: str = ""  #: its own `SelectTypeParameters`; "": those of the site
    readable: bool = True  #: whether more than its name is known

    def obstacle(self, job: SlurmJob) -> str:
        """Return why the job may not run in this partition, or ""."""
        if not self.readable:
            return f"Slurm's answer about partition {self.name} cannot be read"
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


def of_job(job: SlurmJob, partitions: Mapping[str, Partition]) -> list[Partition]:
    """Return the partitions, of all by name, in which a job may start."""
    return [partitions[name] for name in job.partition.split(",") if name in partitions]


def parse(text: str, unreadable: Unreadable | None = None) -> dict[str, Partition]:
    """Return the partitions by name. Raises ParseError.

    Args:
        text: What `scontrol` prints.
        unreadable: Counts and reports partitions that cannot be read; they take no job.
    """
    report, problems = unreadable or Unreadable(), dict[str, str]()
    rows, name = scontrol.lines(text, "PartitionName"), lambda words: words["PartitionName"]
    partitions = read_rows(rows, partial(_partition, report.most_names), _unknown_partition, name, problems)
    report.note("partition", problems, whole=True)
    return {partition.name: partition for partition in partitions}


def _unknown_partition(words: dict[str, str]) -> Partition:
    return Partition(words["PartitionName"], readable=False, up=False, sharing=CoreSharing.EXCLUSIVE)


def _partition(name_limit: int, words: dict[str, str]) -> Partition:
    sharing = _SHARING.fullmatch(words.get("OverSubscribe", "NO"))
    exclusive = words.get("ExclusiveUser") == "YES" or words.get("Exclusive", "NO").upper() != "NO" or sharing is None
    kind = CoreSharing.EXCLUSIVE if exclusive or sharing is None else CoreSharing(sharing[1])
    qos = words.get("QoS", "N/A")
    return Partition(
        name=words["PartitionName"],
        up=words.get("State") == "UP",
        nodes=frozenset(node_names(words.get("Nodes", ""), name_limit)),
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
        rows=int(sharing[2] or 4) if sharing and kind is CoreSharing.FORCE else 1,
        tier=count(words.get("PriorityTier", "1")) or 0,
        qos="" if qos == "N/A" else qos,
        parameters=words.get("SelectTypeParameters", "NONE").replace("NONE", ""),
    )


@dataclass(frozen=True, slots=True)
class SlurmReservation:
    """Nodes that are reserved from `start` to `end`, epoch seconds."""

    name: str
    start: float
    end: float
    nodes: frozenset[str]


def parse_reservations(text: str, unreadable: Unreadable | None = None) -> list[SlurmReservation]:
    """Return the reservations that keep nodes. Raises ParseError.

    Args:
        text: What `scontrol` prints.
        unreadable: Counts and reports reservations that cannot be read; they keep their nodes, if these can be read.
    """
    report, problems = unreadable or Unreadable(), dict[str, str]()

    def names(words: dict[str, str]) -> frozenset[str]:
        return frozenset(node_names(words.get("Nodes", ""), report.most_names))

    def read(words: dict[str, str]) -> SlurmReservation:
        start, end = (moment(words.get(key, "")) for key in ("StartTime", "EndTime"))
        return SlurmReservation(words["ReservationName"], start or 0.0, end or math.inf, names(words))

    def stand_in(words: dict[str, str]) -> SlurmReservation:
        return SlurmReservation(words["ReservationName"], 0.0, math.inf, names(words))

    rows = scontrol.lines(text, "ReservationName")
    reservations = read_rows(rows, read, stand_in, lambda words: words["ReservationName"], problems)
    report.note("reservation", problems, whole=True)
    return [reservation for reservation in reservations if reservation.nodes]
