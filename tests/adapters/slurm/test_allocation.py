"""A job gets whole cores, sockets or nodes, and memory only where Slurm counts it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.allocation import AllocationRules, AllocationUnit, SiteAllocation, SystemShare, usable
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.placement.limits import Limits
from pilotfish.adapters.slurm.placement.node_capacity import NodeSharing, sharing_of
from pilotfish.adapters.slurm.placement.node_constraints import allowed
from pilotfish.adapters.slurm.placement.partitions import parse as parse_partitions
from pilotfish.adapters.slurm.transport.scontrol import ControllerSettings, parse_settings, parse_system_shares
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.plan import Place
from pilotfish.simulate.model.snapshot import JobState
from tests.adapters.slurm.handed_over.test_time_min import Versioned
from tests.adapters.slurm.test_users_text import CLUSTER as THREE
from tests.adapters.slurm.test_users_text import HELD, SELECTION, SITE, transport_of
from tests.support.slurm_answers import CONFIG, PARTITION
from tests.support.slurm_jobs import BOTH, JOB, MAIN, NODE, NOW, RUNNING, SHARED

CLUSTER = Cluster("c", (Node("n0", NodeType("t", 4, 4e9, 1e10)),))
WHOLE = [replace(job, memory=4e9, asks_memory=False) for job in (JOB, RUNNING)]


@pytest.mark.parametrize("is_handed_over", [True, False], ids=["handed over", "other users' jobs alone"])
def test_the_first_snapshot_knows_and_a_change_of_the_settings_counts(*, is_handed_over: bool) -> None:
    counts, clock = [False], [0.0]
    slurm = SimpleNamespace(
        notes=(), time=lambda: NOW, jobs=lambda ids=(): [*WHOLE, replace(JOB, id=9, memory=1e9)], nodes=lambda: [NODE],
        partitions=lambda: BOTH, reservations=list, limits=Limits, excluded=dict, resized=lambda job: None,
        settings=lambda: ControllerSettings(allocation=AllocationRules(counts_memory=counts[0])),
    )  # fmt: skip
    adapter = SlurmAdapter(CLUSTER, slurm, SlurmSelection(comment=is_handed_over), clock=lambda: clock[0])

    free, full = dict.fromkeys(("slurm/7", "slurm/1", "slurm/9"), 0.0), {"slurm/7": 4e9, "slurm/1": 4e9, "slurm/9": 1e9}
    for is_counted, snapshots, expected in ((False, 1, free), (True, 300, full), (False, 300, free)):
        counts[0] = is_counted
        for _ in range(snapshots):  # each reads one thing that changes rarely
            views = adapter.snapshot().jobs
            clock[0] += 5.0
        assert {job.key: job.job.memory for job in views} == expected
        assert {job.key: job.memory for job in adapter.queue().jobs} == expected


@pytest.mark.parametrize(
    ("chosen", "is_counted"),
    [("CR_CPU_MEMORY", True), ("CR_Core", False), ("CR_Core_Memory,CR_LLN", True), ("NONE", False)],
)
def test_it_is_read_from_the_controllers_settings(chosen: str, is_counted: bool) -> None:
    assert parse_settings(CONFIG.replace("CR_CPU_MEMORY", chosen)).allocation.counts_memory is is_counted
    without = "".join(line for line in CONFIG.splitlines(keepends=True) if "SelectTypeParameters" not in line)
    assert parse_settings(without).allocation.counts_memory


@pytest.mark.parametrize("chosen", ["CR_Core", "CR_Core_Memory"])
def test_such_a_job_is_placed(chosen: str) -> None:
    """It is read alone before it is placed, and must be the one that was seen."""
    row = HELD | {"MinMemory": "0", "tres-alloc": "cpu=1,mem=4096M,node=1,billing=1"}
    slurm = Versioned(f"{SITE['config']}\nSelectTypeParameters    = {chosen}\n", row)
    adapter = SlurmAdapter(THREE, transport_of("squeue", slurm, [], [0.0]), SELECTION, clock=lambda: 0.0)
    (view,) = adapter.snapshot().jobs
    assert view.job.memory == (2**32 if chosen == "CR_Core_Memory" else 0.0)
    adapter.apply(Place(view.key, view.job, ("n1",)))
    assert any("ReqNodeList=n1" in fields for _, fields in slurm.updates)


#: Eight CPUs in four cores and two sockets.
CORES = replace(NODE, cpus=8, core=2, socket=4)
SOCKETS, NODES = AllocationRules(AllocationUnit.SOCKET), AllocationRules(AllocationUnit.NODE)


@pytest.mark.parametrize(
    ("rules", "asked", "cpus"),
    [
        (AllocationRules(), {"cpus": 1}, 2),
        (AllocationRules(), {"cpus": 3}, 4),
        (AllocationRules(), {"cpus": 2, "nodes": 2}, 2),
        (AllocationRules(), {"cpus": 2, "own_core": "cpu"}, 4),
        (AllocationRules(), {"cpus": 6, "per_task": 3, "own_core": "task"}, 8),
        (AllocationRules(one_task_per_core=True), {"cpus": 2}, 4),
        (AllocationRules(one_task_per_core=True), {"cpus": 2, "per_task": 2}, 2),
        (SOCKETS, {"cpus": 1}, 4),
        (SOCKETS, {"cpus": 5}, 8),
        (SOCKETS, {"cpus": 3, "per_task": 3}, 4),
        (SOCKETS, {"cpus": 2}, 8),
        (AllocationRules(), {"cpus": 1, "partition": "whole"}, 4),
        (AllocationRules(), {"cpus": 1, "partition": "main,whole"}, 4),
        (AllocationRules(), {"cpus": 1, "state": JobState.RUNNING}, 1),
        (AllocationRules(), {"cpus": 1, "partition": "unknown"}, 1),
    ],
)
def test_a_job_gets_whole_cores_and_sockets(rules: AllocationRules, asked: dict[str, Any], cpus: int) -> None:
    """As test_slurm_allocation sees it on a real Slurm."""
    nodes = [CORES, replace(CORES, name="n1", partitions=frozenset(["whole"])), replace(NODE, name="n2")]
    job = SiteAllocation.on(nodes, rules, {"whole": "CR_SOCKET"}).of(replace(JOB, memory=1e6, **asked))
    assert (job.cores, job.memory) == (cpus, 1e6)


def test_memory_for_each_cpu_is_that_of_its_whole_cores() -> None:
    job = replace(JOB, cpus=1, memory=1e9, memory_per_cpu=1e9)
    assert SiteAllocation.on([CORES], AllocationRules(), {}).of(job).memory == 2e9


def test_where_whole_nodes_are_allocated_no_job_shares_one() -> None:
    allocation = SiteAllocation.on([CORES], NODES, {})
    for job in (JOB, RUNNING):
        assert sharing_of(allocation.of(job), [SHARED, MAIN]) is NodeSharing.ALONE


def test_memory_that_is_not_counted_still_says_which_nodes_are_too_small() -> None:
    job = SiteAllocation(AllocationRules(counts_memory=False)).of(replace(JOB, memory=5e9))
    assert job.memory == 0.0
    assert allowed(job, [NODE, replace(NODE, name="large", memory=6e9)]) == {"large"}


@pytest.mark.parametrize(
    ("plugin", "parameters", "unit"),
    [("select/linear", "CR_MEMORY", AllocationUnit.NODE), ("select/cons_tres", "CR_SOCKET_MEMORY", AllocationUnit.SOCKET),
     ("select/cons_res", "CR_CORE_MEMORY", AllocationUnit.CORE), ("", None, AllocationUnit.CORE)],
)  # fmt: skip
def test_the_unit_follows_the_settings(plugin: str, parameters: str | None, unit: AllocationUnit) -> None:
    assert AllocationRules.of(plugin, parameters).unit is unit


def test_a_partition_may_have_parameters_of_its_own() -> None:
    sockets = PARTITION.format(name="own").replace("SelectTypeParameters=NONE", "SelectTypeParameters=CR_SOCKET")
    partitions = parse_partitions(f"{PARTITION.format(name='main')}\n{sockets}\n")
    assert [partitions[name].parameters for name in ("main", "own")] == ["", "CR_SOCKET"]


def test_what_a_node_keeps_for_the_system_no_job_gets() -> None:
    """As Slurm 22.05 shows a node with `CoreSpecCount=1 MemSpecLimit=1000` and two threads for each core."""
    line = "NodeName=n0 Arch=x86_64 CoresPerSocket=2 CPUAlloc=0 CPUEfctv=6 CPUTot=8 CoreSpecCount=1 MemSpecLimit=1000"
    shares = parse_system_shares(
        f"{line}\nNodeName=n1 CPUAlloc=0 CPUEfctv=8 CPUTot=8\nNodeName=n2 CPUAlloc=0 CPUTot=8\n"
    )
    assert shares == {"n0": SystemShare(2, 1000 * 2.0**20)}
    node_of_eight = replace(NODE, cpus=8, idle=8, memory=4e9, free=4e9)
    (node,) = usable([node_of_eight], shares)
    assert (node.cpus, node.idle, node.memory, node.free) == (6, 6, 4e9 - 1000 * 2.0**20, 4e9 - 1000 * 2.0**20)
    (full,) = usable([replace(node_of_eight, idle=2, free=1e8)], shares)
    assert (full.idle, full.free) == (0, 0.0)
    nodes = [replace(node_of_eight, name="n2")]
    assert usable(nodes, shares) == nodes


def test_nodes_are_smaller_once_it_is_known_what_they_keep() -> None:
    slurm = SimpleNamespace(
        notes=(), time=lambda: NOW, jobs=lambda ids=(): [JOB], nodes=lambda: [replace(NODE, idle=4)],
        partitions=lambda: BOTH, reservations=list, limits=Limits, excluded=dict, resized=lambda job: None,
        settings=lambda: ControllerSettings(system_shares={"n0": SystemShare(3)}),
    )  # fmt: skip
    adapter = SlurmAdapter(CLUSTER, slurm, SlurmSelection(), clock=lambda: 0.0)
    adapter.snapshot()
    assert [node.cpus for node in adapter._evaluated.nodes.values()] == [1]
