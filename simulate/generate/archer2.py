"""A model of ARCHER2 from October 2022 to January 2023: 5,860 nodes, and the sizes and run times of its real jobs.

Published, and taken as they are:

- the jobs that ran, by size and run time, with the mean run time and the mean size of each cell: ARCHER2-HPC/usage-data
  (CC0), `allusers/2022/10` to `2023/01`, `*_SchedulingCoefficient.csv`, whose sums over the four months are the tables
  here. It leaves out jobs of low priority. Its work is 91 % of what the nodes can do.
- 680 to 713 users in 97 to 109 projects a month (`*_CodeSize.csv` there), and 1,509,306 kWh in 3,469,615 node hours of
  jobs in October 2022, 435 W a node.
- QOS with their limits for a job and for a user, the weights and the decay of priorities, and that nodes with less
  memory are preferred: the user guide of ARCHER2, "Running jobs on ARCHER2".
- 600,000 jobs, a use above 90 %, 541 waiting jobs in the mean, and a backfill of 1,000 jobs every 30 s: A. Wilkinson et
  al., "A Fast Simulator to Enable HPC Scheduling Strategy Comparisons", 2023, section 3.

Tuned, so that a replay under Slurm's rules has that use and that queue, without a trend: the load, the number of jobs
that a user submits together, and the share of jobs of low priority. In days 5 to 30 of the seed 0, 499 jobs wait in the
mean (290 to 732 over five days), and 94 % of the nodes are used. Users submit no more at once than MaxSubmitPU allows,
but do not wait for a free place under it, so waits for limits are part of this queue.
Assumed: how the jobs of a cell divide into QOS, the distribution within a cell, time limits, users, and hours of
submission.
"""

from __future__ import annotations

from collections.abc import Iterator

from .distributions import Between, LogNormal, PowerOfTwo
from .site_model import BUSY, SETTINGS, NodeKind, PartitionModel, QosModel, SiteJobClass, SiteModel

#: Least and most nodes of a column of the tables.
SIZES = (
    (1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 256), (257, 512), (513, 1024),
    (1025, 2048), (2049, 4096),
)  # fmt: skip
#: Least and most run time of a row of the tables, hours; the longest is that of the QOS `long`.
HOURS = ((0, 1), (1, 3), (3, 6), (6, 12), (12, 24), (24, 96))
JOBS = (
    (250_330, 49_226, 56_640, 29_408, 21_324, 21_337, 2_971, 2_254, 574, 161, 200, 7, 4),
    (25_476, 8_788, 12_678, 3_599, 10_520, 3_164, 544, 401, 87, 38, 48, 1, 0),
    (11_968, 3_994, 5_198, 4_234, 4_076, 1_457, 313, 353, 51, 24, 13, 2, 0),
    (11_953, 5_059, 3_865, 3_454, 2_702, 1_096, 490, 576, 69, 26, 11, 1, 0),
    (11_782, 4_395, 4_590, 4_435, 2_604, 1_745, 716, 471, 69, 18, 15, 0, 0),
    (5_269, 4_167, 4_549, 3_162, 2_898, 1_819, 1_238, 214, 43, 17, 5, 0, 0),
)
MEAN_RUN_S = (
    (483, 524, 432, 581, 861, 381, 621, 603, 776, 778, 624, 482, 342),
    (6_224, 6_279, 6_016, 6_681, 6_503, 5_856, 6_817, 7_423, 6_585, 6_568, 5_812, 10_470, 0),
    (15_782, 16_149, 15_272, 15_939, 15_197, 14_841, 15_753, 16_507, 17_221, 15_506, 13_278, 12_500, 0),
    (30_338, 30_868, 30_588, 30_165, 29_494, 31_402, 31_438, 27_751, 31_086, 33_355, 30_106, 22_508, 0),
    (67_094, 64_583, 68_592, 67_602, 66_450, 66_214, 69_830, 69_170, 69_658, 70_692, 57_439, 0, 0),
    (99_754, 93_805, 105_813, 106_392, 104_464, 104_259, 101_377, 86_415, 86_415, 86_631, 86_413, 0, 0),
)
MEAN_NODES = (
    (1, 2, 3.9, 7.4, 12.1, 28.2, 51.7, 106.9, 203.8, 436.8, 888.1, 2048, 3937.8),
    (1, 2, 3.6, 7, 11, 27.5, 52.3, 97.2, 198.9, 460.2, 899.8, 2048, 0),
    (1, 2, 3.8, 7.1, 12, 25.3, 52.1, 101.2, 218.2, 377, 979.5, 2048, 0),
    (1, 2, 3.9, 7.3, 12, 23.7, 50.6, 98.2, 200.7, 433.8, 862.6, 2048, 0),
    (1, 2, 3.9, 7.2, 12.8, 24.4, 48.1, 100.7, 190.6, 399.6, 821, 0, 0),
    (1, 2, 3.8, 7.2, 13, 23.7, 47.8, 109.1, 212, 479.4, 765, 0, 0),
)
#: Assumed shares of the QOS in the cells that they allow, and the mean run time of a job of the QOS `long`.
SHORT, TASKFARM, HIGH_MEMORY, LONG_S = 0.3, 0.2, 0.03, 40 * 3600.0
#: Tuned: share of the jobs of low priority, and the load with them.
LOW_PRIORITY, LOAD = 0.04, 0.95

