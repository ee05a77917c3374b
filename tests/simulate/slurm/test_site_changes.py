"""Changes of a site: what they change, and that they change nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.slurm.site import (
    JobRecord,
    NodeEvent,
    Site,
    SiteJob,
    SiteNode,
    SitePartition,
    SiteRules,
    SiteSwitch,
)
from pilotfish.simulate.slurm.site_changes import (
    with_drained_nodes,
    with_held_jobs,
    with_load,
    with_more_nodes,
    with_moved_jobs,
)

NODES = tuple(SiteNode(f"n{number}", cpus=4 * number, cores=4) for number in (1, 2))
PARTITIONS = (SitePartition("all", ("n1", "n2")), SitePartition("small", ("n1",)))


def job(number: int, submit: float) -> SiteJob:
    runs = (JobRecord("COMPLETED", eligible=submit + 5, start=submit + 7, end=submit + 100),)
    return SiteJob(str(number), "", "ann", "x", "", ("all",), submit, runs, begin=submit + 5, deadline=submit + 900)


SITE = Site(
    SiteRules(), NODES, PARTITIONS, events=(NodeEvent("n1", 5000.0, None),),
    jobs=tuple(job(number, 1000.0 + 100.0 * number) for number in range(5)),
)  # fmt: skip


def test_drained_nodes_are_one_event_more_each() -> None:
    site = with_drained_nodes(SITE, ("n2",), 1500.0, 2000.0)
    assert site.events == (NodeEvent("n2", 1500.0, 2000.0), *SITE.events)
    assert replace(site, events=SITE.events) == SITE
    with pytest.raises(ConfigError, match=r"'n3' is not a node \(allowed: n1 to n2\)"):
        with_drained_nodes(SITE, ("n1", "n3"), 0.0, None)


def test_more_nodes_join_the_partitions_of_their_model() -> None:
    site = with_more_nodes(SITE, 2, "n1")
    assert [node.name for node in site.nodes] == ["n1", "n2", "added1", "added2"]
    assert {node.cpus for node in site.nodes[2:]} == {4}
    assert [one.nodes for one in site.partitions] == [("n1", "n2", "added1", "added2"), ("n1", "added1", "added2")]
    assert with_more_nodes(SITE, 1).partitions[1] == PARTITIONS[1]
    assert replace(site, nodes=SITE.nodes, partitions=SITE.partitions) == SITE
    switches = (SiteSwitch("s0", ("n1",)), SiteSwitch("s1", ("n2",)))
    more = with_more_nodes(replace(SITE, switches=switches), 1, "n1")
    assert more.switches == (SiteSwitch("s0", ("n1", "added1")), switches[1])
    with pytest.raises(ConfigError, match="'n9' is not a node"):
        with_more_nodes(SITE, 1, "n9")


def test_load_moves_submissions_and_all_times_of_a_job_with_them() -> None:
    site = with_load(SITE, 2.0)
    assert [one.submit for one in site.jobs] == [1000.0 + 50.0 * number for number in range(5)]
    for old, new in zip(SITE.jobs, site.jobs, strict=True):
        shift = new.submit - old.submit
        assert new == replace(job(int(old.id), old.submit + shift))
    assert with_load(SITE, 1.0) == SITE
    assert replace(site, jobs=SITE.jobs) == SITE


def test_a_share_of_the_jobs_of_a_qos_gets_another_and_nothing_else_changes() -> None:
    jobs = tuple(replace(job(number, 1000.0 + number), qos=("low", "high")[number % 4 == 0]) for number in range(4000))
    site = replace(SITE, jobs=jobs)
    changed = with_moved_jobs(site, "low", "high", 0.25)
    moved = [new for old, new in zip(jobs, changed.jobs, strict=True) if old != new]
    assert 650 < len(moved) < 850 and {one.qos for one in moved} == {"high"}
    assert tuple(replace(new, qos=old.qos) for old, new in zip(jobs, changed.jobs, strict=True)) == jobs
    assert changed == with_moved_jobs(site, "low", "high", 0.25) != with_moved_jobs(site, "low", "high", 0.25, seed=1)
    more = {one.id for one in with_moved_jobs(site, "low", "high", 0.5).jobs if one.qos == "high"}
    assert more > {one.id for one in moved}  # a larger share moves the same jobs and more
    with pytest.raises(ConfigError, match="'loww' is not a QOS; did you mean 'low'"):
        with_moved_jobs(site, "loww", "high", 0.5)


def test_jobs_of_a_qos_are_held_until_a_time_of_their_own() -> None:
    held, other = replace(job(1, 100.0), qos="large", begin=None), replace(job(2, 100.0), qos="small")
    late = replace(held, begin=107.5)
    changed = with_held_jobs(replace(SITE, jobs=(held, other, late)), "large", lambda submit: submit + 7.0)
    assert tuple(changed.jobs) == (replace(held, begin=107.0), other, late)
