"""Node capacity by Slurm's rules of sharing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.slurm.placement import node_capacity
from pilotfish.adapters.slurm.placement.partitions import CoreSharing
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.simulate.model.capacity import Occupancy
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from tests.support.slurm_jobs import BOTH, JOB, NODE, RUNNING, SHARED


@given(st.lists(st.integers(1, 4), max_size=8), st.integers(1, 4), st.integers(1, 4))
def test_rows_are_never_overfilled(sizes: list[int], cores: int, rows: int) -> None:
    if node_capacity.in_rows(sizes, cores, rows):
        assert sum(sizes) <= cores * rows and all(size <= cores for size in sizes)
    if len(sizes) <= rows and all(size <= cores for size in sizes):
        assert node_capacity.in_rows(sizes, cores, rows)


@pytest.mark.parametrize(
    ("there", "changed", "loose", "why"),
    [
        ([RUNNING], {}, False, ""),
        ([RUNNING], {"cpus": 3}, True, "would hold 5 threads"),
        ([RUNNING], {"cpus": 3}, False, ""),  # the cluster's own limit tells
        ([RUNNING], {"memory": 3.5e9}, False, ""),  # so it does of memory that we see taken
        ([], {"memory": 3.5e9}, False, "would hold 3.5e+09 bytes, over its memory of"),
        ([], {"memory": 5e9}, False, "would hold 5e+09 bytes, over its memory of"),
        ([RUNNING], {"shares": "NO"}, False, "(with cores of their own, not alone)"),
        ([], {"shares": "USER"}, False, "over its limit of 4"),  # somebody is there whom we do not see
        ([RUNNING], {"shares": "NODE"}, False, "not alone"),  # a word that 22.05 does not know
        ([replace(RUNNING, shares="NO")], {}, False, "(alone, not with cores of their own)"),
        ([RUNNING], {"shares": "YES", "cpus": 3}, True, "would hold 5 threads"),  # the partition does not let it share
        ([RUNNING], {"partition": "shared"}, False, "(with cores of their own, not sharing cores)"),
        ([replace(RUNNING, partition="shared")], {}, False, "(sharing cores, not with cores of their own)"),
        ([replace(RUNNING, partition="shared", cpus=4)], {"partition": "shared"}, False, ""),
        ([replace(RUNNING, partition="shared", cpus=3)] * 2, {"partition": "shared"}, False, "no row"),
    ],
)
def test_node_capacity(there: list[SlurmJob], changed: dict[str, Any], loose: bool, why: str) -> None:
    load = node_capacity.node_load([job for job in there if "n0" in job.placed], BOTH)
    obstacle = node_capacity.obstacle(replace(JOB, **changed), NODE, load, BOTH, oversubscribed=loose)
    assert why in obstacle and bool(obstacle) is bool(why)


@pytest.mark.parametrize(("stacked", "why"), [(1, ""), (3, ""), (4, "no row")])
def test_jobs_per_core_are_counted_from_the_queue(stacked: int, why: str) -> None:
    """Observed on 22.05 with OverSubscribe=FORCE:4: CPUAlloc=4 of a node of 4 cores, for one job there as for four."""
    partitions = {"shared": replace(SHARED, rows=4)}
    load = node_capacity.node_load([replace(RUNNING, partition="shared", cpus=4, memory=0.0)] * stacked, partitions)
    obstacle = node_capacity.obstacle(
        replace(JOB, partition="shared", cpus=4), replace(NODE, idle=0), load, partitions, oversubscribed=False
    )
    assert why in obstacle and bool(obstacle) is bool(why)


KINDS = {kind: replace(SHARED, name=kind, sharing=CoreSharing(kind), rows=1) for kind in ("NO", "YES", "EXCLUSIVE")}
JOBS = st.builds(
    lambda partition, shares, cpus, memory: replace(
        JOB, partition=partition, shares=shares, cpus=cpus, memory=memory, nodes=1
    ),
    st.sampled_from(sorted(KINDS)), st.sampled_from(("", "OK", "YES", "NO", "USER")),
    st.integers(1, 4), st.sampled_from((0.0, 1e9, 2.5e9)),
)  # fmt: skip


@given(st.lists(JOBS, max_size=2), JOBS)
def test_the_planner_and_slurms_nodes_answer_alike(residents: list[SlurmJob], job: SlurmJob) -> None:
    """Without shared rows, and with all jobs in sight, only one rule decides."""
    cluster = Cluster("c", (Node("n0", NodeType("t", 4, 4e9, 1e10)),))
    node = replace(NODE, cpus=4, memory=4e9, idle=None, free=None)
    placed = Occupancy(cluster)

    def request(slurm_job: SlurmJob) -> Job:
        sharing = node_capacity.sharing_of(slurm_job, [KINDS[slurm_job.partition]])
        alone = sharing is node_capacity.NodeSharing.ALONE
        profile = Profile((ThreadGroup(4 if alone else slurm_job.cores, 60.0),))
        return Job("j", profile, memory=slurm_job.memory, apart=f"{sharing} {id(slurm_job)}" if alone else sharing)

    for resident in residents:
        placed.place(request(resident), ["n0"])
    load = node_capacity.node_load(residents, KINDS)
    part_free = replace(node, free=max(0.0, 4e9 - load.memory))
    answer = node_capacity.obstacle(job, part_free, load, KINDS, oversubscribed=True)
    memory_of_the_seen = load.memory + job.memory > 4e9  # only the planner counts it, now and in its forecasts
    if not memory_of_the_seen:
        assert bool(answer) is bool(placed.obstacle(request(job), "n0"))
