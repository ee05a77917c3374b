"""Jobs of a higher partition or QOS make jobs of a lower one go, and no more of them than needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pilotfish.simulate.slurm.preemption_tables import unfollowed_preemption
from pilotfish.simulate.slurm.site import Site, SiteJob, SiteQos
from pilotfish.simulate.slurm.twin import replay_site
from tests.simulate.slurm.small_sites import NODES, PARTITION, RULES, T0, job, site

#: A pass follows a submission or an end within this time, seconds.
SOON = 70
BY_PARTITION = replace(RULES, preempt_type="partition_prio", preempt_mode="REQUEUE")


def two_partitions(jobs: Sequence[SiteJob], low_mode: str = "", **changes: Any) -> Site:
    """Return a site with the partitions `low` and `high` of the same nodes."""
    rules = replace(BY_PARTITION, **changes)
    low, high = (replace(PARTITION, name=name, tier=tier) for name, tier in (("low", 1), ("high", 2)))
    return replace(site(jobs, rules=rules), partitions=(replace(low, preempt_mode=low_mode), high))


def low_job(name: str, nodes: int = len(NODES), **changes: Any) -> SiteJob:
    return job(
        id=name, min_nodes=nodes, max_nodes=nodes, is_exclusive=True,
        **{"partitions": ("low",), "run_s": 3000.0, "limit_min": 60} | changes,
    )  # fmt: skip


def high_job(name: str = "high", nodes: int = len(NODES), **changes: Any) -> SiteJob:
    return low_job(name, nodes, **{"partitions": ("high",), "submit": T0 + 300.0, "run_s": 600.0} | changes)


def runs(place: Site) -> list[tuple[str, float, float]]:
    """Return (id, start, end) of each run in seconds after T0, by start."""
    return [(place.jobs[one.job].id, one.start - T0, (one.end or 0.0) - T0) for one in replay_site(place).starts]


def test_a_job_of_a_higher_partition_requeues_one_of_a_lower_partition() -> None:
    first, high, again = runs(two_partitions([low_job("low"), high_job()]))
    assert (first[0], high[0], again[0]) == ("low", "high", "low")
    assert 300 <= first[2] < 300 + SOON and first[2] <= high[1] < first[2] + SOON
    assert again[1] >= max(high[2], first[2] + 121) and again[2] == again[1] + 3000


@pytest.mark.parametrize(
    ("mode", "may_requeue", "names"),
    [("CANCEL", True, ["low", "high"]), ("REQUEUE", False, ["low", "high"]), ("REQUEUE", True, ["low", "high", "low"])],
)
def test_a_victim_is_cancelled_by_its_mode_or_if_it_may_not_be_requeued(
    mode: str, may_requeue: bool, names: list[str]
) -> None:
    place = two_partitions([low_job("low", is_requeued=may_requeue), high_job()], low_mode=mode)
    assert [name for name, _, _ in runs(place)] == names


@pytest.mark.parametrize("changes", [{"preempt_type": ""}, {"preempt_mode": "OFF"}, {"preempt_exempt_s": 1e6}])
def test_no_job_goes_where_preemption_is_off_or_it_is_exempt(changes: dict[str, Any]) -> None:
    low, high = runs(two_partitions([low_job("low"), high_job()], **changes))
    assert low[2] - low[1] == 3000 and high[1] >= low[2]


def test_jobs_of_the_same_tier_do_not_preempt_each_other() -> None:
    place = two_partitions([high_job("1", submit=T0 + 0.0, run_s=3000.0), high_job("2")])
    assert [one[2] - one[1] for one in runs(place)] == [3000, 600]


def test_only_as_many_victims_go_as_are_needed() -> None:
    place = two_partitions([low_job("a", 3), low_job("b", 2), low_job("c", 1), high_job(nodes=2)])
    ended = {name for name, start, end in runs(place) if end - start < 600}
    assert ended == {"b"}  # the smaller ones go first, but c is not needed when b, the last one taken, stands first


def test_a_qos_preempts_the_qos_that_it_names() -> None:
    qos = [SiteQos("high", preempts=frozenset({"normal"}))]
    rules = replace(BY_PARTITION, preempt_type="qos")
    wide = {"min_nodes": len(NODES), "is_exclusive": True}
    jobs = [job(run_s=3000.0, **wide), job("bob", id="2", qos="high", submit=T0 + 300.0, **wide)]
    low, high, again = runs(site(jobs, qos=qos, rules=rules))
    assert (low[0], high[0], again[0]) == ("1", "2", "1") and low[2] <= high[1] < 300 + 2 * SOON


def test_what_is_not_followed_is_named() -> None:
    assert not list(unfollowed_preemption(two_partitions([low_job("low")])))
    sentences = list(unfollowed_preemption(two_partitions([low_job("low")], low_mode="SUSPEND,GANG")))
    assert sentences == ["PreemptMode=SUSPEND of low: its jobs are not preempted; others wait longer for them"]
