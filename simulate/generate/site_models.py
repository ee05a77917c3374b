"""Models of Slurm sites, for demonstrations and measurements: machine, partitions, QOS, and the jobs of a period.

Rule: numbers that were published are exact, and `source` names them; all others are assumptions of a plausible site.
Every site counts its resource in *units*: whole nodes, GPUs with their share of the CPUs, or CPUs.
Sources: A. Wilkinson et al., "A Fast Simulator to Enable HPC Scheduling Strategy Comparisons", 2023, sections 3.1 to
3.3 (ARCHER2: 5,860 nodes, overlapping standard and high memory partitions, four months from October 2022, about 600,000
jobs, more than 90 % used, 541 waiting jobs in the mean, backfill of 1,000 jobs; Peta4: 1,468 nodes, two months, about
4,000,000 jobs); ARCHER2-HPC/usage-data, October 2022 (1,509,306 kWh in 3,469,615 node hours of jobs: 435 W a node).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True)
class SiteJobClass:
    """The jobs of a QOS on a kind of nodes."""

    qos: str
    partition: str
    pool: int  # row of the kinds of nodes
    share: float  # of all jobs
    size: tuple[float, float]  # median and deviation of the logarithm, units
    bounds: tuple[int, int]  # least and most units
    run_s: tuple[float, float]  # median and deviation of the logarithm of the run times of a session, seconds
    most_min: int  # longest time limit, minutes
    session: float = 3.0  # mean number of jobs that a user submits together


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


_PRIORITIES = {
    "PriorityType": "priority/multifactor",
    "PriorityMaxAge": "14-0",
    "PriorityDecayHalfLife": "2-0",
    "PriorityWeightAge": "1000",
    "PriorityWeightFairshare": "2000",
    "PriorityWeightQOS": "10000",
    "AccountingStorageEnforce": "associations,limits,qos",
}
_SHARED = {"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core"}
_SLOW = "sched_min_interval=12000000"
_BUSY = "defer,sched_interval=60,default_queue_depth=100,bf_interval=30,bf_continue"

ARCHER2 = SiteModel(
    "archer2",
    "Wilkinson et al. 2023: 5,860 nodes, 600,000 jobs in 4 months, above 90 % used, 541 waiting in the mean",
    (
        NodeKind("nid", 5276, 128, 2, 256_000, busy_w=435.0),
        NodeKind("hm", 584, 128, 2, 512_000, busy_w=435.0),
    ),
    (
        PartitionModel("standard", (0, 1), "Default=YES MaxTime=5760 DefaultTime=60 OverSubscribe=EXCLUSIVE"),
        PartitionModel("highmem", (1,), "MaxTime=2880 DefaultTime=60 OverSubscribe=EXCLUSIVE"),
    ),
    (
        QosModel("standard", 500, {"MaxWall": "1-00:00:00", "MaxTRES": "node=1024", "MaxJobsPU": "16"}),
        QosModel("highmem", 500, {"MaxWall": "2-00:00:00", "MaxTRES": "node=256", "MaxJobsPU": "16"}),
        QosModel("taskfarm", 500, {"MaxWall": "1-00:00:00", "MaxTRES": "node=16", "MaxJobsPU": "32"}),
        QosModel("short", 500, {"MaxWall": "00:20:00", "MaxTRES": "node=32", "MaxJobsPU": "4"}),
        QosModel("long", 500, {"MaxWall": "4-00:00:00", "MaxTRES": "node=64", "MaxJobsPU": "16"}),
        QosModel("largescale", 500, {"MaxWall": "12:00:00", "MinTRES": "node=1025", "MaxJobsPU": "1"}),
        QosModel("lowpriority", 1, {"MaxWall": "1-00:00:00", "MaxTRES": "node=2048", "MaxJobsPU": "16"}),
        QosModel("highpriority", 10_000, {"MaxWall": "1-00:00:00", "MaxTRES": "node=1024"}),
    ),
    (
        SiteJobClass("standard", "standard", 0, 0.5697, (2.5, 1.2), (1, 1024), (7200, 1.0), 1440, 2),
        SiteJobClass("taskfarm", "standard", 0, 0.20, (1.0, 0.5), (1, 16), (5400, 1.2), 1440, 12),
        SiteJobClass("short", "standard", 0, 0.15, (1.6, 0.9), (1, 32), (240, 1.0), 20, 2),
        SiteJobClass("lowpriority", "standard", 1, 0.045, (2.5, 1.3), (1, 512), (7200, 1.4), 1440, 6),
        SiteJobClass("highmem", "highmem", 1, 0.02, (1.8, 1.1), (1, 256), (7200, 1.4), 2880, 4),
        SiteJobClass("long", "standard", 0, 0.015, (2.5, 1.0), (1, 64), (90_000, 0.8), 5760, 2),
        SiteJobClass("largescale", "standard", 0, 0.0003, (1500, 0.3), (1025, 5276), (3600, 0.8), 720, 1),
    ),
    600_000, 123, 0.905, 1200, 150,
    {**_PRIORITIES, **_SHARED, "PriorityWeightJobSize": "100",
     "SchedulerParameters": f"{_BUSY},{_SLOW},bf_max_job_test=1000,bf_window=5760,bf_resolution=600"},
)  # fmt: skip
PETA4 = SiteModel(
    "peta4",
    "Wilkinson et al. 2023: 1,468 nodes, 4,000,000 jobs in 2 months; CPUs, QOS and sizes are assumptions",
    (NodeKind("cpu", 1468, 32, 2, 192_000, units=32),),
    (PartitionModel("skylake", (0,), "Default=YES MaxTime=2160 DefaultTime=60"),),
    (
        QosModel("intr", 10_000, {"MaxWall": "01:00:00", "MaxJobsPU": "1"}),
        QosModel("cpu1", 1000, {"MaxWall": "1-12:00:00", "MaxTRESPU": "cpu=1280"}),
        QosModel("cpu2", 500, {"MaxWall": "12:00:00", "MaxTRESPU": "cpu=320"}),
    ),
    (
        SiteJobClass("cpu1", "skylake", 0, 0.55, (1.2, 0.8), (1, 1280), (240, 1.5), 2160, 120),
        SiteJobClass("cpu2", "skylake", 0, 0.4495, (1.0, 0.6), (1, 320), (240, 1.5), 720, 200),
        SiteJobClass("intr", "skylake", 0, 0.0005, (4.0, 1.0), (1, 64), (900, 1.0), 60, 1),
    ),
    4_000_000, 61, 0.85, 900, 200,
    {**_PRIORITIES, **_SHARED, "SchedulerParameters": f"{_BUSY},bf_max_job_test=1000,bf_window=2160,bf_resolution=300"},
)  # fmt: skip
GPU = SiteModel(
    "gpu",
    "an invented cluster of 120 nodes with 4 GPUs",
    (NodeKind("g", 120, 64, 2, 512_000, units=4, gpus=4),),
    (
        PartitionModel("gpu", (0,), "Default=YES MaxTime=2880 DefaultTime=240 PriorityTier=5"),
        PartitionModel("debug", (0,), "MaxTime=60 DefaultTime=30 PriorityTier=10"),
    ),
    (
        QosModel("normal", 500, {"MaxTRESPU": "gres/gpu=64"}),
        QosModel("debug", 2000, {"MaxJobsPU": "2"}),
    ),
    (
        SiteJobClass("normal", "gpu", 0, 0.85, (1.4, 1.0), (1, 64), (9000, 1.5), 2880, 5),
        SiteJobClass("debug", "debug", 0, 0.15, (1.0, 0.5), (1, 4), (400, 1.0), 60, 2),
    ),
    60_000, 60, 0.85, 200, 30,
    {**_PRIORITIES, **_SHARED, "GresTypes": "gpu", "SchedulerParameters": "bf_interval=30,bf_window=2880,bf_continue"},
)  # fmt: skip
UNIVERSITY = SiteModel(
    "university",
    "an invented cluster of 200 shared nodes with 64 CPUs, 20 of them with more memory",
    (NodeKind("c", 180, 64, 2, 256_000, units=64), NodeKind("m", 20, 64, 2, 1_024_000, units=64)),
    (
        PartitionModel("batch", (0,), "Default=YES MaxTime=4320 DefaultTime=120 DefMemPerCPU=4000 PriorityTier=5"),
        PartitionModel("bigmem", (1,), "MaxTime=4320 DefaultTime=120 DefMemPerCPU=16000 PriorityTier=5"),
    ),
    (
        QosModel("normal", 500, {"MaxTRESPU": "cpu=2048"}),
        QosModel("teaching", 2000, {"MaxWall": "02:00:00", "MaxJobsPU": "8"}),
    ),
    (
        SiteJobClass("normal", "batch", 0, 0.79, (4.0, 1.2), (1, 512), (3600, 1.6), 4320, 12),
        SiteJobClass("teaching", "batch", 0, 0.17, (1.5, 0.6), (1, 16), (300, 1.0), 120, 10),
        SiteJobClass("normal", "bigmem", 1, 0.04, (6.0, 1.0), (1, 64), (7200, 1.4), 4320, 4),
    ),
    150_000, 60, 0.75, 400, 60,
    {**_PRIORITIES, **_SHARED, "SelectTypeParameters": "CR_Core_Memory", "SchedulerParameters": "bf_continue"},
)  # fmt: skip
MODELS = {model.name: model for model in (ARCHER2, PETA4, GPU, UNIVERSITY)}
