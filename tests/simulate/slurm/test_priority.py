"""Priorities of waiting jobs: each factor and flag of priority/multifactor, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pilotfish.simulate.kernels.slurm import priority
from pilotfish.simulate.kernels.slurm.tables import HELD, PENDING
from pilotfish.simulate.slurm.share_tables import unfollowed_shares
from pilotfish.simulate.slurm.site import PriorityRules, SiteJob, SitePartition, SiteQos, SiteRules
from tests.simulate.slurm.small_sites import PARTITION, T0, Hand, job, site

pytestmark = pytest.mark.usefixtures("plain_python")
NODES_TOTAL, CPUS_TOTAL = 6, 24


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def queue(
    *jobs: SiteJob, partitions: tuple[SitePartition, ...] = (PARTITION,), qos_rows: Sequence[SiteQos] = (),
    flags: str = "", **rules: Any,
) -> Hand:  # fmt: skip
    """Return the state of a site with these jobs in the queue since T0, eligible."""
    weights = PriorityRules(**rules, flags=words(flags))
    place = site(list(jobs), qos=qos_rows, rules=SiteRules(priority=weights))
    hand = Hand(replace(place, partitions=partitions))
    priority.start_priorities(hand.world, T0)
    for row in range(len(jobs)):
        if hand.world.jobs[row].state != HELD:
            hand.world.jobs[row].state, hand.world.jobs[row].accrue = PENDING, T0
        priority.set_priority(hand.world, row, T0)
    return hand


def priorities(hand: Hand) -> list[int]:
    """Return the priorities of all jobs, one for each partition of a job."""
    return [int(value) for value in hand.block.part_priority]


def test_age_grows_until_its_greatest_value_and_in_steps_of_the_calculation() -> None:
    hand = queue(job(), age=1000.0, max_age_s=600.0)
    assert priorities(hand) == [1]  # 0 is kept for held jobs
    for seconds, points in ((300, 500), (599, 998), (600, 1000), (900, 1000)):
        priority.calculate_priorities(hand.world, T0 + seconds)
        assert priorities(hand) == [points]
    hand.world.jobs[0].accrue = 0  # no longer eligible
    priority.calculate_priorities(hand.world, T0 + 1200)
    assert priorities(hand) == [1]


def test_accrue_always_counts_from_the_submission() -> None:
    plain, always = (
        queue(job(), age=1000.0, max_age_s=600.0),
        queue(job(), age=1000.0, max_age_s=600.0, flags="ACCRUE_ALWAYS"),
    )
    for hand, points in ((plain, 1), (always, 500)):
        hand.world.jobs[0].accrue = 0
        priority.calculate_priorities(hand.world, T0 + 300)
        assert priorities(hand) == [points]


@pytest.mark.parametrize(
    ("nodes", "cpus", "limit", "flags", "favours_small", "factor"),
    [
        (2, 6, 60, "", False, (2 / 6 + 6 / 24) / 2),
        (2, 6, 60, "", True, (4 / 6 + 18 / 24) / 2),
        (2, 6, 60, "SMALL_RELATIVE_TO_TIME", False, 8 / 60 / 24),
        (1, 6, 30, "SMALL_RELATIVE_TO_TIME", False, 6 / 30 / 24),
        (1, 6, 30, "SMALL_RELATIVE_TO_TIME", True, 1 - 6 / 30 / 24),
    ],
)
def test_the_size_factor(nodes: int, cpus: int, limit: int, flags: str, favours_small: bool, factor: float) -> None:
    task = job(min_nodes=nodes, min_cpus=cpus, limit_min=limit)
    hand = queue(task, size=100_000.0, flags=flags, favours_small=favours_small)
    assert priorities(hand) == [int(100_000 * factor)]


def test_a_job_counts_the_cpus_of_its_last_test() -> None:
    hand = queue(job(is_exclusive=True), size=1000.0)
    assert priorities(hand) == [int(500 / NODES_TOTAL + 500 / CPUS_TOTAL)]
    hand.world.jobs[0].counted_cpus = 4
    priority.calculate_priorities(hand.world, T0 + 300)
    assert priorities(hand) == [int(500 / NODES_TOTAL + 500 * 4 / CPUS_TOTAL)]


@pytest.mark.parametrize(
    ("flags", "points"), [("", (250, 1000)), ("NO_NORMAL_PART", (5000, 20_000)), ("NO_NORMAL_ALL", (5000, 20_000))]
)
def test_each_partition_of_a_job_gives_it_a_priority(flags: str, points: tuple[int, int]) -> None:
    names = PARTITION.nodes
    parts = (SitePartition("low", names, job_factor=5), SitePartition("high", names, job_factor=20, tier=2))
    hand = queue(job(partitions=("low", "high")), partitions=parts, partition=1000.0, flags=flags)
    by_name = {parts[part].name: value for part, value in zip(hand.block.job_parts, priorities(hand), strict=True)}
    assert (by_name["low"], by_name["high"]) == points


@pytest.mark.parametrize(
    ("flags", "points"), [("", [1000, 250]), ("NO_NORMAL_QOS", [40_000, 10_000]), ("NO_NORMAL_ALL", [40_000, 10_000])]
)
def test_qos_count_by_the_largest_one(flags: str, points: list[int]) -> None:
    rows = [SiteQos("high", 40), SiteQos("low", 10)]
    hand = queue(job(qos="high"), job(qos="low", id="2"), qos_rows=rows, qos=1000.0, flags=flags)
    assert priorities(hand) == points


@pytest.mark.parametrize(
    ("flags", "points"), [("", [1000, 250]), ("NO_NORMAL_ASSOC", [40_000, 10_000]), ("NO_NORMAL_ALL", [40_000, 10_000])]
)
def test_associations_count_by_the_largest_one(flags: str, points: list[int]) -> None:
    place = site(
        [job(), job("bob", id="2")], rules=SiteRules(priority=PriorityRules(association=1000.0, flags=words(flags)))
    )
    rows = tuple(replace(row, priority={"alice": 40, "bob": 10}.get(row.user, 0)) for row in place.associations)
    hand = Hand(replace(place, associations=rows))
    for row in range(2):
        priority.set_priority(hand.world, row, T0)
    assert priorities(hand) == points


@pytest.mark.parametrize(
    ("flags", "points"),
    [
        ("", 800 * 3 / 24 + 600 * 2000 / 6000 + 90 * 2 / 6 + 120 * 2 / 12),
        ("NO_NORMAL_TRES", 800 * 3 + 600 * 2000 + 90 * 2 + 120 * 2),
        ("NO_NORMAL_ALL", 800 * 3 + 600 * 2000 + 90 * 2 + 120 * 2),
    ],
)
def test_trackable_resources_count_by_those_of_the_partition(flags: str, points: float) -> None:
    weights = {"cpu": 800.0, "mem": 600.0, "node": 90.0, "gres/gpu": 120.0}
    task = job(min_nodes=2, min_cpus=3, memory_per_node_mib=1000, gpus_per_node=1)
    assert priorities(queue(task, tres=weights, flags=flags)) == [int(points)]
    per_cpu = replace(task, memory_per_node_mib=None, memory_per_cpu_mib=500)
    assert priorities(queue(per_cpu, tres={"mem": 600.0}, flags="NO_NORMAL_TRES")) == [600 * 1500]


def test_nice_lowers_a_priority_to_one_at_least() -> None:
    hand = queue(job(nice=30), job(nice=-30, id="2"), job(nice=5000, id="3"), partition=100.0)
    assert priorities(hand) == [70, 130, 1]


def test_a_held_job_has_priority_zero_until_it_is_released() -> None:
    hand = queue(job(released=float(T0 + 500)), partition=100.0)
    assert priorities(hand) == [0]
    priority.calculate_priorities(hand.world, T0 + 300)
    assert priorities(hand) == [0]
    hand.world.jobs[0].state = PENDING
    priority.set_priority(hand.world, 0, T0 + 500)
    assert priorities(hand) == [100]


@pytest.mark.parametrize(("flags", "points"), [("", 100), ("INCR_ONLY", 175)])
def test_incr_only_never_lowers_a_priority(flags: str, points: int) -> None:
    hand = queue(job(), size=600.0, partition=100.0, flags=flags)
    hand.world.jobs[0].nice = 0
    assert priorities(hand) == [100 + int(300 / 6 + 300 / 24)]
    hand.world.jobs[0].nice = -13
    priority.calculate_priorities(hand.world, T0 + 300)
    hand.world.jobs[0].nice = 62
    priority.calculate_priorities(hand.world, T0 + 600)
    assert priorities(hand) == [points]


def test_sums_are_truncated() -> None:
    assert priorities(queue(job(), age=0.0, size=1.0, partition=99.99)) == [int(99.99 + 0.5 / 6 + 0.5 / 24)]


def test_without_multifactor_jobs_rank_by_submission_less_their_nice() -> None:
    jobs = [job(), job(id="2", nice=10), job(id="3")]
    hand = Hand(site(jobs, rules=SiteRules(priority=PriorityRules(is_multifactor=False, age=1000.0))))
    for row in range(3):
        hand.world.jobs[row].state = PENDING
        priority.set_priority(hand.world, row, T0)
    first = priorities(hand)
    assert first == [first[0], first[0] - 11, first[0] - 2]
    priority.calculate_priorities(hand.world, T0 + 300)
    assert priorities(hand) == first


def test_what_is_not_followed_is_said() -> None:
    weights = PriorityRules(
        flags=words("DEPTH_OBLIVIOUS NO_NORMAL_ALL CALCULATE_RUNNING NEW_FLAG"), tres={"cpu": 1.0, "license/a": 2.0}
    )
    part = replace(PARTITION, billing_weights={"mem": 1.0, "bb/b": 2.0})
    place = replace(site([], rules=SiteRules(priority=weights)), partitions=(part,))
    assert list(unfollowed_shares(place)) == [
        "PriorityFlags CALCULATE_RUNNING: not followed; running jobs keep their priority",
        "PriorityFlags NEW_FLAG: not followed; priorities may differ",
        "PriorityFlags DEPTH_OBLIVIOUS: as documented; 22.05 was measured to share otherwise among siblings",
        "PriorityWeightTRES license/a: not followed; jobs get no points for it",
        "TRESBillingWeights bb/b: not followed; the usage of jobs that have it is lower",
    ]
    assert list(unfollowed_shares(site([]))) == []


# --- billing ---
WEIGHTS = {"cpu": 1.0, "mem": 0.01, "node": 2.0, "gres/gpu": 4.0}


@pytest.mark.parametrize(
    ("weights", "flags", "is_exclusive", "billing"),
    [
        (None, "", False, 4.0),
        (None, "", True, 8.0),
        (WEIGHTS, "", False, 4.0 + 6.0 + 4.0 + 8.0),
        (WEIGHTS, "", True, 8.0 + 6.0 + 4.0 + 8.0),
        (WEIGHTS, "MAX_TRES", False, 8.0),
        (WEIGHTS, "MAX_TRES_GRES", False, 6.0 + 8.0),
    ],
)
def test_billing_weighs_what_a_job_has(
    weights: dict[str, float] | None, flags: str, is_exclusive: bool, billing: float
) -> None:
    part = replace(PARTITION, billing_weights=weights)
    hand = queue(job(is_exclusive=is_exclusive, gpus_per_node=1), partitions=(part,), flags=flags)
    hand.start(0, [0, 3], cpus=2, memory=300)
    assert priority.billing_of(hand.world, 0) == pytest.approx(billing)
