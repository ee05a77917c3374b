"""Slurm's whole queue as its own scheduler sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pilotfish.adapters.slurm.placement.partitions import CoreSharing, Partition, SlurmReservation
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.site_state import SiteState
from pilotfish.adapters.slurm.whole_queue import observed_queue
from pilotfish.simulate.model.snapshot import JobState, NodeState
from tests.support.slurm_jobs import BOTH, NODE, NOW, RUNNING

NODES = {name: replace(NODE, name=name) for name in ("n0", "n1")} | {
    "n2": replace(NODE, name="n2", state=NodeState.DRAINED)
}
PLAIN = SlurmJob(
    8, JobState.PENDING, "Resources", name="align", uid=5, account="research", partition="main", cpus=2,
    time_limit=600.0, submit=990.0, begin=990.0, priority=10,
)  # fmt: skip
SITE = SiteState(partitions=BOTH)


def seen(*jobs: SlurmJob, site: SiteState = SITE) -> dict[str, Any]:
    queue = observed_queue({job.id: job for job in jobs}, NODES, site, NOW, uid=0)
    return {job.key: job for job in queue.jobs}


def test_jobs_come_in_slurms_order_with_what_they_ask_for() -> None:
    first, second = replace(PLAIN, id=9, priority=11), replace(PLAIN, id=3, partition="fast")
    tiers = SiteState(partitions={**BOTH, "fast": Partition("fast", nodes=frozenset({"n0"}), tier=2)})
    queue = seen(PLAIN, first, second, RUNNING, site=tiers)
    assert [key for key, job in queue.items() if job.waiting] == ["slurm/3", "slurm/9", "slurm/8"]
    job = queue["slurm/8"]
    assert (job.name, job.owner, job.account, job.queue, job.nodes, job.cores) == ("align", 5, "research", "main", 1, 2)
    assert (job.walltime, job.where, job.manager_start, job.unknown) == (600.0, frozenset(NODES), None, "")
    running = queue["slurm/1"]
    assert (running.state, running.where, running.unknown) == (JobState.RUNNING, frozenset({"n0"}), "")
    assert seen(replace(PLAIN, start=1600.0))["slurm/8"].manager_start == 1600.0
    assert observed_queue({}, NODES, SITE, NOW, 0).nodes == {"n0": (4, 4e9), "n1": (4, 4e9)}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"reason": "BeginTime", "begin": 5000.0}, ""),
        ({"reason": "Dependency", "dependency": "afterok:1(unfulfilled)"}, ""),
        ({"reason": "Dependency", "dependency": "afterok:4(unfulfilled)"}, "it depends on afterok:4(unfulfilled)"),
        ({"reason": "Dependency", "dependency": "singleton"}, "it depends on singleton"),
        ({"reason": "JobHeldUser", "priority": 0}, "it is held"),
        ({"reason": "QOSMaxJobsPerUserLimit"}, "Slurm says QOSMaxJobsPerUserLimit"),
        ({"reason": "ReqNodeNotAvail, UnavailableNodes:n0"}, ""),
        ({"reservation": "maintenance"}, "it has the reservation maintenance"),
        ({"special": "licenses"}, "it asks for licenses"),
        ({"part": True, "array": 7, "tasks": 0}, "how many tasks wait is not known"),
        ({"part": True, "tasks": 0}, "it is part of a heterogeneous job"),
        ({"part": True, "array": 7, "tasks": 9}, ""),
        ({"features": "[a|b]"}, "it asks for nodes with [a|b]"),
        ({"partition": "shared"}, "jobs of partition shared share cores"),
        ({"partition": "closed"}, "partition closed is not up"),
    ],
)
def test_what_slurm_alone_decides_is_not_known(changes: dict[str, Any], why: str) -> None:
    site = SiteState(partitions={**BOTH, "closed": Partition("closed", up=False, nodes=frozenset({"n0"}))})
    assert seen(replace(PLAIN, **changes), RUNNING, site=site)["slurm/8"].unknown == why


def test_a_job_waits_for_all_tasks_of_an_array() -> None:
    task = replace(RUNNING, id=9, part=True, array=7)
    pending = replace(PLAIN, id=7, part=True, array=7, tasks=3, tasks_at_once=1)
    merge = replace(PLAIN, reason="Dependency", dependency="afterok:7_*(unfulfilled)")
    queue = seen(task, pending, merge)
    assert set(queue["slurm/8"].after) == {"slurm/7", "slurm/9"} and not queue["slurm/8"].unknown
    array_job = queue["slurm/7"]
    assert (array_job.tasks, array_job.array, array_job.tasks_at_once, queue["slurm/9"].array) == (3, "7", 1, "7")


def test_a_reservation_of_its_nodes_makes_a_start_unknown() -> None:
    window = SlurmReservation("week", 5000.0, 6000.0, frozenset({"n1"}))
    queue = seen(PLAIN, site=replace(SITE, reservations=[window]))
    assert queue["slurm/8"].unknown == "reservation week has nodes that it may use"
    assert not seen(PLAIN, site=replace(SITE, reservations=[replace(window, end=NOW)]))["slurm/8"].unknown


def test_a_job_that_ended_says_when_it_ran_and_one_that_never_began_does_not() -> None:
    ended = replace(RUNNING, state=JobState.COMPLETED, start=900.0, end=950.0)
    assert (seen(ended)["slurm/1"].start_time, seen(ended)["slurm/1"].finish_time) == (900.0, 950.0)
    never = replace(PLAIN, state=JobState.CANCELLED, start=950.0, end=950.0)
    assert seen(never)["slurm/8"].start_time is None
    exclusive = Partition("main", nodes=frozenset({"n0", "n1"}), sharing=CoreSharing.EXCLUSIVE)
    assert seen(PLAIN, site=SiteState(partitions={"main": exclusive}))["slurm/8"].alone