_QOS = (
    QosModel("standard", 500, {"MaxWall": "1-00:00:00", "MaxTRES": "node=1024", "MaxTRESPU": "node=1024",
                               "MaxJobsPU": "16", "MaxSubmitPU": "64"}),
    QosModel("highmem", 500, {"MaxWall": "1-00:00:00", "MaxTRES": "node=256", "MaxTRESPU": "node=512",
                              "MaxJobsPU": "16", "MaxSubmitPU": "16"}),
    QosModel("taskfarm", 500, {"MaxWall": "1-00:00:00", "MaxTRES": "node=16", "MaxTRESPU": "node=256",
                               "MaxJobsPU": "32", "MaxSubmitPU": "128"}),
    QosModel("short", 500, {"MaxWall": "00:20:00", "MaxTRES": "node=32", "MaxJobsPU": "4", "MaxSubmitPU": "16"}),
    QosModel("long", 500, {"MaxWall": "4-00:00:00", "MaxTRES": "node=64", "MaxTRESPU": "node=512",
                           "GrpTRES": "node=2048", "MaxJobsPU": "16", "MaxSubmitPU": "16"}),
    QosModel("largescale", 500, {"MaxWall": "12:00:00", "MinTRES": "node=1025", "MaxJobsPU": "1", "MaxSubmitPU": "8"}),
    QosModel("lowpriority", 1, {"MaxWall": "1-00:00:00", "MaxTRES": "node=2048", "MaxJobsPU": "16",
                                "MaxSubmitPU": "16"}),
    QosModel("highpriority", 10_000, {"MaxWall": "1-00:00:00", "MaxTRES": "node=1024"}),
)  # fmt: skip
#: The most minutes of a job, and the mean number of jobs that a user submits together.
_MOST_MIN = {"standard": 1440, "highmem": 1440, "taskfarm": 1440, "short": 20, "long": 5760, "largescale": 720}
_SESSION = {"standard": 9.0, "highmem": 9.0, "taskfarm": 60.0, "short": 9.0, "long": 9.0, "largescale": 1.0}


def _classes() -> Iterator[SiteJobClass]:
    """Yield the jobs of each QOS in each cell of the tables, and those of low priority."""
    jobs = sum(map(sum, JOBS)) / (1.0 - LOW_PRIORITY)
    most_jobs = {one.name: int(one.limits.get("MaxSubmitPU", 1)) for one in _QOS}
    for hours, counts, means, sizes in zip(HOURS, JOBS, MEAN_RUN_S, MEAN_NODES, strict=True):
        for bounds, count, mean_s, nodes in zip(SIZES, counts, means, sizes, strict=True):
            for qos, share, run_s in _by_qos(bounds[1], hours[0] * 3600.0, hours[1] * 3600.0, float(mean_s)):
                partition = "highmem" if qos == "highmem" else "standard"
                pool = 1 if qos == "highmem" or (qos == "taskfarm" and bounds[1] <= 8) else 0
                session = min(_SESSION[qos], max(1.0, 384 / bounds[1]))
                if count:
                    yield SiteJobClass(
                        qos, partition, pool, count * share / jobs, Between(*bounds, nodes), bounds, run_s,
                        _MOST_MIN[qos], session, most_jobs[qos],
                    )  # fmt: skip
    yield SiteJobClass(
        "lowpriority", "standard", 1, LOW_PRIORITY, PowerOfTwo(2.5, 1.3), (1, 512), LogNormal(7200, 1.4), 1440, 9.0,
        most_jobs["lowpriority"],
    )  # fmt: skip


def _by_qos(nodes: int, least_s: float, most_s: float, mean_s: float) -> Iterator[tuple[str, float, Between]]:
    """Yield QOS, share and run times of the jobs of a cell with at most so many nodes; the shares' sum is 1."""
    run_s, share = Between(least_s, most_s, mean_s), 1.0
    if nodes > 1024:
        yield "largescale", 1.0, run_s
        return
    if most_s > 86400.0:  # jobs that the limit of a day ended, and longer ones
        share = (LONG_S - mean_s) / (LONG_S - least_s) if nodes <= 64 else 1.0
        if share < 1.0:
            yield "long", 1.0 - share, Between(least_s, most_s, LONG_S)
        run_s = Between(least_s, least_s, least_s)
    if nodes <= 256:
        yield "highmem", share * HIGH_MEMORY, run_s
        share *= 1.0 - HIGH_MEMORY
    if nodes <= 32 and most_s <= 3600.0:
        yield "short", share * SHORT, Between(1.0, 1200.0, mean_s / 2.0)
        share, run_s = share * (1.0 - SHORT), Between(1.0, most_s, mean_s * (1.0 - SHORT / 2.0) / (1.0 - SHORT))
    if nodes <= 16:
        yield "taskfarm", share * TASKFARM, run_s
        share *= 1.0 - TASKFARM
    yield "standard", share, run_s


ARCHER2 = SiteModel(
    "archer2",
    "ARCHER2's jobs of four months (ARCHER2-HPC/usage-data)",
    (
        NodeKind("nid", 5276, 128, 2, 256_000, busy_w=435.0),
        NodeKind("hm", 584, 128, 2, 512_000, busy_w=435.0, weight=10),
    ),
    (
        PartitionModel("standard", (0, 1), "Default=YES MaxTime=5760 DefaultTime=60 OverSubscribe=EXCLUSIVE"),
        PartitionModel("highmem", (1,), "MaxTime=2880 DefaultTime=60 OverSubscribe=EXCLUSIVE"),
    ),
    _QOS,
    tuple(_classes()),
    600_000, 123, LOAD, 700, 105,
    {**SETTINGS, "PriorityWeightAge": "500", "PriorityWeightFairshare": "300", "PriorityWeightJobSize": "100",
     "SchedulerParameters": f"{BUSY},sched_min_interval=12000000,bf_max_job_test=1000,bf_window=5760,"
                            "bf_resolution=600"},
    failures=0.0,
)  # fmt: skip
