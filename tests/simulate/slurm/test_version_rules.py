"""Rules that changed between versions of Slurm: each decides a small case in another way from its version on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pilotfish.simulate.slurm.site import (
    JobRecord,
    PriorityRules,
    SchedulerRules,
    Site,
    SiteJob,
    SiteNode,
    SitePartition,
    SiteRules,
)
from pilotfish.simulate.slurm.twin import SiteStart, planned_starts, replay_site
from pilotfish.simulate.slurm.unfollowed import unfollowed_rules
from pilotfish.simulate.slurm.version_rules import NEWEST, VERSION_RULES, version_rules
from tests.simulate.slurm.small_sites import T0

NODES = tuple(SiteNode(f"n{place}", cpus=4, cores=4) for place in range(4))
MAIN = SitePartition("main", tuple(node.name for node in NODES), is_default=True)
#: Jobs come in the order of their submission.
IN_TURN = SiteRules(priority=PriorityRules(is_multifactor=False), scheduler=SchedulerRules(time_min_as_soft_limit=True))


def job(name: str, at: int, nodes: int, minutes: int, **changes: Any) -> SiteJob:
    plain = {
        "limit_min": minutes, "run_s": 60.0 * minutes, "min_nodes": nodes, "max_nodes": nodes, "is_exclusive": True,
    }  # fmt: skip
    return SiteJob(name, name, "alice", "x", "normal", changes.pop("partitions", ("main",)), T0 + at, **plain | changes)


def starts(
    jobs: list[SiteJob], version: tuple[int, int], *, partitions: tuple[SitePartition, ...] = (MAIN,), **changes: Any
) -> dict[str, SiteStart]:  # fmt: skip
    site = Site(replace(IN_TURN, version=version, **changes), NODES, partitions, jobs=tuple(jobs))
    return {jobs[start.job].id: start for start in replay_site(site).starts}


def on(name: str, at: int, minutes: int, *nodes: str, **changes: Any) -> SiteJob:
    return job(name, at, len(nodes), minutes, required_nodes=nodes, **changes)


@pytest.mark.parametrize(("version", "is_late"), [((24, 5), False), ((24, 11), True)])
def test_a_closed_partition_takes_its_nodes_from_others_late(version: tuple[int, int], is_late: bool) -> None:
    """`wide` closes main, whose next job is behind `low`'s: `low` may still take n3 in a main pass."""
    low = replace(MAIN, name="low", is_default=False)
    jobs = [on("runs", 0, 60, "n0"), job("wide", 10, 4, 60), job("low", 11, 1, 60, partitions=("low",))]
    replayed = starts(jobs, version, partitions=(MAIN, low), is_backfilling=False)
    assert (replayed["low"].start < replayed["wide"].start) == is_late


def running(name: str, minutes: int, *nodes: str) -> SiteJob:
    record = JobRecord("RUNNING", T0, T0, None, "main", nodes, 4 * len(nodes), started_by="backfill")
    return on(name, 0, minutes, *nodes, runs=(record,))


def planned(jobs: list[SiteJob], version: tuple[int, int], **changes: Any) -> dict[str, float]:
    """Return id -> minutes from T0 to the planned start of each waiting job."""
    site = Site(replace(IN_TURN, version=version, **changes), NODES, (MAIN,), jobs=tuple(jobs))
    ((_, rows),) = planned_starts(site, [T0 + 45.0])
    return {jobs[row].id: (start - T0) / 60 for row, start in rows.items()}


@pytest.mark.parametrize(("version", "minutes"), [((24, 11), 65), ((25, 5), 60)])
def test_a_planned_start_does_not_wait_for_jobs_on_other_nodes(version: tuple[int, int], minutes: int) -> None:
    """`two` has n0 and n1 after an hour. The second window of the search holds the end of `other`, too."""
    jobs = [running("a", 10, "n0"), running("b", 60, "n1"), running("other", 65, "n2"), running("c", 500, "n3")]
    assert planned([*jobs, job("two", 10, 2, 60)], version)["two"] == minutes


@pytest.mark.parametrize(("version", "minutes"), [((24, 5), 120), ((24, 11), 210)])
def test_a_start_is_looked_for_where_the_plan_has_room(version: tuple[int, int], minutes: int) -> None:
    """`wide` has all nodes from minute 60 to 120, so `long` comes then, on n1, which is free now, or on n0.

    `next` wants n0 too.
    """
    jobs = [running("a", 60, "n0"), job("wide", 10, 4, 60), job("long", 11, 1, 90), on("next", 12, 90, "n0")]
    starts = planned(jobs, version)
    assert starts["wide"] == pytest.approx(60, abs=1) and starts["long"] == pytest.approx(120, abs=2)
    assert starts["next"] == pytest.approx(minutes, abs=2)


@pytest.mark.parametrize(("version", "is_shared"), [((23, 11), True), ((24, 5), False)])
def test_jobs_shorter_than_the_resolution_do_not_share_a_place_in_the_plan(
    version: tuple[int, int], is_shared: bool
) -> None:
    """Both jobs take a minute, and a place in the plan ten."""
    jobs = [running("a", 60, "n0"), on("one", 10, 1, "n0"), on("other", 11, 1, "n0")]
    starts = planned(jobs, version, scheduler=SchedulerRules(bf_resolution=600))
    assert (starts["other"] == starts["one"]) == is_shared


@pytest.mark.parametrize(("version", "run_min"), [((22, 5), 58), ((23, 11), 110)])
def test_a_job_with_a_soft_limit_is_planned_with_it_and_keeps_its_limit(version: tuple[int, int], run_min: int) -> None:
    """`wide` has all nodes in 60 minutes. `soft` starts before it, and its limit is shortened, or not."""
    jobs = [
        on("runs", 0, 60, "n0", "n1"),
        job("wide", 10, 4, 60),
        job("soft", 11, 1, 120, time_min_min=30, run_s=6600.0),
    ]
    soft = starts(jobs, version)["soft"]
    assert soft.start < T0 + 70 and soft.end is not None
    assert (soft.end - soft.start) / 60 == pytest.approx(run_min, abs=2)


def test_each_rule_begins_with_its_version() -> None:
    for name, rule in VERSION_RULES.items():
        for version in ((22, 5), (23, 11), (24, 11), (25, 5), NEWEST, (26, 5)):
            assert version_rules(replace(IN_TURN, version=version))[name] == int(version >= rule.since)


def test_a_soft_limit_is_a_rule_only_where_the_site_asks_for_it() -> None:
    rules = replace(IN_TURN, version=NEWEST, scheduler=SchedulerRules())
    assert version_rules(rules)["soft_time_min"] == 0


def test_a_version_that_is_too_new_is_named() -> None:
    site = Site(replace(IN_TURN, version=(26, 5), scheduler=SchedulerRules()), NODES, (MAIN,))
    assert list(unfollowed_rules(site)) == [
        "Slurm 26.05: it is followed as 25.11; what changed since then is not known"
    ]
    assert not list(unfollowed_rules(replace(site, rules=replace(site.rules, version=NEWEST))))
