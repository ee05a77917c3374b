"""Node capacity by Slurm's rules of sharing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.slurm.placement import node_capacity
from pilotfish.adapters.slurm.records import SlurmJob
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
        ([RUNNING], {"cpus": 3}, True, "2 cores free"),
        ([RUNNING], {"cpus": 3}, False, ""),  # the cluster's own limit tells
        ([RUNNING], {"memory": 3.5e9}, False, ""),  # so it does of memory that we see taken
        ([], {"memory": 3.5e9}, False, "not enough memory free"),
        ([], {"memory": 5e9}, False, "less memory"),
        ([RUNNING], {"shares": "NO"}, False, "not empty"),
        ([], {"shares": "USER"}, False, "not empty"),  # somebody is there whom we do not see
        ([RUNNING], {"shares": "NODE"}, False, "not empty"),  # a word that 22.05 does not know
        ([replace(RUNNING, shares="NO")], {}, False, "not empty"),
        ([RUNNING], {"shares": "YES", "cpus": 3}, True, "2 cores free"),  # the partition does not let it share
        ([RUNNING], {"partition": "shared"}, False, "do not share cores"),
        ([replace(RUNNING, partition="shared")], {}, False, "share cores"),
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
