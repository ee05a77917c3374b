"""Verdicts on waiting jobs: where they may start, why they wait, until when they are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.placement import limits
from pilotfish.adapters.slurm.placement.eligibility import Deferral, Eligibility, EligibilityCache
from pilotfish.adapters.slurm.placement.partitions import SlurmReservation
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.site_state import SiteState
from pilotfish.adapters.slurm.transport import scontrol
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.snapshot import JobState
from tests.support.slurm_jobs import BOTH, JOB, LIMITS, MAIN, NODE, NOW, RUNNING

CLUSTER = Cluster("c", tuple(Node(f"n{i}", NodeType("t", 4, 4e9, 1e9)) for i in range(2)))
NODES = {f"n{i}": replace(NODE, name=f"n{i}", idle=4, free=4e9) for i in range(2)}
SITE = SiteState(partitions=BOTH, covered=frozenset(range(99)))


def judge(*jobs: SlurmJob, site: SiteState = SITE, deferral: Deferral = Deferral(), **since: float) -> Eligibility:
    held_since = {int(name[1:]): time for name, time in since.items()}
    memory = EligibilityCache(CLUSTER, SlurmSelection())
    memory.since = held_since
    memory.queue.update(jobs)
    return Eligibility(CLUSTER, NODES, memory, site, NOW, deferral)


@pytest.mark.parametrize(
    ("changed", "site", "why"),
    [
        ({}, {}, ""),
        ({}, {"missing": frozenset({"reservations"})}, "reservations are not read yet"),
        ({"id": 100}, {}, "excludes are not read yet"),
        ({}, {"partitions": {"main": replace(MAIN, up=False)}}, "not up"),
        ({}, {"reservations": [SlurmReservation("r", NOW + 500, NOW + 900, frozenset({"n0", "n1"}))]}, "reservation r"),
        ({}, {"reservations": [SlurmReservation("r", NOW + 500, NOW + 900, frozenset({"n0"}))]}, ""),
        ({"wanted": ("n0", "n1")}, {}, "more or fewer nodes"),
        ({"special": "licenses"}, {}, "licenses"),
        ({"nodes": 3}, {}, "too few"),
    ],
)
def test_verdicts(changed: dict[str, Any], site: dict[str, Any], why: str) -> None:
    job = replace(JOB, **changed)
    verdict = judge(job, site=replace(SITE, **site)).verdicts()[job.id]
    assert why in verdict.waits and bool(verdict.waits) is bool(why)
    assert verdict.allowed or verdict.waits


def test_of_two_jobs_within_a_limit_for_one_the_first_starts() -> None:
    site = replace(SITE, limits=limits.parse(LIMITS), settings=scontrol.ControllerSettings(limits=True))
    jobs = [replace(JOB, id=number, priority=number, time_limit=60.0) for number in range(1, 5)]
    verdicts = judge(*jobs, site=site).verdicts()
    assert [bool(verdicts[number].waits) for number in range(1, 5)] == [True, True, False, False]
    runs = [replace(job, id=job.id + 10, state=JobState.RUNNING, placed=("n0",), end=NOW + 60) for job in jobs[:1]]
    assert sum(not verdict.waits for verdict in judge(*jobs, *runs, site=site).verdicts().values()) == 1


def test_a_job_that_slurm_may_start_is_placed_in_queue_order() -> None:
    free = replace(JOB, begin=NOW - 1, reason="Priority")
    first = replace(free, id=3, priority=99, comment="")
    assert judge(free).verdicts()[7].waits == ""
    assert "job 3 comes first" in judge(free, first).verdicts()[7].waits
    assert judge(free, replace(first, reason="QOSMaxJobsPerUserLimit")).verdicts()[7].waits == ""
    planned = replace(free, planned=("n0",), start=NOW + 100)
    assert judge(planned).verdicts()[7].waits == "Slurm has planned its start"


def test_cores_allocated_to_no_visible_job_are_taken() -> None:
    uneven = replace(RUNNING, nodes=2, cpus=5, threads=2, placed=("n0", "n1"), end=NOW + 50)
    nodes = {"n0": replace(NODES["n0"], idle=1), "n1": replace(NODES["n1"], idle=2)}
    cache = EligibilityCache(CLUSTER, SlurmSelection())
    cache.queue.update([uneven])
    allocations = Eligibility(CLUSTER, nodes, cache, SITE, NOW, Deferral()).unseen()
    assert allocations == [("n0", 1, 50.0)]


@pytest.mark.parametrize(
    ("changed", "deferral", "due"),
    [
        ({}, Deferral(), 990 + 3600),
        ({}, Deferral(60.0), 1050),
        ({"nodes": 2}, Deferral(), 1025),  # a pass of the backfill after it was first seen to wait for us
        ({"nodes": 2}, Deferral(wide_nodes=3), 990 + 3600),
        ({"nodes": 2, "dependency": "afterok:1"}, Deferral(), 990 + 3600),
        ({"special": "licenses"}, Deferral(), 990),
        ({"begin": NOW - 1, "reason": "Priority"}, Deferral(), None),
        ({"comment": "pilotfish"}, Deferral(), None),
        ({"paused": True, "begin": NOW + 29}, Deferral(), 990 + 600),
        ({"paused": True, "begin": NOW + 15}, Deferral(60.0), 1050),
        ({"paused": True, "begin": NOW + 29, "comment": "pilotfish"}, Deferral(), 990),
        ({"special": "licenses", "begin": NOW + 15, "submit": NOW + 15 - 600}, Deferral(), None),  # it begins by itself
    ],
)
def test_the_time_until_a_job_is_let_go(changed: dict[str, Any], deferral: Deferral, due: float | None) -> None:
    verdict = judge(replace(JOB, **changed), deferral=deferral, j7=995.0).verdicts()[7]
    assert verdict.due == due and bool(verdict.why) is (due is not None)


def test_a_job_is_let_go_for_good() -> None:
    assert judge(replace(JOB, let_go=True)).verdicts() == {}
