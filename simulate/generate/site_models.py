"""Models of Slurm sites, for demonstrations and measurements: machine, partitions, QOS, and the jobs of a period.

Rule: numbers that were published are exact, and `source` names them; all others are assumptions of a plausible site.
Source: A. Wilkinson et al., "A Fast Simulator to Enable HPC Scheduling Strategy Comparisons", 2023, section 3.3 (Peta4:
1,468 nodes, two months, about 4,000,000 jobs).
"""

from __future__ import annotations

from .archer2 import ARCHER2
from .distributions import LogNormal, PowerOfTwo
from .site_model import (
    BUSY,
    SETTINGS,
    NodeKind,
    PartitionModel,
    QosModel,
    SiteJobClass,
    SiteModel,
)

PETA4 = SiteModel(
    "peta4",
    "Wilkinson et al. 2023; CPUs, QOS and sizes assumed",
    (NodeKind("cpu", 1468, 32, 2, 192_000, units=32),),
    (PartitionModel("skylake", (0,), "Default=YES MaxTime=2160 DefaultTime=60"),),
    (
        QosModel("intr", 10_000, {"MaxWall": "01:00:00", "MaxJobsPU": "1"}),
        QosModel("cpu1", 1000, {"MaxWall": "1-12:00:00", "MaxTRESPU": "cpu=1280"}),
        QosModel("cpu2", 500, {"MaxWall": "12:00:00", "MaxTRESPU": "cpu=320"}),
    ),
    (
        SiteJobClass("cpu1", "skylake", 0, 0.55, PowerOfTwo(1.2, 0.8), (1, 1280), LogNormal(240, 1.5), 2160, 120),
        SiteJobClass("cpu2", "skylake", 0, 0.4495, PowerOfTwo(1.0, 0.6), (1, 320), LogNormal(240, 1.5), 720, 200),
        SiteJobClass("intr", "skylake", 0, 0.0005, PowerOfTwo(4.0, 1.0), (1, 64), LogNormal(900, 1.0), 60, 1),
    ),
    4_000_000, 61, 0.85, 900, 200,
    {**SETTINGS, "SchedulerParameters": f"{BUSY},bf_max_job_test=1000,bf_window=2160,bf_resolution=300"},
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
        SiteJobClass("normal", "gpu", 0, 0.85, PowerOfTwo(1.4, 1.0), (1, 64), LogNormal(9000, 1.5), 2880, 5),
        SiteJobClass("debug", "debug", 0, 0.15, PowerOfTwo(1.0, 0.5), (1, 4), LogNormal(400, 1.0), 60, 2),
    ),
    60_000, 60, 0.85, 200, 30,
    {**SETTINGS, "GresTypes": "gpu", "SchedulerParameters": "bf_interval=30,bf_window=2880,bf_continue"},
)  # fmt: skip
UNIVERSITY = SiteModel(
    "university",
    "an invented cluster of 200 nodes, 20 with more memory",
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
        SiteJobClass("normal", "batch", 0, 0.79, PowerOfTwo(4.0, 1.2), (1, 512), LogNormal(3600, 1.6), 4320, 12),
        SiteJobClass("teaching", "batch", 0, 0.17, PowerOfTwo(1.5, 0.6), (1, 16), LogNormal(300, 1.0), 120, 10),
        SiteJobClass("normal", "bigmem", 1, 0.04, PowerOfTwo(6.0, 1.0), (1, 64), LogNormal(7200, 1.4), 4320, 4),
    ),
    150_000, 60, 0.75, 400, 60,
    {**SETTINGS, "SelectTypeParameters": "CR_Core_Memory", "SchedulerParameters": "bf_continue"},
)  # fmt: skip
MODELS = {model.name: model for model in (ARCHER2, PETA4, GPU, UNIVERSITY)}
