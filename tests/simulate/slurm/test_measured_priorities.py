"""Fair shares and priorities that a real Slurm 22.05.8 printed (sshare, sprio) for one small site under many flags.

The site: 4 nodes of 4 CPUs and 4,096 MiB, partitions main (all nodes, factor 6) and half (2 nodes, factor 3), and jobs
that waited for drained nodes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.simulate.kernels.slurm import fair_shares, priority
from pilotfish.simulate.kernels.slurm.tables import PENDING
from pilotfish.simulate.slurm.site import (
    PriorityRules,
    Site,
    SiteAssociation,
    SiteJob,
    SiteNode,
    SitePartition,
    SiteQos,
    SiteRules,
)
from tests.simulate.slurm.small_sites import T0, Hand

pytestmark = pytest.mark.usefixtures("plain_python")
#: account, user, parent account, Fairshare (None: parent), Priority, usage.
ASSOCIATIONS = (
    ("root", "", "", 1, 0, 82), ("root", "root", "root", 1, 0, 0), ("fresh", "", "root", 10, 0, 0),
    ("fresh", "bin", "fresh", 1, 0, 0), ("fresh", "sys", "fresh", 1, 0, 0), ("nil", "", "root", 0, 0, 10),
    ("nil", "irc", "nil", 5, 0, 10), ("research", "", "root", 60, 20, 44), ("research", "backup", "research", 1, 20, 0),
    ("research", "games", "research", 10, 40, 28), ("research", "root", "research", 1, 20, 0),
    ("deep", "", "research", None, 20, 16), ("deep", "lp", "deep", 3, 20, 2), ("lab", "", "deep", 7, 20, 14),
    ("lab", "man", "lab", 2, 20, 10), ("lab", "uucp", "lab", 0, 20, 4), ("teaching", "", "root", 40, 5, 28),
    ("teaching", "mail", "teaching", None, 5, 18), ("teaching", "news", "teaching", 10, 10, 10),
)  # fmt: skip
#: FairShare of the users in this order, by PriorityFlags and FairShareDampeningFactor.
FACTORS = {
    ("", 1.0): (1, 1, 1, 0.083333, 0.583333, 0.166667, 0.583333, 0.416667, 0.333333, 0.25, 0.75, 0.666667),
    ("NO_FAIR_TREE", 1.0): (
        1, 1, 1, 0, 0.502542, 0.297151, 0.502542, 0.412237, 0.314360, 0, 0.518508, 0.518508,
    ),
    ("NO_FAIR_TREE", 3.0): (
        1, 1, 1, 0, 0.795044, 0.667307, 0.795044, 0.744244, 0.679948, 0, 0.803375, 0.803375,
    ),
}  # fmt: skip


def measured_site(jobs: tuple[SiteJob, ...] = (), *, passes_on: bool = True, **rules: object) -> Site:
    """Return the site; `passes_on`: two associations have Fairshare=parent, else 6 and 4."""
    rows = {(account, user): number for number, (account, user, *_) in enumerate(ASSOCIATIONS)}
    shares = {} if passes_on else {("deep", ""): 6, ("teaching", "mail"): 4}
    associations = tuple(
        SiteAssociation(account, user, rows.get((above, ""), -1), shares.get((account, user), share), priority=rank)
        for account, user, above, share, rank, _ in ASSOCIATIONS
    )
    names = tuple(f"n{number}" for number in range(1, 5))
    weights = PriorityRules(
        association=1000.0, fair_share=100_000.0, size=10_000.0, partition=2000.0, qos=3000.0,
        tres={"cpu": 1000.0, "mem": 2000.0, "node": 700.0},
    )  # fmt: skip
    return Site(
        SiteRules(priority=replace(weights, **rules)),
        tuple(SiteNode(name, cpus=4, cores=4, memory_mib=4096) for name in names),
        (
            SitePartition("main", names, is_default=True, job_factor=6, max_time_min=1440),
            SitePartition("half", names[:2], job_factor=3, max_time_min=1440),
        ),
        qos=(SiteQos("normal"), SiteQos("high", 100), SiteQos("low", 25)),
        associations=associations,
        usage=tuple(float(usage) for *_, usage in ASSOCIATIONS),
        jobs=jobs,
    )  # fmt: skip


@pytest.mark.parametrize(("flags", "dampening"), FACTORS)
def test_fair_shares_are_those_that_sshare_printed(flags: str, dampening: float) -> None:
    hand = Hand(measured_site(flags=frozenset(flags.split()), dampening=dampening))
    priority.start_priorities(hand.world, T0)
    users = [row for row, association in enumerate(hand.site.associations) if association.user]
    factors = [float(fair_shares.fair_share_factor(hand.world, row)) for row in users]
    assert factors == pytest.approx(FACTORS[flags, dampening], abs=2e-6)


def waiting(user: str, account: str, partitions: str = "main", qos: str = "normal", **changes: object) -> SiteJob:
    """Return a job that asks for 128 MiB a CPU unless it says otherwise."""
    plain = SiteJob(
        user, "job", user, account, qos, tuple(partitions.split(",")), submit=T0, limit_min=10, memory_per_cpu_mib=128
    )
    return replace(plain, **changes)


JOBS = (
    waiting("games", "research", "half", tasks=3, limit_min=30),
    waiting("news", "teaching", qos="high", min_nodes=2, tasks=8, limit_min=5),
    waiting("mail", "teaching", qos="low", limit_min=60, nice=20),
    waiting(
        "man", "lab", min_nodes=3, tasks=3, is_exclusive=True, memory_per_cpu_mib=None, memory_per_node_mib=100
    ),
    waiting("lp", "deep", "main,half", tasks=2, memory_per_cpu_mib=300, limit_min=20),
    waiting("irc", "nil"),
    waiting("sys", "fresh", limit_min=7),
)  # fmt: skip
#: PRIORITY of each job (of the fifth in main and in half) by PriorityFlags and PriorityFavorSmall.
PRIORITIES = {
    ("", False): (21672, 86225, 71337, 41269, 46414, 45788, 12148, 103815),
    ("", True): (27297, 86225, 78212, 41894, 52664, 52038, 19023, 110690),
    ("SMALL_RELATIVE_TO_TIME", True): (29402, 90225, 79733, 45832, 54414, 53788, 20336, 111895),
    ("NO_FAIR_TREE", False): (40409, 58432, 22714, 30929, 29225, 28598, 3815, 103815),
    ("NO_NORMAL_ALL", False): (836554, 2459400, 417909, 675120, 1278241, 1272241, 279595, 371262),
    ("NO_NORMAL_TRES NO_NORMAL_QOS NO_NORMAL_PART NO_NORMAL_ASSOC", False): (
        836554, 2459400, 417909, 675120, 1278241, 1272241, 279595, 371262,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "favours_small"), PRIORITIES)
def test_priorities_are_those_that_sprio_printed(flags: str, favours_small: bool) -> None:
    place = measured_site(JOBS, passes_on=False, flags=frozenset(flags.split()), favours_small=favours_small)
    hand = Hand(place)
    priority.start_priorities(hand.world, T0)
    for row in range(len(JOBS)):
        hand.world.jobs[row].state = PENDING
        priority.set_priority(hand.world, row, T0)
    assert [int(value) for value in hand.block.part_priority] == list(PRIORITIES[flags, favours_small])
