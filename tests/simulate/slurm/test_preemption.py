"""Jobs of a higher partition or QOS make jobs of a lower one go, and no more of them than needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pilotfish.simulate.slurm.preemption_tables import unfollowed_preemption
from pilotfish.simulate.slurm.site import PriorityRules, Site, SiteJob, SiteQos
from pilotfish.simulate.slurm.twin import replay_site
from tests.simulate.slurm.small_sites import NODES, PARTITION, RULES, T0, job, site

#: A pass follows a submission or an end within this time, seconds.
SOON = 70
BY_PARTITION = replace(RULES, preempt_type="partition_prio", preempt_mode="REQUEUE")
#: The older job has the higher priority; `nice` counts, too.
BY_AGE = PriorityRules(is_multifactor=True, age=1000)


def two_partitions(jobs: Sequence[SiteJob], low_mode: str = "", **changes: Any) -> Site:
    """Return a site with the partitions `low` and `high` of the same nodes."""
    rules = replace(BY_PARTITION, **changes)
    low, high = (replace(PARTITION, name=name, tier=tier) for name, tier in (("low", 1), ("high", 2)))
    return replace(site(jobs, rules=rules), partitions=(replace(low, preempt_mode=low_mode), high))


def low_job(name: str, nodes: int = len(NODES), **changes: Any) -> SiteJob:
    return job(
        id=name, min_nodes=nodes, max_nodes=nodes,
        **{"partitions": ("low",), "run_s": 3000.0, "limit_min": 60, "is_exclusive": True} | changes,
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


def test_a_victim_has_its_grace_time_and_goes_at_the_next_check_of_limits() -> None:
    place = two_partitions([low_job("low"), low_job("short", 1, run_s=400.0), high_job()])
    place = replace(place, partitions=tuple(replace(part, grace_time_s=200) for part in place.partitions))
    place = replace(place, jobs=(replace(place.jobs[0], min_nodes=5, max_nodes=5), *place.jobs[1:]))
    low, short, high, again = runs(place)
    assert (low[0], short[0], high[0], again[0]) == ("low", "short", "high", "low")
    assert 500 <= low[2] < 500 + SOON + 30  # 300, and its grace time
    assert short[2] - short[1] == 400  # it ends by itself before


def test_a_job_that_can_preempt_stands_before_a_higher_one_that_it_could_preempt() -> None:
    rules = replace(BY_PARTITION, preempt_type="qos", preempt_mode="REQUEUE")
    qos = [SiteQos("high", preempts=frozenset({"normal"}))]
    wide = {"min_nodes": len(NODES), "is_exclusive": True}
    jobs = [
        job("bob", id="first", qos="high", **wide),
        job(id="normal", submit=T0 + 100, **wide),  # it is older, else of the same priority
        job("bob", id="high", qos="high", submit=T0 + 200, **wide),
    ]
    assert [one[0] for one in runs(site(jobs, qos=qos, rules=rules))] == ["first", "high", "normal"]


def test_jobs_of_one_qos_preempt_each_other_within_it_by_priority() -> None:
    qos = [SiteQos("high", preempt_mode="REQUEUE,WITHIN")]
    wide = {"min_nodes": len(NODES), "is_exclusive": True, "qos": "high", "run_s": 3000.0}
    jobs = [job(id="low", **wide), job("bob", id="high", submit=T0 + 300, nice=-500, **wide)]
    for preempt_type, names in (("qos", ["low", "high", "low"]), ("", ["low", "high"])):
        rules = replace(BY_PARTITION, preempt_type=preempt_type)
        assert [one[0] for one in runs(site(jobs, qos=qos, rules=replace(rules, priority=BY_AGE)))] == names


@pytest.mark.parametrize(("exempt", "is_preempted"), [(None, False), (100.0, True)])
def test_the_exempt_time_of_a_qos_comes_before_that_of_the_cluster(exempt: float | None, is_preempted: bool) -> None:
    place = two_partitions([low_job("low", qos="high"), high_job()], preempt_exempt_s=1e6)
    place = replace(place, qos=(SiteQos("high", preempt_exempt_s=exempt), *place.qos))
    assert (len(runs(place)) == 3) == is_preempted


@pytest.mark.parametrize(("youngest", "victim"), [(False, "older"), (True, "younger")])
def test_the_youngest_job_goes_first_where_the_site_says_so(youngest: bool, victim: str) -> None:
    place = two_partitions([low_job("older", 3), low_job("younger", 3, submit=T0 + 100.0), high_job(nodes=3)])
    scheduler = replace(place.rules.scheduler, preempt_youngest_first=youngest, preempt_reorder_count=0)
    ended = {
        name
        for name, start, end in runs(replace(place, rules=replace(place.rules, scheduler=scheduler)))
        if end - start < 600
    }
    assert ended == {victim}


def test_a_job_is_planned_as_if_all_that_it_can_preempt_were_gone() -> None:
    """It could have n0 and n1 when n1 is free in an hour; so a job of 90 minutes beside it goes to n2."""
    one: dict[str, Any] = {"is_exclusive": False}
    jobs = [
        low_job("low", 1, required_nodes=("n0",), limit_min=500, **one),
        high_job("hour", 1, required_nodes=("n1",), submit=T0, run_s=3600.0),
        high_job("long", 3, required_nodes=("n3", "n4", "n5"), submit=T0, limit_min=500, run_s=3e4),
        high_job("part", 1, required_nodes=("n2",), submit=T0, limit_min=500, run_s=3e4, **one),
        high_job("wide", 2),
        high_job("small", 1, submit=T0 + 301, limit_min=90, **one),
    ]
    place = two_partitions(jobs)
    nodes = {place.jobs[start.job].id: start.nodes for start in replay_site(place).starts}
    assert nodes["wide"] == ("n0", "n1") and nodes["small"] == ("n2",)


def test_a_job_that_backfill_lets_preempt_takes_the_smallest_victims_not_the_first_nodes() -> None:
    """Main passes are closed by `all`, which cannot start before `other` ends: backfill looks for victims."""
    jobs = [
        low_job("wide", 2, required_nodes=("n0", "n1"), limit_min=500),
        low_job("narrow", 1, required_nodes=("n2",), limit_min=500),
        high_job("other", 2, required_nodes=("n3", "n4"), submit=T0, limit_min=500, run_s=3000.0),
        high_job("all", 6, submit=T0 + 200, limit_min=500),
        high_job("short", 2, limit_min=10, run_s=60.0),
    ]
    place = two_partitions(jobs)
    by_name = runs(place)
    victims = {name for name, start, end in by_name if name in ("wide", "narrow") and end < 500}
    nodes = {place.jobs[start.job].id: start.nodes for start in replay_site(place).starts}
    assert victims == {"narrow"} and nodes["short"] == ("n2", "n5")


def test_a_suspended_job_stands_still_and_runs_on_when_its_cores_are_free() -> None:
    """`low` has 203 s to run when `high` comes, and 10 minutes of limit less 297 s."""
    low, high = runs(two_partitions([low_job("low", run_s=500.0, limit_min=10), high_job()], low_mode="SUSPEND,GANG"))
    assert high[1] == pytest.approx(300, abs=SOON) and high[2] == high[1] + 600
    assert low[2] - low[1] == pytest.approx(500 + 600, abs=2)


def test_jobs_that_cannot_preempt_leave_the_cores_of_a_suspended_job_alone() -> None:
    """`next` would fit on the nodes that `high` leaves, where `low` goes on."""
    jobs = [low_job("low"), high_job(nodes=3), low_job("next", 2, submit=T0 + 400.0, run_s=60.0)]
    by_name = {name: (start, end) for name, start, end in runs(two_partitions(jobs, low_mode="SUSPEND,GANG"))}
    assert by_name["low"][1] == pytest.approx(3000 + 600, abs=5) and by_name["next"][0] >= by_name["low"][1]


def test_a_job_on_the_nodes_of_a_suspended_one_needs_no_other_victim() -> None:
    """`second` fits next to `high` on nodes of `low`, which stands still already, until both have ended."""
    rest = high_job("rest", 2, submit=T0, run_s=9000.0, limit_min=200)
    jobs = [low_job("low", 4), rest, high_job(nodes=2), high_job("second", 2, submit=T0 + 380.0)]
    by_name = {name: (start, end) for name, start, end in runs(two_partitions(jobs, low_mode="SUSPEND,GANG"))}
    assert by_name["second"][0] == pytest.approx(380, abs=SOON)
    still = by_name["second"][1] - by_name["high"][0]
    assert by_name["low"][1] - by_name["low"][0] == pytest.approx(3000 + still, abs=2)


def test_memory_of_a_suspended_job_is_not_free() -> None:
    """A node has 1,000 MiB; `low` keeps 600."""
    for asks, starts_at_once in ((300, True), (600, False)):
        memory = {"is_exclusive": False, "tasks": 24, "min_cpus": 24, "memory_per_node_mib": 600}
        jobs = [low_job("low", **memory), high_job(**memory | {"memory_per_node_mib": asks})]
        place = two_partitions(jobs, low_mode="SUSPEND,GANG")
        place = replace(place, rules=replace(place.rules, counts_memory=True))
        by_name = {name: start for name, start, _ in runs(place)}
        assert (by_name["high"] < 300 + SOON) == starts_at_once


def test_a_job_may_be_requeued_as_often_as_it_is_preempted() -> None:
    highs = [high_job(str(number), submit=T0 + 300.0 + 400 * number, run_s=10.0, limit_min=5) for number in range(12)]
    place = two_partitions([low_job("low"), *highs])
    assert [name for name, _, _ in runs(place)].count("low") > 8


def test_what_is_not_followed_is_named() -> None:
    assert not list(unfollowed_preemption(two_partitions([low_job("low")])))
    assert not list(unfollowed_preemption(two_partitions([low_job("low")], low_mode="SUSPEND,GANG")))
    (sentence,) = unfollowed_preemption(two_partitions([low_job("low")], preempt_mode="REQUEUE,PRIORITY"))
    assert sentence.startswith("PreemptMode=PRIORITY")
    (sentence,) = unfollowed_preemption(two_partitions([low_job("low")], preempt_type="", preempt_mode="GANG"))
    assert sentence.startswith("PreemptMode=GANG")
