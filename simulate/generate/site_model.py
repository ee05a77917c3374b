"""Types of a model of a Slurm site: machine, partitions, QOS, and the classes of its jobs.

Every site counts its resource in *units*: whole nodes, GPUs with their share of the CPUs, or CPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .distributions import Between, LogNormal, PowerOfTwo


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are alike: a pool in which a job's nodes all lie."""

    prefix: str
    count: int
    cpus: int
    sockets: int
    memory_mib: int
    units: int = 1  # units of a node; 1: jobs get whole nodes
    gpus: int = 0
    busy_w: float | None = None  # mean power of a node with a job; None: no energy is recorded
    weight: int = 1  # in slurm.conf; jobs get nodes of a low weight first


@dataclass(frozen=True, slots=True)
class SiteJobClass:
    """The jobs of a QOS on a kind of nodes."""

    qos: str
    partition: str
    pool: int  # row of the kinds of nodes
    share: float  # of all jobs
    size: PowerOfTwo | Between  # units of the jobs of a session
    bounds: tuple[int, int]  # least and most units
    run_s: LogNormal | Between  # run times of the sessions, seconds
    most_min: int  # longest time limit, minutes
    session: float = 3.0  # mean number of jobs that a user submits together
    most_session: int = 1_000_000  # most jobs that a user submits together


@dataclass(frozen=True, slots=True)
class QosModel:
    """A QOS: priority and limits of sacctmgr, by the names of its columns."""

    name: str
    priority: int = 0
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionModel:
    """A partition: its pools, and what else stands in slurm.conf."""

    name: str
    pools: tuple[int, ...]
    settings: str = ""


@dataclass(frozen=True, slots=True)
class SiteModel:
    """A site."""

    name: str
    source: str
    nodes: tuple[NodeKind, ...]
    partitions: tuple[PartitionModel, ...]
    qos: tuple[QosModel, ...]
    classes: tuple[SiteJobClass, ...]
    jobs: int  # in `days`
    days: int
    load: float  # work / what the machine can do in the period
    users: int
    accounts: int
    settings: Mapping[str, str]  # of slurm.conf
    failures: float = 0.05  # share of the jobs that fail at once, beyond those of the classes


#: Settings of slurm.conf that the models share, and SchedulerParameters of a busy site.
SETTINGS = {
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "PriorityType": "priority/multifactor",
    "PriorityMaxAge": "14-0",
    "PriorityDecayHalfLife": "2-0",
    "PriorityWeightAge": "1000",
    "PriorityWeightFairshare": "2000",
    "PriorityWeightQOS": "10000",
    "AccountingStorageEnforce": "associations,limits,qos",
}
BUSY = "defer,sched_interval=60,default_queue_depth=100,bf_interval=30,bf_continue"
